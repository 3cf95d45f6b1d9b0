"""The handler of errors in cells: a card in notebooks, a few lines in terminals. IPython shows errors that are not about graphs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from graphcore.difference import GraphDiff
from graphcore.errors import GraphError
from graphcore.graph import Graph
from graphcore.testing import CheckFailed
from kernelext.errors.card import to_card
from kernelext.errors.frames import goes_through_graphcore
from kernelext.errors.python_errors import KINDS
from kernelext.errors.text import error_lines, short_lines
from kernelext.errors.told import Told, told
from kernelext.front_end import front_end
from kernelext.graph_names import seen_graphs
from kernelext.guard import Guard
from kernelext.still import Still, StillPainter
from widgets.render.static_display import to_static_html
from widgets.scene.surroundings import surroundings
from widgets.scene.types import Scene

_OURS: Final = (GraphError, CheckFailed)


class ErrorDisplay:
    """Displays graph errors, Python's errors about tensors, failed checks, and Ctrl-C within graphcore.

    Args:
        shell: the IPython shell.
        guard: keeps failures of the display away from the user; the full traceback is shown instead.
        picture: returns the HTML of a difference of graphs, None if there is none.
    """

    def __init__(self, shell: InteractiveShell, guard: Guard, picture: Callable[[GraphDiff], str | None] = lambda _diff: None) -> None:
        self._shell = shell
        self._guard = guard
        self._picture = picture
        self._painter = StillPainter(guard)
        self._before: tuple[tuple[type[BaseException], ...], Any] | None = None
        self._ours: Any = None

    def start(self) -> None:
        """Install the handler; an earlier custom handler still gets its own exceptions."""
        self._before = (self._shell.custom_exceptions, self._shell.CustomTB)
        self._shell.set_custom_exc((*_OURS, KeyboardInterrupt, *KINDS, *self._shell.custom_exceptions), self._handle)
        self._ours = self._shell.CustomTB

    def stop(self) -> None:
        """Restore the earlier handler, unless it was replaced in the meantime."""
        self._painter.finish()
        if self._before is not None and self._shell.CustomTB is self._ours:
            self._shell.custom_exceptions, self._shell.CustomTB = self._before
        self._before = None

    def _handle(
        self,
        shell: InteractiveShell,
        kind: type[BaseException],
        error: BaseException,
        trace: TracebackType | None,
        tb_offset: int | None = None,
    ) -> Any:
        theirs, handler = self._before or ((), None)
        if not isinstance(error, _OURS) and issubclass(kind, theirs):
            return handler(kind, error, trace, tb_offset) if handler is not None else None
        shown: Told | None = None
        if not isinstance(error, KeyboardInterrupt) or goes_through_graphcore(trace):
            with self._guard("describing an error"):
                shown = told(error, trace, shell.user_ns)
        if shown is None:
            shell.showtraceback((kind, error, trace), tb_offset=tb_offset, running_compiled_code=not isinstance(error, _OURS))
            return None
        remember(kind, error, trace)
        lines = error_lines(shown, plain=shell.colors.lower() == "nocolor")
        if isinstance(error, CheckFailed):
            with self._guard("displaying a failed check"):
                lines = self._display_check(shell, shown, error.diff, lines)
        elif hasattr(shell, "kernel") and not isinstance(error, KeyboardInterrupt):
            with self._guard("displaying an error"):
                lines = self._display(shell, shown, lines)
        shell._showtraceback(kind, error, lines)  # the way in which a kernel sends an error with a custom text
        return lines

    def _display_check(self, shell: InteractiveShell, check: Told, diff: GraphDiff | None, lines: list[str]) -> list[str]:
        """Display a failed check, or at least its difference of graphs. Returns the lines of text that are to follow."""
        picture = None
        with self._guard("drawing a difference"):
            picture = None if diff is None else self._picture(diff)
        if hasattr(shell, "kernel") and front_end(shell) != "none":
            display({"text/html": to_card(check, picture or ""), "text/plain": "\n".join(lines)}, raw=True)
            return short_lines(check)
        if picture is not None:
            display({"text/plain": "", "text/html": picture}, raw=True)
        return lines

    def _display(self, shell: InteractiveShell, error: Told, lines: list[str]) -> list[str]:
        """Display an error as HTML. Returns the lines of text that are to follow it."""
        scene: Scene | None = None
        with self._guard("drawing the place of an error"):
            scene = self._scene(error)
        text, still = "\n".join(lines), Still()
        if scene is None or front_end(shell) == "none":
            picture = "" if scene is None else to_static_html(scene)
            still.open({"text/html": to_card(error, picture), "text/plain": text})
            return short_lines(error)
        # The picture follows in the background: the first one starts the layout engine, which takes most of a second.
        still.open({"text/html": to_card(error), "text/plain": text})
        drawn = scene
        self._painter.paint(still, lambda: {"text/html": to_card(error, to_static_html(drawn)), "text/plain": text})
        return short_lines(error)

    def _scene(self, error: Told) -> Scene | None:
        about = error.about
        if about is None:
            return None
        return surroundings(self._graph(about), about)

    def _graph(self, error: GraphError) -> Graph:
        if error.inputs:
            graph: Graph = error.inputs[0].graph
            return graph
        graphs = [graph for graph in seen_graphs(self._shell.user_ns) if error.node and graph.find(error.node) is not None]
        same = [graph for graph in graphs if graph.get_operation_by_name(error.node).source == error.source]
        return next(iter([*same, *graphs]), Graph())


def remember(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Store the exception for `%tb` and `%debug`."""
    sys.last_type, sys.last_value, sys.last_traceback = kind, error, trace
    if sys.version_info >= (3, 12):
        sys.last_exc = error
