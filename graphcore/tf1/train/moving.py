"""Steps of moving averages, also of those that replicas of a model share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from graphcore.dtypes import DType
from graphcore.graph import Tensor, get_default_graph
from graphcore.tf1.variables.variables import Variable


class SharedAverages:
    """The moving averages of variables that replicas share.

    Each replica moves them by its weight, from the value before the step: all together as far as one process does.

    Args:
        are_shared: True for a variable that the replicas share.
    """

    def __init__(self, are_shared: Callable[[Variable], bool]) -> None:
        self._are_shared = are_shared
        self._read: dict[int, Tensor] = {}
        self._weight: Callable[[DType], Tensor] | None = None

    @contextmanager
    def of_one_replica(self, weight: Callable[[DType], Tensor]) -> Iterator[None]:
        """Build the updates of a replica. weight: gives its weight as a scalar of a dtype."""
        self._weight = weight
        token = _SHARED.set(self)
        try:
            yield
        finally:
            _SHARED.reset(token)

    def part(self, average: Variable, rest: Tensor) -> tuple[Any, Tensor]:
        """The value of an average before the step, and the part of the distance that this replica moves it."""
        if self._weight is None or not self._are_shared(average):
            return average, rest
        graph = get_default_graph()
        before = self._read.get(id(average))
        if before is None or before.graph is not graph:  # the body of a loop or branch reads on its own
            before = self._read[id(average)] = average.value()
        return before, rest * self._weight(average.dtype)


_SHARED: Final[ContextVar[SharedAverages | None]] = ContextVar("_SHARED", default=None)


def move(average: Variable, value: Any, rest: Tensor, name: str | None = None) -> Tensor:
    """Move a variable towards a value by a part of the distance.

    A replica moves a variable that it shares with others by its weight.

    Args:
        average: the variable.
        value: where it moves.
        rest: the part of the distance.
        name: the name of the node.
    """
    shared = _SHARED.get()
    before, part = (average, rest) if shared is None else shared.part(average, rest)
    moved: Tensor = average.assign_sub((before - value) * part, name=name)
    return moved
