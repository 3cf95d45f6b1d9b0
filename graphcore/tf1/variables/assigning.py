"""Assignments to variables, as a whole and by rows, under TensorFlow 1's names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor, convert_to_tensor, get_default_graph
from graphcore.tf1.calls import named
from graphcore.tf1.variables.references import body_that_changes, handle_within, value_within
from graphcore.tf1.variables.variables import Variable


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
    """The variable, also from a reference; the reference itself if its variable exists as nodes only.

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


def _scattered(op: str, ref: Any, inputs: list[Any], use_locking: bool, name: str | None) -> Tensor:
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


if TYPE_CHECKING:

    class _Scatter(Protocol):
        def __call__(self, ref: Any, indices: Any, updates: Any, use_locking: bool = ..., name: str | None = None) -> Tensor:
            """The new value of a variable after a change of some rows or parts."""


def _scatter(function: str, op: str, doc: str, *, locking: bool = False) -> _Scatter:
    def call(ref: Any, indices: Any, updates: Any, use_locking: bool = locking, name: str | None = None) -> Tensor:
        return _scattered(op, ref, [indices, updates], use_locking, name)

    return named(call, function, f"{doc}; the result is the new value.")


scatter_update = _scatter("scatter_update", "ScatterUpdate", "Replace the rows `indices` of a variable by `updates`", locking=True)
scatter_add = _scatter("scatter_add", "ScatterAdd", "Add `updates` to the rows `indices` of a variable")
scatter_sub = _scatter("scatter_sub", "ScatterSub", "Subtract `updates` from the rows `indices` of a variable")
scatter_mul = _scatter("scatter_mul", "ScatterMul", "Multiply the rows `indices` of a variable by `updates`")
scatter_div = _scatter("scatter_div", "ScatterDiv", "Divide the rows `indices` of a variable by `updates`")
scatter_max = _scatter("scatter_max", "ScatterMax", "Replace the rows `indices` of a variable by the larger of both")
scatter_min = _scatter("scatter_min", "ScatterMin", "Replace the rows `indices` of a variable by the smaller of both")
scatter_nd_update = _scatter(
    "scatter_nd_update", "ScatterNdUpdate", "Replace the parts of a variable at index vectors by `updates`", locking=True
)
scatter_nd_add = _scatter("scatter_nd_add", "ScatterNdAdd", "Add `updates` to the parts of a variable at index vectors")
scatter_nd_sub = _scatter("scatter_nd_sub", "ScatterNdSub", "Subtract `updates` from the parts of a variable at index vectors")
