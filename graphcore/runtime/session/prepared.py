"""A run made ready: its feeds checked how, its program, its results put together how, and what it depends on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from graphcore.graph.model.node import Node, Tensor
from graphcore.plumbing import RECV, SEND
from graphcore.runtime.core.feeds import Feeder, make_feeder
from graphcore.runtime.core.fetches import FetchStructure
from graphcore.runtime.core.program import Program
from graphcore.runtime.session.specialise import Specialised

_MEETING_OPS: Final = SEND | RECV


class Prepared:
    """What a session keeps for one set of feeds and fetches.

    Attributes:
        version: the graph's version that it is known to fit.
        names: the nodes that it depends on; a change of one of them makes it unfit.
        meets: whether its nodes send or receive.
        specialised: the plans for the very shapes that are fed, None where that makes no difference.
    """

    __slots__ = ("feeders", "feeds", "meets", "names", "program", "specialised", "structure", "version")

    def __init__(self, version: int, program: Program, structure: FetchStructure, feeds: Sequence[Tensor], needed: Iterable[Node]) -> None:
        self.version = version
        self.program = program
        self.specialised: Specialised | None = None
        self.structure = structure
        self.feeds = feeds
        self.feeders: list[Feeder] = [make_feeder(tensor) for tensor in feeds]
        needed = list(needed)
        self.names = frozenset(
            [
                *(node.name for node in needed),
                *(tensor.node.name for tensor in (*feeds, *structure.tensors)),
                *(node.name for node in structure.targets),
            ]
        )
        self.meets = meets(needed)

    def finish(self, results: list[Any]) -> Any:
        """The results as the caller gets them: arrays of his own, scalars as NumPy's, in the structure that he asked in."""
        for i, value in enumerate(results):
            if type(value) is np.ndarray:
                if not value.ndim:
                    results[i] = value[()]
                elif value.base is not None or not value.flags.writeable:
                    results[i] = value.copy()
        if len(results) > 1 and len(set(map(id, results))) < len(results):
            _tell_apart(results)
        return self.structure.pack(results)

    def program_for(self, values: Sequence[Any]) -> Program:
        """What to run on `values`."""
        return self.program if self.specialised is None else self.specialised.plan_for(values)

    def close(self) -> None:
        """Give free what the programs hold."""
        self.program.close()
        if self.specialised is not None:
            self.specialised.close()


def meets(nodes: Iterable[Node]) -> bool:
    """Whether any of `nodes` sends or receives."""
    return any(node.op in _MEETING_OPS for node in nodes)


def _tell_apart(results: list[Any]) -> None:
    """What was fetched twice is two arrays: changing one is not to change the other."""
    seen: set[int] = set()
    for i, value in enumerate(results):
        if id(value) in seen and isinstance(value, np.ndarray):
            results[i] = value.copy()
        seen.add(id(value))
