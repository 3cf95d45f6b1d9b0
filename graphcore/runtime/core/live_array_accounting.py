"""How many bytes the arrays of a recorded run hold."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

import numpy as np

from graphcore.dtypes import resource
from graphcore.graph.model.node import Node
from graphcore.runtime.core.program import Step


class Holdings:
    """Counts arrays from when a node gives them to when they are gone.

    A view counts as what it looks at. What belongs to somebody else does not count: what was fed, constants, the values of variables;
    nor do values without axes.

    Args:
        step: the run.
        given: what it was given.
    """

    __slots__ = ("__weakref__", "_given", "_sizes", "_step")

    def __init__(self, step: Step, given: Iterable[Any] = ()) -> None:
        self._step = step
        self._given = {id(_owner(value)) for value in given}
        self._sizes: dict[int, tuple[Any, int]] = {}

    def add(self, values: Iterable[Any]) -> None:
        """A node gave `values`."""
        for value in values:
            if type(value) is not np.ndarray or not value.ndim:
                continue
            owner = value if value.base is None else _owner(value)
            if id(owner) not in self._sizes and owner.flags.writeable and id(owner) not in self._given:
                self._add(owner)

    def settle(self) -> None:
        """A node has run that may give arrays to variables: what a variable has taken, which is read-only from then on, is its own."""
        for identity, (reference, size) in list(self._sizes.items()):
            array = reference()
            if array is not None and not array.flags.writeable and self._sizes.pop(identity, None) is not None:
                self._step.hold(-size)

    def close(self) -> None:
        """The run is over: what it gives belongs to who called it."""
        self._step.hold(-sum([size for _, size in list(self._sizes.values())]))
        self._sizes.clear()

    def _add(self, array: Any) -> None:
        identity, sizes, step = id(array), self._sizes, self._step

        def gone(_reference: Any) -> None:
            found = sizes.pop(identity, None)
            if found is not None:
                step.hold(-found[1])

        sizes[identity] = (weakref.ref(array, gone), array.nbytes)
        step.hold(array.nbytes)


def gives_to_variables(node: Node) -> bool:
    """Whether an array that `node` takes may be the value of a variable afterwards."""
    return node.op_def.is_stateful or any(dtype.is_ref or dtype is resource for dtype in node.input_types)


def _owner(value: Any) -> Any:
    """The array whose memory `value` uses."""
    while type(value) is np.ndarray and type(value.base) is np.ndarray:
        value = value.base
    return value
