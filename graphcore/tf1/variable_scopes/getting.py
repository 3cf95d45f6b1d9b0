"""`get_variable`: the variable of a name, made or shared."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from graphcore.brief import brief
from graphcore.dtypes import DType, as_dtype
from graphcore.errors import AlreadyExistsError, InvalidArgumentError
from graphcore.graph import Graph, Tensor, as_constant_array, get_default_graph
from graphcore.graph.graph import outermost
from graphcore.shapes import as_shape
from graphcore.tf1.framework import add_to_collection, name_scope
from graphcore.tf1.initializers import GlorotUniform, Zeros
from graphcore.tf1.variable_scopes.scope import AUTO_REUSE, Getter, Reuse, VariableScope, get_variable_scope, refuse_partitioner
from graphcore.tf1.variables.collections import GraphKeys
from graphcore.tf1.variables.variables import Variable


def get_variable(
    name: str,
    shape: Any = None,
    dtype: object = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool | None = None,
    collections: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Getter | None = None,
    constraint: Any = None,
    synchronization: Any = None,
    aggregation: Any = None,
) -> Any:
    """Make the variable `name` of the current variable scope, or take an existing one as the scope says.

    A cell of a notebook that runs again makes its own variables again.

    Args:
        name: the name within the scope.
        shape: the full shape; None if the initializer determines it.
        dtype: the dtype, by default the scope's, float32.
        initializer: a function from a shape and a dtype to a value, one without arguments, or a value; by default the scope's, Glorot's uniform
            values for floats and zeros for others.
        regularizer: a function from the variable to a loss, which is added to the collection of regularization losses, or to None.
        trainable: put it into the collection of trainable variables; True by default.
        collections: the collections for it, instead of that of global variables.
        caching_device: without effect; a read is no copy.
        partitioner: None.
        validate_shape: require a fully known shape and keep it.
        use_resource: make a resource; by default what the scope says.
        custom_getter: a function that gets the function that makes the variable, as `getter`, and all arguments by name.
        constraint: a function from the value after an optimizer's step to the value to keep.
        synchronization, aggregation: without effect; there is one process.

    Raises:
        AlreadyExistsError: there is one of this name, and the scope does not share variables.
        InvalidArgumentError: there is none, and the scope only shares variables; or the existing one has another shape or dtype; or the initializer
            does not fit.
        UnimplementedError: there is a partitioner.
    """
    scope = get_variable_scope()
    return variable_in_scope(
        scope,
        name,
        shape=shape,
        dtype=dtype,
        initializer=initializer,
        regularizer=regularizer,
        trainable=trainable,
        collections=collections,
        caching_device=caching_device,
        partitioner=partitioner,
        validate_shape=validate_shape,
        use_resource=use_resource,
        custom_getter=custom_getter,
        constraint=constraint,
        synchronization=synchronization,
        aggregation=aggregation,
    )


def get_local_variable(
    name: str,
    shape: Any = None,
    dtype: object = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = False,  # noqa: ARG001 - a local variable is not trainable, as in TF1
    collections: Sequence[str] | None = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Getter | None = None,
    constraint: Any = None,
    synchronization: Any = None,
    aggregation: Any = None,
) -> Any:
    """A variable as of `get_variable` in the collection of local variables: neither trained nor saved."""
    return get_variable(
        name,
        shape,
        dtype,
        initializer,
        regularizer,
        False,
        [*(collections or ()), GraphKeys.LOCAL_VARIABLES],
        caching_device,
        partitioner,
        validate_shape,
        use_resource,
        custom_getter,
        constraint,
        synchronization,
        aggregation,
    )


def variable_in_scope(
    scope: VariableScope,
    name: str,
    *,
    reuse: Reuse = None,
    dtype: object = None,
    initializer: Any = None,
    regularizer: Any = None,
    custom_getter: Getter | None = None,
    use_resource: bool | None = None,
    constraint: Any = None,
    partitioner: Any = None,
    **arguments: Any,
) -> Any:
    """The variable called `name` in `scope`; the other arguments are those of `get_variable`."""
    full_name = f"{scope.name}/{name}" if scope.name else name
    refuse_partitioner(partitioner, f"variable '{full_name}'")
    _check_dtype(full_name, initializer, dtype)
    settings = {
        "name": full_name,
        "reuse": scope.reuse if reuse is None else reuse,
        "dtype": as_dtype(scope.dtype if dtype is None else dtype).base,
        "initializer": scope.initializer if initializer is None else initializer,
        "regularizer": scope.regularizer if regularizer is None else regularizer,
        "use_resource": scope.use_resource if use_resource is None else use_resource,
        "constraint": scope.constraint if constraint is None else constraint,
        "partitioner": None,
        **arguments,
    }
    getter = scope.custom_getter if custom_getter is None else custom_getter
    if getter is None:
        return shared_or_made(**settings)
    if not callable(getter):
        raise InvalidArgumentError(f"Variable '{full_name}': required a function as custom_getter, got {brief(getter)}", node=full_name)
    if not _takes(getter, "constraint"):
        del settings["constraint"]
    with name_scope(None):
        return getter(getter=shared_or_made, **settings)


def shared_or_made(
    name: str,
    shape: Any = None,
    dtype: object = None,
    initializer: Any = None,
    regularizer: Any = None,
    reuse: Reuse = None,
    trainable: bool | None = None,
    collections: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    constraint: Any = None,
    synchronization: Any = None,
    aggregation: Any = None,
) -> Variable:
    """The variable of the full name `name`: the `getter` of custom getters. The arguments are those of `get_variable`."""
    del caching_device, synchronization, aggregation
    refuse_partitioner(partitioner, f"variable '{name}'")
    wanted = None if dtype is None else as_dtype(dtype).base
    if initializer is not None and not callable(initializer) and shape is not None:
        raise InvalidArgumentError(f"Variable '{name}': if initializer is a constant, do not specify shape", node=name)
    graph = outermost(get_default_graph())
    shared = existing(graph, name)
    if shared is not None:
        return _shared(shared, name, shape, wanted, reuse)
    if reuse is True:
        raise InvalidArgumentError(
            f"Variable {name} does not exist, or was not created with get_variable(). "
            "Did you mean to set reuse=gc.AUTO_REUSE in variable_scope?",
            node=name,
        ).advise(
            "Open the scope with `reuse=gc.AUTO_REUSE`: then the first call makes the variable, and later ones share it.",
            required=f"a variable '{name}'",
            came="none, and reuse=True makes none",
        )
    value, value_dtype = _initial_value(name, shape, wanted, initializer)
    with graph.as_default(), graph.name_scope(None):
        variable = Variable(
            value,
            trainable=trainable is not False,
            collections=collections,
            validate_shape=validate_shape,
            name=name,
            dtype=value_dtype,
            constraint=constraint,
            use_resource=bool(use_resource),
        )
        graph.named_variables[name] = variable
        if regularizer is not None:
            _add_loss(variable, name, regularizer)
    return variable


def existing(graph: Graph, name: str) -> Variable | None:
    """The variable that `get_variable` has made of a full name; None if it is gone or to be made again."""
    variable: Variable | None = graph.named_variables.get(name)
    return None if variable is None or is_to_be_made(variable) else variable


def is_to_be_made(variable: Variable) -> bool:
    """True iff its node is gone, or of an earlier run of what runs now, which has not made it again yet."""
    graph = variable.graph
    return variable.op not in graph or graph.cells.may_replace(variable.op)


def _shared(variable: Variable, name: str, shape: Any, dtype: DType | None, reuse: Reuse) -> Variable:
    if reuse is not True and reuse is not AUTO_REUSE:
        raise AlreadyExistsError(
            f"Variable {name} already exists, disallowed. Did you mean to set reuse=True or reuse=gc.AUTO_REUSE in variable_scope?",
            op=variable.op.op,
            node=name,
            source=variable.op.source,
        ).advise(
            "Give the new variable another name. To use the existing one again, ask for it within "
            "`with gc.variable_scope(gc.get_variable_scope(), reuse=True):`.",
            required="a new name",
            came=f"'{name}', the name of a variable that exists",
        )
    if not as_shape(shape).is_compatible_with(variable.shape):
        text = f"Trying to share variable {name}, but specified shape {as_shape(shape)} and found shape {variable.shape}"
        raise InvalidArgumentError.at(variable.op, text)
    if dtype is not None and dtype is not variable.dtype:
        raise InvalidArgumentError.at(
            variable.op, f"Trying to share variable {name}, but specified dtype {dtype.text} and found dtype {variable.dtype.text}"
        )
    return variable


def _check_dtype(name: str, initializer: Any, dtype: object) -> None:
    """Require that a value given as initializer has the dtype given beside it."""
    if dtype is None or initializer is None or callable(initializer):
        return
    wanted = as_dtype(dtype).base
    held = (
        initializer.dtype.base
        if isinstance(initializer, Tensor | Variable)
        else as_constant_array(initializer, None, f"initializer of variable '{name}'").dtype
    )
    if held is not wanted:
        raise InvalidArgumentError(
            f"Variable '{name}': Initializer type '{held.text}' and explicit dtype '{wanted.text}' don't match", node=name
        )


def _initial_value(name: str, shape: Any, dtype: DType | None, initializer: Any) -> tuple[Any, DType | None]:
    """The initial value, or a function that gives it, and the dtype to require of it."""
    if initializer is None:
        initializer = _default_initializer(name, dtype)
    if not callable(initializer):
        return initializer, None
    if inspect.isclass(initializer):
        initializer = initializer()
    full = as_shape(shape)
    if shape is not None and full.is_fully_defined:
        keywords: dict[str, Any] = {"dtype": dtype}
        if _takes(initializer, "partition_info"):
            keywords["partition_info"] = None
        return lambda: initializer(full.as_list(), **keywords), dtype
    if not _needs_arguments(initializer):
        return initializer, None
    raise InvalidArgumentError(
        f"Variable '{name}': required a fully defined shape, or an initializer without arguments and no shape; got the shape {full}",
        node=name,
    )


def _default_initializer(name: str, dtype: DType | None) -> Any:
    if dtype is None or dtype.is_floating:
        return GlorotUniform()
    if dtype.is_integer or dtype.is_bool or (dtype.as_numpy is not None and dtype.as_numpy.kind == "O"):
        return Zeros()
    raise InvalidArgumentError(f"An initializer for variable {name} of {dtype.text} is required", node=name)


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a built-in function without a signature
        return []


def _takes(function: Callable[..., Any], name: str) -> bool:
    return any(parameter.name == name or parameter.kind is parameter.VAR_KEYWORD for parameter in _parameters(function))


def _needs_arguments(function: Callable[..., Any]) -> bool:
    several = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    return any(parameter.default is parameter.empty and parameter.kind not in several for parameter in _parameters(function))


def _add_loss(variable: Variable, name: str, regularizer: Callable[[Any], Any]) -> None:
    with variable.graph.name_scope(f"{name}/Regularizer/"):
        loss = regularizer(variable)
    if loss is not None:
        add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)
