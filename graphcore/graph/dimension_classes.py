"""Equality classes of dimensions, found by repeating inference and recording merges."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from weakref import WeakKeyDictionary

from graphcore.errors import GraphError
from graphcore.graph.model.node import Node
from graphcore.graph.shapes.live_refiner import LiveContext
from graphcore.graph.shapes.shaped_graph import ShapedGraph
from graphcore.inference import DimensionHandle, ShapeHandle
from graphcore.inference.shape_fns.common_shape_fns import broadcast_binary_op_shape_fn, select_v2_shape

_KNOWN: Final[WeakKeyDictionary[ShapedGraph, tuple[int, dict[str, tuple[int, ...]]]]] = WeakKeyDictionary()
"""The last results, with the version of the graph: a picture and its smaller forms ask the same."""
_BROADCASTING = (broadcast_binary_op_shape_fn, select_v2_shape)


class _Classes:
    """Disjoint sets of dimensions, joined step by step."""

    __slots__ = ("_dims", "_parents")

    def __init__(self) -> None:
        self._parents: dict[int, int] = {}
        self._dims: list[DimensionHandle] = []  # an id is unique only while its handle lives

    def find(self, dim: DimensionHandle) -> int:
        """The representative of the set of `dim`."""
        parents, root = self._parents, id(dim)
        if root not in parents:
            self._dims.append(dim)
            parents[root] = root
            return root
        while parents[root] != root:
            parents[root] = parents[parents[root]]
            root = parents[root]
        return root

    def join(self, first: DimensionHandle, second: DimensionHandle) -> None:
        """Join the sets of two dimensions."""
        self._parents[self.find(first)] = self.find(second)

    def join_shapes(self, first: ShapeHandle | None, second: ShapeHandle | None) -> None:
        """Join the dimensions of two equal shapes."""
        if first is None or second is None or first.dims is None or second.dims is None:
            return
        for a, b in zip(first.dims, second.dims, strict=False):
            self.join(a, b)


class _Watching(LiveContext):
    """A context that reports the merges of its shape function."""

    __slots__ = ("classes",)

    classes: _Classes

    def merge_dim(self, first: DimensionHandle, second: DimensionHandle) -> DimensionHandle:
        """Merge and report."""
        merged = super().merge_dim(first, second)
        self.classes.join(first, second)
        return merged

    def merge(self, first: ShapeHandle, second: ShapeHandle) -> ShapeHandle:
        """Merge and report."""
        merged = super().merge(first, second)
        self.classes.join_shapes(first, second)
        return merged


def dimension_classes(graph: ShapedGraph, names: Iterable[str] | None = None) -> dict[str, tuple[int, ...]]:
    """See `Graph.dimension_classes`."""
    version, classes = _KNOWN.get(graph, (-1, {}))
    if version != graph.version:
        classes = _found(graph)
        _KNOWN[graph] = graph.version, classes
    if names is None:
        return dict(classes)
    return {name: classes[name] for name in names if name in classes}


def _found(graph: ShapedGraph) -> dict[str, tuple[int, ...]]:
    """The classes of all outputs."""
    classes = _Classes()
    for node in graph.op_nodes():
        _watch(graph, node, classes)
    numbers: dict[int, int] = {}
    numbers_by_tensor: dict[str, tuple[int, ...]] = {}
    for node in graph.op_nodes():
        for index, handle in enumerate(node.output_handles):
            if handle.dims is not None:
                numbers_by_tensor[f"{node.name}:{index}"] = tuple(
                    [numbers.setdefault(classes.find(dim), len(numbers)) for dim in handle.dims]
                )
    return numbers_by_tensor


def _watch(graph: ShapedGraph, node: Node, classes: _Classes) -> None:
    if node.error is not None or any(tensor.index >= len(tensor.node.output_handles) for tensor in node.inputs):
        return
    context = _Watching(graph.refiner, node, [tensor.node.output_handles[tensor.index] for tensor in node.inputs])
    context.classes = classes
    try:
        graph.refiner.infer(context)
    except GraphError:
        return  # a node that cannot be inferred merges nothing
    for present, again in zip(node.output_handles, context.outputs, strict=True):
        classes.join_shapes(present, again)
    for index, other in node.like.items():
        if not isinstance(other, ShapeHandle):
            classes.join_shapes(node.output_handles[index], other.node.output_handles[other.index])
    if node.registration.shape_fn in _BROADCASTING:
        _join_broadcast(context.inputs, context.outputs[0], classes)


def _join_broadcast(inputs: list[ShapeHandle], output: ShapeHandle | None, classes: _Classes) -> None:
    """Join the broadcast dimensions of size above 1; those of size 1 are stretched."""
    if output is None or output.dims is None:
        return
    for shape in inputs:
        for dim, out in zip(reversed(shape.dims or ()), reversed(output.dims), strict=False):
            if dim.value == out.value and dim.value > 1:
                classes.join(dim, out)
