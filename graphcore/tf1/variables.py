"""Functions on variables and collections of the top level, with TensorFlow 1's signatures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphcore.api.indexed_slices import IndexedSlices
from graphcore.api.variables.collections import GraphKeys
from graphcore.api.variables.references import body_that_changes, handle_within, value_within
from graphcore.api.variables.variables import Variable, initialize_all_variables, initialize_variables
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Graph, Node, Tensor, convert_to_tensor, get_default_graph
from graphcore.tf1.framework import add_to_collection, get_collection, group, no_op

__all__ = [
    "add_to_collections",
    "assign",
    "assign_add",
    "assign_sub",
    "get_collection_ref",
    "global_variables",
    "global_variables_initializer",
    "initialize_all_tables",
    "initialize_local_variables",
    "local_variables",
    "local_variables_initializer",
    "model_variables",
    "moving_average_variables",
    "scatter_add",
    "scatter_div",
    "scatter_max",
    "scatter_min",
    "scatter_mul",
    "scatter_nd_add",
    "scatter_nd_sub",
    "scatter_nd_update",
    "scatter_sub",
    "scatter_update",
    "tables_initializer",
    "tuple",
    "variables_initializer",
]


def add_to_collections(names: Any, value: Any) -> None:
    """Put `value` into several collections of the default graph."""
    for name in [names] if isinstance(names, str) else dict.fromkeys(names):
        add_to_collection(name, value)


def get_collection_ref(key: str) -> list[Any]:
    """The collection itself: a change of the list changes it."""
    return get_default_graph().get_collection_ref(key)


def global_variables(scope: str | None = None) -> list[Any]:
    """The variables that are saved and shared, or those with names that begin with `scope`."""
    return get_collection(GraphKeys.GLOBAL_VARIABLES, scope)


def local_variables(scope: str | None = None) -> list[Any]:
    """The variables of this process that are not saved, such as those of metrics."""
    return get_collection(GraphKeys.LOCAL_VARIABLES, scope)


def model_variables(scope: str | None = None) -> list[Any]:
    """The variables that a program has put into the collection of the model's variables."""
    return get_collection(GraphKeys.MODEL_VARIABLES, scope)


def moving_average_variables(scope: str | None = None) -> list[Any]:
    """The variables that have moving averages."""
    return get_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, scope)


def global_variables_initializer() -> Node:
    """A node that initialises all global variables, also those that earlier cells make later."""
    return initialize_all_variables()


def variables_initializer(var_list: Sequence[Any], name: str = "init") -> Node:
    """A node that initialises the variables in `var_list`."""
    return initialize_variables(var_list, name) if var_list else no_op(name)


def local_variables_initializer() -> Node:
    """A node that initialises all local variables."""
    return variables_initializer(local_variables())


initialize_local_variables = local_variables_initializer


def tables_initializer(name: str = "init_all_tables") -> Node:
    """A node that initialises all tables."""
    tables = get_collection(GraphKeys.TABLE_INITIALIZERS)
    return group(*tables, name=name) if tables else no_op(name)


initialize_all_tables = tables_initializer


def assign(
    ref: Variable, value: Any, validate_shape: bool | None = None, use_locking: bool | None = None, name: str | None = None
) -> Tensor:
    """Set a variable to `value` at run time; the result is the new value.

    Args:
        ref: the variable, or the reference to it that `get_tensor_by_name` gives.
        value: of its dtype, and of its shape unless `validate_shape` is False.
        validate_shape: False lets a reference variable take another shape.
        use_locking: without effect; assignments are atomic.
        name: the name of the node.
    """
    del use_locking
    variable = _variable(ref)
    if isinstance(variable, Tensor):
        return _by_reference("Assign", variable, value, {"validate_shape": validate_shape is not False}, name)
    if validate_shape is False and not variable.is_resource and body_that_changes(variable) is None:
        return _by_reference("Assign", variable.handle, value, {"validate_shape": False}, name)
    return variable.assign(value, name=name)


def assign_add(ref: Any, value: Any, use_locking: bool | None = None, name: str | None = None) -> Tensor:  # assignments are atomic
    """Add `value` to a variable at run time; the result is the new value."""
    del use_locking
    variable = _variable(ref)
    return _by_reference("AssignAdd", variable, value, {}, name) if isinstance(variable, Tensor) else variable.assign_add(value, name=name)


def assign_sub(ref: Any, value: Any, use_locking: bool | None = None, name: str | None = None) -> Tensor:  # assignments are atomic
    """Subtract `value` from a variable at run time; the result is the new value."""
    del use_locking
    variable = _variable(ref)
    return _by_reference("AssignSub", variable, value, {}, name) if isinstance(variable, Tensor) else variable.assign_sub(value, name=name)


