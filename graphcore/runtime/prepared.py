"""A run made ready: its feeds checked how, its program, its results put together how, and what it depends on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from graphcore.graph.node import Node, Tensor
from graphcore.runtime.feeds import Feeder, make_feeder
from graphcore.runtime.fetches import FetchStructure
from graphcore.runtime.program import Program

_MEETING_OPS: Final = frozenset({"_Send", "_Recv", "_HostSend", "_HostRecv"})


class Prepared:
    """What a session keeps for one set of feeds and fetches.

    Attributes:
        version: the graph's version that it is known to fit.
        names: the nodes that it depends on; a change of one of them makes it unfit.
        meets: whether its nodes send or receive.
    """

    __slots__ = ("feeders", "feeds", "meets", "names", "program", "structure", "version")

    def __init__(self, version: int, program: Program, structure: FetchStructure, feeds: Sequence[Tensor], needed: Iterable[Node]) -> None:
        self.version = version
        self.program = program
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
        self.meets = any(node.op in _MEETING_OPS for node in needed)

    def finish(self, results: list[Any]) -> Any:
        """The results as the caller gets them: arrays of his own, in the structure that he asked in."""
        for i, value in enumerate(results):
            if type(value) is np.ndarray and (value.base is not None or not value.flags.writeable):
                results[i] = value.copy()
        return self.structure.pack(results)

    def close(self) -> None:
        """Give free what the program holds."""
        self.program.close()
