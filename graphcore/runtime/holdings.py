"""How many bytes the arrays of a recorded run hold, where it is not known beforehand when each is given free."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

import numpy as np

from graphcore.runtime.program import Step


class Holdings:
    """Counts arrays from when a node gives them to when they are gone. Views and values without axes hold nothing of their own.

    Args:
        step: the run.
    """

    __slots__ = ("__weakref__", "_sizes", "_step")

    def __init__(self, step: Step) -> None:
        self._step = step
        self._sizes: dict[int, tuple[Any, int]] = {}

    def add(self, values: Iterable[Any]) -> None:
        """A node gave `values`."""
        for value in values:
            if type(value) is np.ndarray and value.base is None and id(value) not in self._sizes:
                self._add(value)

    def close(self) -> None:
        """The run is over: what it gives belongs to who called it."""
        self._step.hold(-sum(size for _, size in self._sizes.values()))
        self._sizes.clear()

    def _add(self, array: Any) -> None:
        identity, sizes, step = id(array), self._sizes, self._step

        def gone(_reference: Any) -> None:
            found = sizes.pop(identity, None)
            if found is not None:
                step.hold(-found[1])

        sizes[identity] = (weakref.ref(array, gone), array.nbytes)
        step.hold(array.nbytes)
