"""Calls in `%graph values model(x)`, which are run once with their values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final
from zlib import crc32

import numpy as np

from graphcore.api.run import run_of
from graphcore.frontends.frontend import Call
from graphcore.frontends.function_values import values_used_by
from graphcore.frontends.jax_call import array_versions
from graphcore.frontends.record import is_earlier
from graphcore.frontends.torch_reader.objects import is_class
from graphcore.graph import Graph
from kernelext.graph_sources import NamedGraph
from kernelext.traced_calls import key_of

_MAX_DEPTH: Final = 8


class RecordedCall(NamedGraph):
    """The graph of a call as it was run, as long as nothing has changed on which the run depends.

    Afterwards it is that of the call as it is traced then, without values: those of the run are of an earlier version.
    """

    _run: tuple[object, Graph] | None = None

    def _traced(self, call: Call) -> Graph:
        self.is_call = True
        if self._run is None:
            run = run_of(call)
            assert run is not None, "the call is one that a frontend reads"
            self._run = self._state(call), run.graph  # a module may change at its first call, so that its state is taken after the run
            self._read = self._run[0], call, run.graph
        state, graph = self._run
        if state == self._state(call):
            return graph
        traced = super()._traced(call)
        is_earlier.set(traced, True)
        return traced

    def _state(self, call: Call) -> object:
        return key_of(call), versions_of(call), array_versions(call)


def versions_of(call: Call) -> tuple[object, ...]:
    """A key that changes with the elements of the tensors, arrays and modules that a call takes or uses."""
    values = [call.function, *call.args, *call.kwargs.values()]
    return tuple([_version(array) for value in (*values, *_used_by(values)) for array in _arrays_in(value, 0)])


def _used_by(values: list[Any]) -> Iterator[Any]:
    for value in values:
        yield from values_used_by(value)


def _arrays_in(value: Any, depth: int) -> Iterator[Any]:
    if is_class(value, "Module", "torch.nn"):
        yield from [*value.parameters(), *value.buffers()]
    elif isinstance(value, Mapping) and depth < _MAX_DEPTH:
        for item in value.values():
            yield from _arrays_in(item, depth + 1)
    elif isinstance(value, list | tuple) and depth < _MAX_DEPTH:
        for item in value:
            yield from _arrays_in(item, depth + 1)
    elif hasattr(type(value), "dtype") and hasattr(type(value), "shape"):
        yield value


def _version(array: Any) -> object:
    """The identity of an array, and a number that changes with its elements. Arrays of JAX never change."""
    if isinstance(array, np.ndarray):
        return id(array), 0 if array.dtype.hasobject else crc32(np.ascontiguousarray(array).data.cast("B") if array.size else b"")
    return id(array), getattr(array, "_version", 0)
