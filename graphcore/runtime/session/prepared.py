"""A prepared run: feeders, program, result structure, and dependencies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from graphcore.graph.model.node import Node, Tensor
from graphcore.plumbing import RECV, SEND
from graphcore.runtime.backends.work import Built
from graphcore.runtime.core.feeds import Feeder, make_feeder
from graphcore.runtime.core.fetches import FetchStructure
from graphcore.runtime.core.program import Program
from graphcore.runtime.functions.specialise import Specialised

_RENDEZVOUS_OPS: Final = SEND | RECV


class Prepared:
    """The cached preparation of one set of feeds and fetches.

    Attributes:
        version: the version of the graph that it fits.
        names: the nodes that it depends on, whose changes invalidate it.
        uses_rendezvous: True if its nodes send or receive.
        program, device: what does the run; see `Built`.
        specialised: the plans for specific shapes of feeds, None if these do not pay.
        open_feeds: the places and names of the feeds whose shapes the graph does not know.
    """

    __slots__ = (
        "device",
        "feeders",
        "feeds",
        "names",
        "open_feeds",
        "program",
        "specialised",
        "structure",
        "uses_rendezvous",
        "version",
    )

    def __init__(self, version: int, built: Built, structure: FetchStructure, feeds: Sequence[Tensor], needed: Iterable[Node]) -> None:
        self.version = version
        self.program = built.program
        self.device = built.device
        self.specialised: Specialised | None = None
        self.structure = structure
        self.feeds = feeds
        self.feeders: list[Feeder] = [make_feeder(tensor) for tensor in feeds]
        self.open_feeds = [(place, tensor.name) for place, tensor in enumerate(feeds) if not tensor.shape.is_fully_defined]
        needed = list(needed)
        self.names = frozenset(
            [
                *(node.name for node in needed),
                *(tensor.node.name for tensor in (*feeds, *structure.tensors)),
                *(node.name for node in structure.targets),
            ]
        )
        self.uses_rendezvous = uses_rendezvous(needed)

    def finish(self, results: list[Any]) -> Any:
        """The results for the caller: separate arrays, NumPy scalars, in the structure of the fetches."""
        for i, value in enumerate(results):
            if type(value) is np.ndarray:
                if not value.ndim:
                    results[i] = value[()]
                elif value.base is not None or not value.flags.writeable:
                    results[i] = value.copy()
        if len(results) > 1 and len(set(map(id, results))) < len(results):
            _copy_repeated(results)
        return self.structure.pack(results)

    def program_for(self, values: Sequence[Any]) -> Program:
        """The program for `values`."""
        return self.program if self.specialised is None else self.specialised.plan_for(values)

    def close(self) -> None:
        """Release the resources of the programs."""
        self.program.close()
        if self.specialised is not None:
            self.specialised.close()


def uses_rendezvous(nodes: Iterable[Node]) -> bool:
    """True iff any of `nodes` sends or receives."""
    return any(node.op in _RENDEZVOUS_OPS for node in nodes)


def _copy_repeated(results: list[Any]) -> None:
    """Copy arrays that were fetched twice, so that they can be changed separately."""
    seen: set[int] = set()
    for i, value in enumerate(results):
        if id(value) in seen and isinstance(value, np.ndarray):
            results[i] = value.copy()
        seen.add(id(value))
