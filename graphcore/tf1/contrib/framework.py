"""`tf.contrib.framework`: variables by scope and name, their values, and `arg_scope`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from graphcore.brief import brief
from graphcore.dtypes import float32
from graphcore.errors import InvalidArgumentError, NotFoundError
from graphcore.graph import Node, Tensor
from graphcore.runtime import Session
from graphcore.tf1.contrib.arg_scopes import (
    add_arg_scope,
    arg_scope,
    arg_scope_func_key,
    arg_scoped_arguments,
    current_arg_scope,
    has_arg_scope,
)
from graphcore.tf1.framework import device as device_scope
from graphcore.tf1.framework import get_collection, group, placeholder
from graphcore.tf1.train.global_steps import assert_global_step, create_global_step, get_global_step, get_or_create_global_step
from graphcore.tf1.train.saving.checkpoint_states import list_variables, load_checkpoint, load_variable
from graphcore.tf1.train.saving.initializing import init_from_checkpoint
from graphcore.tf1.train.saving.saver import Saver
from graphcore.tf1.variable_scopes.getting import get_variable
from graphcore.tf1.variables.collections import GraphKeys
from graphcore.tf1.variables.variables import Variable

__all__ = [
    "add_arg_scope",
    "add_model_variable",
    "arg_scope",
    "arg_scope_func_key",
    "arg_scoped_arguments",
    "assert_global_step",
    "assert_scalar",
    "assign_from_checkpoint",
    "assign_from_checkpoint_fn",
    "assign_from_values",
    "assign_from_values_fn",
    "create_global_step",
    "current_arg_scope",
    "filter_variables",
    "get_global_step",
    "get_local_variables",
    "get_model_variables",
    "get_or_create_global_step",
    "get_trainable_variables",
    "get_unique_variable",
    "get_variables",
    "get_variables_by_name",
    "get_variables_by_suffix",
    "get_variables_to_restore",
    "has_arg_scope",
    "init_from_checkpoint",
    "is_tensor",
    "list_variables",
    "load_checkpoint",
    "load_variable",
    "local_variable",
    "model_variable",
    "variable",
]


@add_arg_scope
def variable(
    name: str,
    shape: Any = None,
    dtype: Any = float32,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    collections: Sequence[str] | None = None,
    caching_device: Any = None,
    device: Any = None,
    partitioner: Any = None,
    custom_getter: Any = None,
    use_resource: bool | None = None,
) -> Any:
    """`gc.get_variable` on a device, in collections without repetition."""
    wanted = list(dict.fromkeys(collections or [GraphKeys.GLOBAL_VARIABLES]))
    with device_scope(device or ""):
        return get_variable(
            name,
            shape,
            dtype,
            initializer,
            regularizer,
            trainable,
            wanted,
            caching_device,
            partitioner,
            use_resource=use_resource,
            custom_getter=custom_getter,
        )


@add_arg_scope
def model_variable(
    name: str,
    shape: Any = None,
    dtype: Any = float32,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    collections: Sequence[str] | None = None,
    caching_device: Any = None,
    device: Any = None,
    partitioner: Any = None,
    custom_getter: Any = None,
    use_resource: bool | None = None,
) -> Any:
    """`variable`, in the collection of variables of the model too."""
    wanted = [*(collections or ()), GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES]
    return variable(
        name,
        shape,
        dtype,
        initializer,
        regularizer,
        trainable,
        wanted,
        caching_device,
        device,
        partitioner,
        custom_getter,
        use_resource,
    )


def local_variable(initial_value: Any, validate_shape: bool = True, name: str | None = None) -> Variable:
    """A variable of this process, which is not trained and not saved."""
    return Variable(initial_value, trainable=False, collections=[GraphKeys.LOCAL_VARIABLES], validate_shape=validate_shape, name=name)


def add_model_variable(var: Any) -> None:
    """Put a variable into the collection of model variables, unless it is there."""
    model_variables = get_collection(GraphKeys.MODEL_VARIABLES)
    if all(other is not var for other in model_variables):
        var.graph.add_to_collection(GraphKeys.MODEL_VARIABLES, var)


def get_variables(scope: Any = None, suffix: str | None = None, collection: str = GraphKeys.GLOBAL_VARIABLES) -> list[Any]:
    """The variables of a collection.

    Args:
        scope: a pattern that names begin with, or a variable scope; None for all.
        suffix: a pattern for the end of names, without `:0`.
        collection: the collection.
    """
    start = getattr(scope, "name", scope)
    if suffix is not None:
        start = (start or "") + ".*" + (suffix if ":" in suffix else suffix + ":")
    return get_collection(collection, start)


def get_model_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """The variables of the model; see `get_variables`."""
    return get_variables(scope, suffix, GraphKeys.MODEL_VARIABLES)


def get_local_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """The variables of this process; see `get_variables`."""
    return get_variables(scope, suffix, GraphKeys.LOCAL_VARIABLES)


def get_trainable_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """The variables that are trained; see `get_variables`."""
    return get_variables(scope, suffix, GraphKeys.TRAINABLE_VARIABLES)


def get_variables_by_suffix(suffix: str, scope: Any = None) -> list[Any]:
    """The variables whose names end with `suffix`; see `get_variables`."""
    return get_variables(scope, suffix)


def get_variables_by_name(given_name: str, scope: Any = None) -> list[Any]:
    """The variables with a name, in any scope below `scope`."""
    return get_variables(scope, f"/{given_name}:|^{given_name}:")


def get_unique_variable(var_op_name: str) -> Any:
    """The variable with a full name.

    Raises:
        NotFoundError: there is none.
    """
    variables = [var for var in get_variables(re.escape(var_op_name)) if var.op.name == var_op_name]
    if not variables:
        raise NotFoundError(f"Couldn't find variable {var_op_name}")
    return variables[0]


def get_variables_to_restore(include: Sequence[str] | None = None, exclude: Sequence[str] | None = None) -> list[Any]:
    """The variables of some scopes, without those of others.

    Args:
        include: the scopes; None for all variables.
        exclude: the scopes of those to leave out.

    Raises:
        InvalidArgumentError: one of both is no list.
    """
    for what, scopes in (("include", include), ("exclude", exclude)):
        if scopes is not None and not isinstance(scopes, list | tuple):
            raise InvalidArgumentError(f"get_variables_to_restore: required a list of scopes as {what}, got {brief(scopes)}")
    chosen = get_variables() if include is None else [var for scope in include for var in get_variables(scope)]
    left_out = {id(var) for scope in exclude or () for var in get_variables(scope)}
    return [var for var in chosen if id(var) not in left_out]


def filter_variables(
    var_list: Sequence[Any], include_patterns: Any = None, exclude_patterns: Any = None, reg_search: bool = True
) -> list[Any]:
    """The variables whose names fit one of some patterns, and none of others.

    Args:
        var_list: the variables.
        include_patterns, exclude_patterns: regular expressions, None for no choice.
        reg_search: find them anywhere in the names, not only at the start.
    """
    fits = re.search if reg_search else re.match
    chosen = [var for var in var_list if include_patterns is None or any(fits(pattern, var.op.name) for pattern in include_patterns)]
    return [var for var in chosen if not any(fits(pattern, var.op.name) for pattern in exclude_patterns or ())]


def assign_from_values(var_names_to_values: Mapping[str, Any]) -> tuple[Node, dict[Tensor, Any]]:
    """A node that assigns arrays to variables, and the feeds it needs.

    Args:
        var_names_to_values: arrays by the full names of variables, each with as many elements as the variable.

    Raises:
        NotFoundError: there is no such variable.
    """
    nodes, feeds = [], {}
    for name, value in var_names_to_values.items():
        var = get_unique_variable(name)
        fed = placeholder(var.dtype.base, var.shape, name=f"placeholder/{name}")
        nodes.append(var.assign(fed))
        feeds[fed] = np.asarray(value).reshape(var.shape.as_list())
    return group(*nodes), feeds


def assign_from_values_fn(var_names_to_values: Mapping[str, Any]) -> Callable[[Session], Any]:
    """A function of a session that assigns arrays to variables; see `assign_from_values`."""
    node, feeds = assign_from_values(var_names_to_values)
    return lambda session: session.run(node, feeds)


def _by_name(var_list: Any) -> dict[str, Any]:
    return dict(var_list) if isinstance(var_list, Mapping) else {var.op.name: var for var in var_list}


def assign_from_checkpoint(model_path: str, var_list: Any, ignore_missing_vars: bool = False) -> tuple[Node, dict[Tensor, Any]]:
    """A node that assigns the values of a checkpoint to variables, and the feeds it needs.

    Args:
        model_path: the path of the checkpoint.
        var_list: variables, or variables by their names in the checkpoint.
        ignore_missing_vars: leave out variables that the checkpoint does not have.

    Raises:
        NotFoundError: the checkpoint does not have a variable.
    """
    reader = load_checkpoint(model_path)
    values = {}
    for name, var in _by_name(var_list).items():
        if reader.has_tensor(name):
            values[var.op.name] = reader.get_tensor(name)
        elif not ignore_missing_vars:
            raise NotFoundError(f"Checkpoint {model_path} is missing variable {name}")
    return assign_from_values(values)


def assign_from_checkpoint_fn(
    model_path: str, var_list: Any, ignore_missing_vars: bool = False, reshape_variables: bool = False
) -> Callable[[Session], None] | None:
    """A function of a session that restores variables of a checkpoint; None if it has none of them.

    Args:
        model_path: the path of the checkpoint.
        var_list: variables, or variables by their names in the checkpoint.
        ignore_missing_vars: leave out variables that the checkpoint does not have.
        reshape_variables: restore values of other shapes with as many elements.

    Raises:
        InvalidArgumentError: `var_list` is empty.
    """
    if not var_list:
        raise InvalidArgumentError("assign_from_checkpoint_fn: required at least one variable, got none")
    chosen = _by_name(var_list)
    if ignore_missing_vars:
        reader = load_checkpoint(model_path)
        chosen = {name: var for name, var in chosen.items() if reader.has_tensor(name)}
    if not chosen:
        return None
    saver = Saver(chosen, reshape=reshape_variables)
    return lambda session: saver.restore(session, model_path)


def is_tensor(x: Any) -> bool:
    """True for a tensor or a variable."""
    return isinstance(x, Tensor | Variable)


def assert_scalar(tensor: Any, name: str | None = None) -> Any:
    """The tensor.

    Raises:
        InvalidArgumentError: it has another rank than 0.
    """
    if tensor.shape.rank not in (None, 0):
        raise InvalidArgumentError(f"Expected scalar shape for {name or tensor.name}, saw shape: {tensor.shape}")
    return tensor
