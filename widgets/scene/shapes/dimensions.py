"""Dimensions of a picture's tensors that are the same number, including those inside open calls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from graphcore.dtypes import INVALID
from widgets.scene.boxes import Visible
from widgets.scene.calls import CallBody, callee_arguments, is_choice, is_loop, is_loop_invariant
from widgets.scene.shapes.unknowns import MAX_NODES, UNKNOWN, unknown_classes, unknown_text
from widgets.scene.types import Dim

if TYPE_CHECKING:
    from graphcore.graph import Graph, Node, Tensor


class Dimensions:
    """Keys for dimensions: equal keys mean the same dimension.

    Args:
        graph: the graph of the picture.
        visible: its open scopes and calls.
    """

    def __init__(self, graph: Graph, visible: Visible) -> None:
        self._parents: dict[str, str] = {}
        self._classes: dict[str, tuple[str, ...]] = {}
        self._unknown: list[str] = []
        self._take_in(graph, "")
        for call in visible.calls.values():
            for body in call.bodies():
                self._take_in(body.graph, body.path)
                for index, (arg, given) in enumerate(zip(body.args, callee_arguments(call.node) or (), strict=False)):
                    self._join(given, arg.outputs[0], call.node if is_loop(call.node) else None, index)
                self._join_results(call.node, body)
        self._names = self._names_outside(visible)
        numbers: dict[str, int] = {}
        for root in map(self._root, self._unknown):
            if root not in self._names:
                numbers.setdefault(root, len(numbers))
        self._names = {key: unknown_text(number) for key, number in numbers.items()} | self._names

    def of(self, tensor: Tensor) -> list[Dim]:
        """The dimensions of a tensor, none if its rank is unknown."""
        if tensor.shape.dims is None:
            return []
        sizes = tensor.graph.size_texts(tensor)
        keys = [self._root(key) for key in self._keys(tensor)]
        return [Dim(text=self._names.get(key, text) if text == UNKNOWN else text, key=key) for text, key in zip(sizes, keys, strict=True)]

    def shape_text(self, tensor: Tensor) -> str:
        """The shape of a tensor in this picture: `[?1,10]`, `?` for an unknown rank."""
        return UNKNOWN if tensor.shape.dims is None else f"[{','.join([dim.text for dim in self.of(tensor)])}]"

    def label(self, tensor: Tensor) -> str:
        """Type and shape of a tensor in this picture: `float [?1,10]`; "" for an unknown type."""
        return "" if tensor.dtype is INVALID else f"{tensor.dtype.text} {self.shape_text(tensor)}"

    def common(self, tensors: Iterable[Tensor]) -> list[Dim]:
        """The dimensions shared by several tensors; others are left out."""
        found = [self.of(tensor) for tensor in tensors]
        return found[0] if found and all(other == found[0] for other in found) else []

    def _names_outside(self, visible: Visible) -> dict[str, str]:
        """The names of unknown sizes outside of open calls; inside they have none of their own."""
        names: dict[str, str] = {}
        for tensor in visible.given.values():
            sizes = tensor.graph.size_texts(tensor) if tensor.shape.dims is not None else []
            for key, text in zip(self._keys(tensor), sizes, strict=True):
                if text != UNKNOWN:
                    names.setdefault(self._root(key), text)
        return names

    def _take_in(self, graph: Graph, space: str) -> None:
        if len(graph) <= MAX_NODES:
            for name, classes in graph.dimension_classes().items():
                self._classes[name] = tuple([f"{space}#{number}" for number in classes])
            self._unknown.extend([f"{space}#{number}" for number in unknown_classes(graph)])

    def _keys(self, tensor: Tensor) -> tuple[str, ...]:
        known = self._classes.get(tensor.name)
        if known is not None:
            return known
        handles = tensor.node.output_handles
        dims = handles[tensor.index].dims if tensor.index < len(handles) else None
        return tuple([f"@{id(dim)}" for dim in dims or ()])

    def _join(self, outside: Tensor, inside: Tensor, loop: Node | None = None, index: int = 0) -> None:
        """Identify the dimensions of two shapes, with the outer one's keys. In a loop, only loop invariants."""
        for position, (a, b) in enumerate(zip(self._keys(outside), self._keys(inside), strict=False)):
            if loop is None or is_loop_invariant(loop, index, position):
                self._parents[self._root(b)] = self._root(a)

    def _join_results(self, node: Node, body: CallBody) -> None:
        """Identify the results of a call with the returns of its body."""
        if is_choice(node):
            for ret, output in zip(body.rets, node.outputs, strict=False):
                self._join_choice(output, ret.inputs[0], body.path)
        elif body.callee.label != "cond":
            for index, (ret, output) in enumerate(zip(body.rets, node.outputs, strict=False)):
                self._join(output, ret.inputs[0], node if is_loop(node) else None, index)

    def _join_choice(self, outside: Tensor, inside: Tensor, space: str) -> None:
        """Identify known sizes made in a branch. Other sizes are kept: branches may return different ones."""
        for size, a, b in zip(outside.shape.dims or (), self._keys(outside), self._keys(inside), strict=False):
            root = self._root(b)
            if size is not None and root.startswith(f"{space}#"):
                self._parents[root] = self._root(a)

    def _root(self, key: str) -> str:
        while (parent := self._parents.get(key, key)) != key:
            key = parent
        return key
