"""Nodes that may wait for others of the same run, which they must not block."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextvars import copy_context
from typing import Any, Final
from weakref import WeakKeyDictionary

from graphcore.definitions import FunctionDef
from graphcore.functions import FunctionLibraryDefinition
from graphcore.graph.model.node import Node
from graphcore.kernel_context import Done
from graphcore.passes.optimize.redundant_calls import run_by
from graphcore.registry import Kernel
from graphcore.runtime.core.cancellation import CancellationManager
from graphcore.runtime.core.program import Step, current
from graphcore.runtime.core.timed_run import under_way
from graphcore.support.critical_section import critical_section

_known: Final[WeakKeyDictionary[FunctionLibraryDefinition, tuple[int, frozenset[str]]]] = WeakKeyDictionary()


def first_waiting(nodes: Iterable[Node]) -> Node | None:
    """The first of `nodes` that may wait for another, None if there is none."""
    return next((node for node in nodes if node.registration.waits or calls_waiting_function(node)), None)


def calls_waiting_function(node: Node) -> bool:
    """True iff `node` calls a function that may wait."""
    library = node.graph.library
    if not library.num_functions:
        return False
    waiting = _waiting_functions(library)
    return bool(waiting) and not waiting.isdisjoint(run_by(node))


def _waiting_functions(library: FunctionLibraryDefinition) -> frozenset[str]:
    """The functions of `library` that may wait, directly or through calls."""
    version, names = _known.get(library, (-1, frozenset[str]()))
    if version != library.version:
        version = library.version
        direct = {function.name for function in library if _has_waiting_node(function, library)}
        names = frozenset(
            [
                function.name
                for function in (library if direct else ())
                if function.name in direct or any(inner.name in direct for inner in library.reachable_definitions(function))
            ]
        )
        _known[library] = version, names
    return names


def _has_waiting_node(function: FunctionDef, library: FunctionLibraryDefinition) -> bool:
    registry = library.default_registry
    return any(node.op in registry and registry.look_up(node.op).waits for node in function.node_def)


class ThreadedCall:
    """A call of a function that may wait, in a thread of its own: see `Pending`.

    Args:
        kernel: calls the function.
        inputs: its inputs.
    """

    __slots__ = ("_call", "_cancellation", "_kernel", "_step")

    def __init__(self, kernel: Kernel, *inputs: Any) -> None:
        self._kernel = kernel
        self._call = inputs
        self._cancellation = CancellationManager()
        self._step = (current.step or Step()).for_thread(self._cancellation)

    def begin(self, done: Done) -> None:
        """See `Pending.begin`."""
        call = copy_context().run  # NumPy keeps its floating-point error handling in the context
        critical_section.start(threading.Thread(target=call, args=(self._work, done), name="graphcore-function-call", daemon=True))

    def cancel(self) -> None:
        """See `Pending.cancel`: the call ends before its next node, and waits are ended at once."""
        self._cancellation.start_cancel()

    def _work(self, done: Done) -> None:
        try:
            with under_way(self._step):
                outputs = self._kernel(*self._call)
        except Exception as error:  # noqa: BLE001 - the waiter gets it
            done(None, error)
        else:
            done(outputs, None)
