"""Slices of variables, which can be assigned to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from graphcore.graph import Tensor, convert_to_tensor, get_default_graph
from graphcore.tf1.variables.references import body_that_changes, handle_within, value_within

if TYPE_CHECKING:
    from graphcore.tf1.variables.variables import Variable

_MASKS: Final = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


class VariableSlice(Tensor, eq=False):
    """A part of a variable's value, as `v[1:3]` gives it.

    Args:
        variable: the variable.
    """

    variable: Variable

    def assign(self, value: Any, name: str | None = None) -> Tensor:
        """Replace this part of the variable at run time.

        Args:
            value: the new values, of the shape of the slice or one that is broadcast to it.
            name: the name of the node.

        Returns:
            The value of the whole variable after the change.
        """
        graph, variable, node = get_default_graph(), self.variable, self.node
        inputs = [*node.inputs[1:4], convert_to_tensor(graph, value, variable.dtype, f"value for a slice of '{variable.op.name}'")]
        attrs = {mask: node.get_attr(mask) for mask in _MASKS}
        name = name or f"{node.name}/_assign"
        body = body_that_changes(variable)
        if body is not None:
            changed = body.apply_op("ResourceStridedSliceAssign", [handle_within(variable, body), *inputs], attrs, name)
            return value_within(variable, body, changed)
        if not variable.is_resource:
            return graph.apply_op("StridedSliceAssign", [variable.handle, *inputs], attrs, name).outputs[0]
        changed = graph.apply_op("ResourceStridedSliceAssign", [variable.handle, *inputs], attrs, name)
        with graph.control_dependencies([changed]):
            return variable.read_value()


def slice_of(variable: Variable, key: Any) -> VariableSlice:
    """The part of a variable selected by `key`."""
    node = variable.as_tensor()[key].node
    variable_slice = VariableSlice(node, 0, variable)
    node.outputs = [variable_slice]  # the tensor of the node, by which runs know what is fetched and fed
    return variable_slice
