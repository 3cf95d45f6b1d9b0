"""Calls of a computation as a graph of tensors: what takes them, and ways between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from graphcore.frontends.foreign import ForeignNode
from graphcore.frontends.torch_calls.autograd import CallFacts, GradientRecorder

Ref = tuple[str, int]
"""A tensor: the node that gives it, and the number of the output."""


class Ways:
    """The calls of a computation.

    Args:
        recorder: the record of them.
        results: the results.

    Attributes:
        nodes: the calls, inputs first, by their names.
        takers: for each tensor the calls that take it.
        results: the results as outputs of nodes.
        before: the tensors that the results are computed from, and themselves.
    """

    def __init__(self, recorder: GradientRecorder, results: Sequence[Any]) -> None:
        self.recorder = recorder
        self.results: list[Ref] = [recorder.ref(tensor) for tensor in results]
        self.nodes: dict[str, ForeignNode] = {node.name: node for node in recorder.nodes}
        self.takers: dict[Ref, list[str]] = {}
        for node in recorder.nodes:
            for ref in node.inputs:
                if ref is not None:
                    self.takers.setdefault(ref, []).append(node.name)
        self.before = self._upstream(self.results)

    def facts(self, node: str) -> CallFacts | None:
        """The facts about a call, None for a tensor that is given."""
        return self.recorder.facts.get(node)

    def sources(self, node: str) -> list[Ref]:
        """The tensors to which autograd follows a call: for the last one in a custom function its own."""
        facts = self.facts(node)
        if facts is None or facts.custom is None:
            return [ref for ref in self.nodes[node].inputs if ref is not None]
        return [(self.recorder.owner(function), number) for function, number in facts.custom.next_functions if function is not None]

    def outputs(self, node: str) -> list[Ref]:
        """The tensors that a call gives."""
        return [(node, place) for place in range(len(self.nodes[node].outputs))]

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
        path = [end] if end in before else []
        while path and before[path[-1]]:
            path.append(before[path[-1]])
        return path[::-1]

    def path_to_result(self, start: Ref) -> list[str]:
        """A shortest way from a tensor to the first result that is computed from it."""
        paths = [path for result, _ in self.results if (path := self.path(start, result))]
        return min(paths, key=len, default=[])

    def _upstream(self, refs: Iterable[Ref]) -> set[Ref]:
        upstream: set[Ref] = set()
        pending = list(refs)
        while pending:
            ref = pending.pop()
            if ref not in upstream:
                upstream.add(ref)
                pending += [taken for taken in self.nodes[ref[0]].inputs if taken is not None]
        return upstream
