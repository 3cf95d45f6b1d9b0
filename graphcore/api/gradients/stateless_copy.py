"""A stateless copy of the nodes that some tensors need, optionally in another precision."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import msgspec
import numpy as np

from graphcore.attrs import AttrValue, Func, TensorValue
from graphcore.definitions import GraphDef, NodeDef
from graphcore.dtypes import DType, complex64, complex128, float64
from graphcore.graph import Graph, Node, Tensor, import_graph_def


class StatelessCopy:
    """A copy of nodes under the same names in a new graph.

    Variables, reads of variables and given tensors become placeholders, so that the copy is stateless.

    Args:
        wanted: the tensors to copy.
        fed: tensors with values from outside; nodes that only they need are left out.
        precision: the floating dtype that replaces all others; complex dtypes follow it.
    """

    def __init__(self, wanted: Sequence[Tensor], fed: Collection[Tensor], precision: DType | None) -> None:
        source = wanted[0].graph
        self.precision = precision
        self.variables: list[Tensor] = []
        nodes = self._collect(wanted, fed)
        self.graph = Graph(source.registry)
        self.nodes = nodes
        library = source.library.to_proto()
        import_graph_def(GraphDef(node=tuple(nodes.values()), versions=source.versions, library=library), self.graph)
        self.graph.seed = source.seed

    def of(self, tensor: Tensor) -> Tensor:
        """The copy of `tensor`."""
        return self.graph.get_tensor_by_name(tensor.name)

    def holds(self, tensor: Tensor) -> bool:
        """True iff the copy needs that tensor's node."""
        return tensor.node.name in self.nodes

    def value(self, tensor: Tensor, value: Any) -> Any:
        """Convert a value for `tensor` to the precision of its copy."""
        copy = self.of(tensor)
        if copy.dtype.base is tensor.dtype.base or copy.dtype.as_numpy is None:
            return value
        return np.asarray(value).astype(copy.dtype.as_numpy)

    def _collect(self, wanted: Sequence[Tensor], fed: Collection[Tensor]) -> dict[str, NodeDef]:
        node_defs: dict[str, NodeDef] = {}
        seen: set[Node] = set()
        pending = [tensor.node for tensor in wanted]
        while pending:
            node = pending.pop()
            if node in seen:
                continue
            seen.add(node)
            is_fed = len(node.outputs) == 1 and node.outputs[0] in fed
            if not is_fed and _is_variable(node):
                self.variables.append(node.outputs[0])
            if is_fed or _is_variable(node):
                node_defs[node.name] = self._converted(_placeholder(node.outputs[0]))
                continue
            node_defs[node.name] = self._converted(node.node_def)
            pending.extend(tensor.node for tensor in node.inputs)
            pending.extend(node.control_inputs)
        return node_defs

    def _converted(self, node: NodeDef) -> NodeDef:
        if self.precision is None:
            return node
        return msgspec.structs.replace(node, attr={name: self._attr(value) for name, value in node.attr.items()})

    def _attr(self, value: AttrValue) -> AttrValue:
        if isinstance(value, DType):
            return self._dtype(value)
        if isinstance(value, TensorValue):
            dtype = self._dtype(value.dtype)
            return value if dtype is value.dtype else TensorValue(value.array.astype(dtype.as_numpy), dtype)
        if isinstance(value, tuple):
            return tuple([self._attr(item) for item in value])
        if isinstance(value, Func):
            return Func(value.name, {name: self._attr(item) for name, item in value.attr.items()})
        return value

    def _dtype(self, dtype: DType) -> DType:
        assert self.precision is not None
        if dtype.base.is_complex:
            target = complex128 if self.precision is float64 else complex64
        else:
            target = self.precision if dtype.base.is_floating else dtype.base
        return target.ref if dtype.is_ref else target


def _placeholder(tensor: Tensor) -> NodeDef:
    attrs: dict[str, AttrValue] = {"dtype": tensor.dtype.base, "shape": tensor.shape}
    return NodeDef(tensor.node.name, "Placeholder", (), "", attrs)


def _is_variable(node: Node) -> bool:
    """True iff a node gives a variable or the value of one."""
    traits = node.registration.traits
    return traits.reads_variable == "whole" or (traits.role == "variable" and node.output_types[0].is_ref)
