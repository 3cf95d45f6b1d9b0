"""The calls of a computation by the names and lines of their picture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from graphcore.api.gradients.explanation import GradientCut
from graphcore.frontends.foreign import ForeignGraph, ForeignNode
from graphcore.frontends.lowering import lower
from graphcore.frontends.record import foreign_of
from graphcore.frontends.torch_calls.autograd import CallFacts, GradientRecorder
from graphcore.frontends.torch_calls.backward import Failure
from graphcore.graph import Node
from graphcore.source import SourceLocation

Ref = tuple[str, int]
"""A tensor: the node that gives it, and the number of the output."""


class Forward:
    """The calls of a computation.

    Args:
        source: the graph of them all.
        recorder: what autograd does with them.
        results: the results.

    Attributes:
        nodes: the calls, inputs first, by their names in `source`.
        takers: for each tensor the calls that take it.
        before: the tensors that the results are computed from, and themselves.
    """

    def __init__(self, source: ForeignGraph, recorder: GradientRecorder, results: Sequence[Any]) -> None:
        self.recorder = recorder
        graph = lower(source)
        record = foreign_of(graph)
        assert record is not None
        self._made: dict[str, Node] = {node.name: made for name, node in record.nodes.items() if (made := graph.find(name)) is not None}
        self.nodes: dict[str, ForeignNode] = {node.name: node for node in recorder.nodes}
        self.takers: dict[Ref, list[str]] = {}
        for node in recorder.nodes:
            for ref in node.inputs:
                if ref is not None:
                    self.takers.setdefault(ref, []).append(node.name)
        self.results: list[Ref] = [recorder.ref(tensor) for tensor in results]
        self.before = self._upstream(self.results)

    def facts(self, node: str) -> CallFacts | None:
        """The facts about a call, None for a tensor that is given."""
        return self.recorder.facts.get(node)

    def outputs(self, node: str) -> list[Ref]:
        """The tensors that a call gives."""
        return [(node, place) for place in range(len(self.nodes[node].outputs))]

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

    def cut(self, kind: str, node: str, reason: str, path: Iterable[str] = ()) -> GradientCut:
        """A place where gradients stop, by the names of the picture."""
        return GradientCut(
            kind=kind,
            node=self.shown(node),
            op=self.op(node),
            reason=reason,
            source=self.source(node),
            path=tuple([self.shown(name) for name in path]),
        )

    def changed_in_place(self, failed: Failure) -> Iterator[GradientCut]:
        """The call to blame for an error of the backward pass."""
        if failed.node:
            yield self.cut("changed in place", failed.node, "changes a tensor in place whose value the backward pass needs as it was")

    def path(self, start: Ref, end: str) -> list[str]:
        """A shortest way from a tensor to a call, by calls; () if there is none."""
        before: dict[str, str] = {start[0]: ""}
        waiting = [start]
        for ref in waiting:
            if end in before:
                break
            for taker in self.takers.get(ref, ()):
                if taker not in before:
                    before[taker] = ref[0]
                    waiting += self.outputs(taker)
        found = [end] if end in before else []
        while found and before[found[-1]]:
            found.append(before[found[-1]])
        return found[::-1]

    def path_to_result(self, start: Ref) -> list[str]:
        """A shortest way from a tensor to the first result that is computed from it."""
        paths = [path for result, _ in self.results if (path := self.path(start, result))]
        return min(paths, key=len, default=[])

    def _upstream(self, refs: Iterable[Ref]) -> set[Ref]:
        found: set[Ref] = set()
        pending = list(refs)
        while pending:
            ref = pending.pop()
            if ref not in found:
                found.add(ref)
                pending += [taken for taken in self.nodes[ref[0]].inputs if taken is not None]
        return found
