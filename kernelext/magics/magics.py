"""Registers the magics with a shell, and takes them out again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, Final

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

from graphcore.graph import Graph
from kernelext.graph_sources import is_call
from kernelext.history import History
from kernelext.magics import asking, comparing, running

NAMING: Final = ("nodes", "why", "fetch", "trace", "step", "diff", "func")
"""The line magics, whose words name nodes."""
FEEDING: Final = ("fetch", "trace", "step")
"""Those that run the graph, with values to feed."""
CELL: Final = "graph"


class CellFailed(Exception):  # noqa: N818 - it reports an error that is displayed already
    """The code in a cell magic failed; its own error is displayed already."""

    def _render_traceback_(self) -> list[str]:
        """No lines: IPython's form for exceptions that have been displayed already."""
        return []


class Magics:
    """The magics of one shell.

    Args:
        shell: the IPython shell.
        history: the earlier states of graphs.
        stepped: a callback with a graph whose recorded run is to be stepped through.
        recorded: runs a call of another framework, shows it with its values, and returns its graph.
    """

    def __init__(
        self, shell: InteractiveShell, history: History, stepped: Callable[[Graph], None], recorded: Callable[[str], Graph]
    ) -> None:
        self._shell: Any = shell  # its methods have no types
        self._history = history
        self._stepped = stepped
        self._recorded = recorded
        self._before: dict[tuple[str, str], Any] = {}

    def start(self) -> None:
        """Register them; magics of the same names are kept for `stop`."""
        self._set("line", "nodes", asking.nodes)
        self._set("line", "why", asking.why)
        self._set("line", "fetch", running.fetch, self._shell.ev)
        self._set("line", "trace", running.trace, self._shell.ev)
        self._set("line", "step", self._step)
        self._set("line", "diff", comparing.diff, self._history)
        self._set("line", "func", comparing.func)
        self._register("cell", CELL, self._graph_cell)

    def stop(self) -> None:
        """Restore the magics that were there before."""
        for (kind, name), before in self._before.items():
            table = self._shell.magics_manager.magics[kind]
            table.pop(name, None)
            if before is not None:
                table[name] = before
        self._before.clear()

    def _set(self, kind: str, name: str, function: Callable[..., Any], *more: Any) -> None:
        @wraps(function)
        def magic(line: str) -> Any:
            return function(line, self._shell.user_ns, *more)

        self._register(kind, name, magic)

    def _register(self, kind: str, name: str, magic: Callable[..., Any]) -> None:
        find = partial(self._shell.find_magic, magic_kind=kind)
        self._before[kind, name] = find(name)
        self._shell.register_magic_function(magic, kind, name)

    def _step(self, line: str, variables: dict[str, Any]) -> running.Steps:
        steps = running.Steps(self._recorded(line.strip())) if is_call(line) else running.step(line, variables, self._shell.ev)
        self._stepped(steps.graph)
        return steps

    _step.__doc__ = running.step.__doc__

    def _graph_cell(self, line: str, cell: str) -> None:
        """Run the cell in a graph of its own.

            %%graph NAME             build the nodes of this cell in the graph NAME, which is made at its first run

        The graph is a variable of yours; `%graph NAME` shows it.
        """
        name = line.strip()
        if not name.isidentifier():
            raise UsageError(f"%%graph needs the name of a variable for the graph of this cell, as in %%graph model; got '{line}'.")
        graph = self._shell.user_ns.get(name)
        if graph is not None and not isinstance(graph, Graph):
            raise UsageError(f"%%graph: '{name}' is a {type(graph).__name__} of yours, not a graph; choose another name.")
        if graph is None:
            graph = self._shell.user_ns[name] = Graph()
        with graph.as_default():
            result = self._shell.run_cell(cell, store_history=False)
        if not result.success:
            raise CellFailed