def _variable(ref: Any) -> Variable | Tensor:
    """A variable, that of a reference to it, or the reference to one of which there are only nodes.

    Raises:
        InvalidArgumentError: it is none of these.
    """
    if isinstance(ref, Variable):
        return ref
    if not (isinstance(ref, Tensor) and ref.dtype.is_ref):
        raise InvalidArgumentError(f"required a variable, or the reference to one, got {ref!r}")
    held = (item for items in ref.graph.collections.values() for item in items)
    return next((item for item in held if isinstance(item, Variable) and item.op is ref.node), ref)


def _by_reference(op: str, ref: Tensor, value: Any, attrs: dict[str, Any], name: str | None) -> Tensor:
    return get_default_graph().apply_op(op, [ref, value], attrs, name).outputs[0]


def _scatter(op: str, ref: Any, inputs: list[Any], use_locking: bool, name: str | None) -> Tensor:
    graph = get_default_graph()
    variable = _variable(ref)
    inputs = [inputs[0], convert_to_tensor(graph, inputs[1], variable.dtype.base, f"updates of {op}")]
    if isinstance(variable, Tensor):
        return graph.apply_op(op, [variable, *inputs], {"use_locking": use_locking}, name).outputs[0]
    attrs = {} if variable.is_resource else {"use_locking": use_locking}
    body = body_that_changes(variable)
    if body is not None:
        return value_within(variable, body, body.apply_op(f"Resource{op}", [handle_within(variable, body), *inputs], None, name))
    node = graph.apply_op(f"Resource{op}" if variable.is_resource else op, [variable.handle, *inputs], attrs, name)
    if not variable.is_resource:
        return node.outputs[0]
    with graph.control_dependencies([node]):
        return variable.read_value()


def scatter_update(ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None) -> Tensor:
    """Replace the rows `indices` of a variable by `updates`; the result is the new value."""
    return _scatter("ScatterUpdate", ref, [indices, updates], use_locking, name)


def scatter_add(ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None) -> Tensor:
    """Add `updates` to the rows `indices` of a variable; the result is the new value."""
    return _scatter("ScatterAdd", ref, [indices, updates], use_locking, name)


def scatter_sub(ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None) -> Tensor:
    """Subtract `updates` from the rows `indices` of a variable; the result is the new value."""
    return _scatter("ScatterSub", ref, [indices, updates], use_locking, name)


def scatter_mul(ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None) -> Tensor:
    """Multiply the rows `indices` of a variable by `updates`; the result is the new value."""
    return _scatter("ScatterMul", ref, [indices, updates], use_locking, name)


def scatter_div(ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None) -> Tensor:
    """Divide the rows `indices` of a variable by `updates`; the result is the new value."""
    return _scatter("ScatterDiv", ref, [indices, updates], use_locking, name)


def scatter_max(ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None) -> Tensor:
    """Replace the rows `indices` of a variable by the larger of both; the result is the new value."""
    return _scatter("ScatterMax", ref, [indices, updates], use_locking, name)


def scatter_min(ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None) -> Tensor:
    """Replace the rows `indices` of a variable by the smaller of both; the result is the new value."""
    return _scatter("ScatterMin", ref, [indices, updates], use_locking, name)


def scatter_nd_update(ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None) -> Tensor:
    """Replace the parts of a variable at index vectors by `updates`; the result is the new value."""
    return _scatter("ScatterNdUpdate", ref, [indices, updates], use_locking, name)


def scatter_nd_add(ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None) -> Tensor:
    """Add `updates` to the parts of a variable at index vectors; the result is the new value."""
    return _scatter("ScatterNdAdd", ref, [indices, updates], use_locking, name)


def scatter_nd_sub(ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None) -> Tensor:
    """Subtract `updates` from the parts of a variable at index vectors; the result is the new value."""
    return _scatter("ScatterNdSub", ref, [indices, updates], use_locking, name)


def tuple(tensors: Sequence[Any], name: str | None = None, control_inputs: Sequence[Any] | None = None) -> list[Any]:  # noqa: A001 - TF1's name
    """The tensors, each of which is available when all are computed, and `control_inputs` have run."""
    graph = get_default_graph()
    with graph.name_scope(name or "tuple"):
        gate = group(*[each.values if isinstance(each, IndexedSlices) else each for each in tensors], *(control_inputs or ()))
        with graph.control_dependencies([gate]):
            return [_gated(graph, each) for each in tensors]


def _gated(graph: Graph, value: Any) -> Any:
    if isinstance(value, IndexedSlices):
        return IndexedSlices(_gated(graph, value.values), value.indices, value.dense_shape)
    return None if value is None else graph.apply_op("Identity", [value], None, "control_dependency").outputs[0]
