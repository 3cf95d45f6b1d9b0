"""Calls in `%graph values model(x)`, which are run once with their values."""

from __future__ import annotations

from graphcore.api.run import run_of
from graphcore.frontends.frontend import Call
from graphcore.frontends.jax_call import array_versions
from graphcore.frontends.record import is_earlier
from graphcore.frontends.torch_call import tensor_versions
from graphcore.graph import Graph
from kernelext.graph_sources import NamedGraph
from kernelext.traced_calls import key_of


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
        return key_of(call), tensor_versions(call), array_versions(call)
