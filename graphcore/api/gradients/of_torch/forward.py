"""The calls of a computation by the names and lines of their picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from graphcore.api.gradients.explanation import GradientCut
from graphcore.frontends.foreign import ForeignGraph, GradientEnd
from graphcore.frontends.lowering import lower
from graphcore.frontends.record import foreign_of
from graphcore.frontends.torch_calls.autograd import GradientRecorder
from graphcore.frontends.torch_calls.backward import Failure
from graphcore.frontends.torch_calls.ways import Ref, Ways
from graphcore.graph import Node
from graphcore.source import SourceLocation


class Forward(Ways):
    """The calls of a computation, by the names of their picture.

    Args:
        source: the graph of them all.
        recorder: what autograd does with them.
        results: the results.
    """

    def __init__(self, source: ForeignGraph, recorder: GradientRecorder, results: Sequence[Any]) -> None:
        super().__init__(recorder, results)
        graph = lower(source)
        record = foreign_of(graph)
        assert record is not None
        self._made: dict[str, Node] = {node.name: made for name, node in record.nodes.items() if (made := graph.find(name)) is not None}

    def shown(self, node: str) -> str:
        """The name of a node in the picture."""
        made = self._made.get(node)
        return node if made is None else made.name

    def name(self, ref: Ref) -> str:
        """The name of a tensor in the picture."""
        return f"{self.shown(ref[0])}:{ref[1]}"

    def op(self, node: str) -> str:
        """The op of a node."""
        made = self._made.get(node)
        return "" if made is None else made.op

    def source(self, node: str) -> SourceLocation | None:
        """The line that made a node."""
        made = self._made.get(node)
        return None if made is None else made.source

    def cut(self, end: GradientEnd) -> GradientCut:
        """A place where gradients stop, by the names of the picture."""
        return GradientCut(
            kind=end.kind,
            node=self.shown(end.node),
            op=self.op(end.node),
            reason=end.reason,
            source=self.source(end.node),
            path=tuple([self.shown(name) for name in end.path]),
        )

    def changed_in_place(self, failed: Failure) -> Iterator[GradientCut]:
        """The call to blame for an error of the backward pass."""
        if failed.node:
            yield self.cut(
                GradientEnd("changed in place", failed.node, "changes a tensor in place whose value the backward pass needs as it was")
            )
