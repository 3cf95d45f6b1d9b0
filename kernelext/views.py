"""Open views: their graphs, their places, and their static pictures."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from graphcore.api import Function
from graphcore.definitions import FunctionDef
from graphcore.difference import difference_graph
from graphcore.errors import GraphError
from graphcore.graph import Graph, get_default_graph
from graphcore.runtime import Session
from graphcore.runtime.core.tracing import last_trace
from kernelext.display.formatters import node_text
from kernelext.front_end import call_later, front_end, requested_cell
from kernelext.graph_line import DIFF, RECORDINGS, GraphLine, Place, hint
from kernelext.graph_names import graph_of
from kernelext.graph_sources import NamedGraph
from kernelext.guard import Guard
from kernelext.history import History
from kernelext.magics.named import node_of
from kernelext.open_view import OpenView
from kernelext.recorded_calls import RecordedCall
from kernelext.still import Draw, Still, StillPainter
from widgets.language import set_language, spoken
from widgets.live.function_view import FunctionView
from widgets.render.compiled import build_scene
from widgets.render.static_display import to_static_html
from widgets.scene.overlays import add_overlay

ANSWER_SECONDS: Final = 5.0
"""The seconds that an idle kernel waits for a page to show the view before it concludes that there is no side panel."""

QUIET_SECONDS: Final = 0.05
"""The seconds that a kernel is idle, at least, before it saves the graphs behind the pictures: no cell is waiting then."""

SLICE_SECONDS: Final = 0.01
"""The seconds of saving after which a cell, or a request of a page, has its turn."""


class Views:
    """All open views of one shell, by the name of their variable.

    Args:
        shell: the IPython shell.
        guard: keeps failures away from the cell.
        busy: returns True while a cell runs.
        history: the earlier states of graphs.

    Attributes:
        traced: the names of the calls that were traced again since the last cell began, by their graphs.
        notes: sentences on pictures that have become outdated since then, or are no longer.
    """

    def __init__(self, shell: InteractiveShell, guard: Guard, busy: Callable[[], bool], history: History) -> None:
        self._history = history
        self._shell = shell
        self._guard = guard
        self._busy = busy
        self._has_side: bool | None = None
        self._painter = StillPainter(guard)
        self._open: dict[str, OpenView] = {}
        self._functions: dict[str, tuple[int, list[FunctionView]]] = {}
        self._cell_ended = 0.0
        self.traced: dict[Graph, str] = {}
        self.notes: list[str] = []

    def open(self, line: GraphLine) -> None:
        """Execute a `%graph` line.

        Raises:
            UsageError: there is no such graph.
        """
        if line.language:
            self._speak(line.language)
            if line == GraphLine(language=line.language):
                return
        key = f"{line.diff} {line.name}".strip() if line.diff else line.name
        if line.place == "off":
            self._stop(line, key)
            return
        if line.diff:
            self._open_difference(line, key)
            return
        named = self._shell.user_ns.get(line.name)
        if isinstance(named, Function | FunctionDef):
            self._open_function(line.name, named)
            return
        find = self._finder(line.name, gradients=line.mirror, recorded=bool(line.recording))
        graph = find()
        if graph is None:
            raise UsageError(f"%graph: '{line.name}' is no graph and belongs to none{hint(line.name)}. {self._graph_names()}")
        self._open_graph(line, line.name, find, graph)

    def _speak(self, chosen: str) -> None:
        """Choose the language of words; pictures that are open are drawn anew."""
        set_language(chosen)
        functions = [view for _, views in self._functions.values() for view in views]
        for view in [*[opened.view for opened in self._open.values()], *functions]:
            view.language = spoken()

    def _open_difference(self, line: GraphLine, key: str) -> None:
        """Show what is different in a graph since a run of a cell; the view follows the cells."""
        find = self._finder(line.name)
        graph = find()
        if graph is None:
            raise UsageError(f"%graph: '{line.name}' is no graph and belongs to none{hint(line.name)}. {self._graph_names()}")
        since = int(line.since or 0)
        try:
            comparison = self._history.compare(graph, since)
        except KeyError:
            runs = ", ".join(map(str, dict.fromkeys(self._history.runs(graph)))) or "none"
            raise UsageError(f"%graph: the state before In [{since}] is not known; known are those before {runs}.") from None
        print(comparison.text.partition("\n")[0])  # noqa: T201 - it says what is compared

        def differing() -> Graph | None:
            current = find()
            return None if current is None else difference_graph(self._history.compare(current, since).diff)

        known_view = self._open.get(key)
        if known_view is not None:
            known_view.find = differing
        self._open_graph(line, key, differing, difference_graph(comparison.diff))

    def _open_graph(self, line: GraphLine, key: str, find: Callable[[], Graph | None], graph: Graph) -> None:
        opened = self._open.get(key)
        is_same = opened is not None and not opened.is_lost
        if opened is not None and not (is_same and graph is opened.view.graph):
            self._leave_stills(opened)
        if opened is None or not is_same:
            opened = self._open[key] = OpenView(key, find, graph, self._differ)
        else:
            opened.find = find
            opened.view.show(graph, follows=opened.is_call)
        if line.focus:
            self._focus(opened, line.focus)
        shown = self._overlay(graph, line.overlay) if line.overlay else line.lens or line.recording
        if not shown and opened.is_call and opened.view.choices.lens in RECORDINGS and last_trace(graph) is None:
            shown = "structure"  # a call that has not been run has no values to mark
        opened.record(*((line.recording, line.full) if line.recording else (opened.recording, opened.full)))
        opened.view.choose(renderer=line.renderer, lens=shown, mirror=line.mirror or None)
        self._show(opened, line.place)
        still = opened.stills[requested_cell(self._shell)] = Still()
        still.open(opened.view.still_bundle(with_graph=front_end(self._shell) == "none"))

    def _differ(self, opened: OpenView, since: int) -> None:
        """Show the difference from the graph before run `since` in its view, or the graph again."""
        graph = opened.find()
        if graph is None or opened.name.startswith(DIFF):
            return
        with self._guard("showing a difference"):
            runs = self._history.runs(graph)
            opened.since = 0 if since == opened.since or since not in runs else since
            opened.show(difference_graph(self._history.compare(graph, since).diff) if opened.since else graph)
            opened.view.refresh()

    def _overlay(self, graph: Graph, word: str) -> str:
        """Put the numbers of a variable or file on a graph. Returns the name of the lens that shows them."""
        numbers = self._shell.user_ns.get(word, word)
        try:
            return add_overlay(graph, numbers, title=Path(word).stem.replace("_", " ").capitalize()).name
        except GraphError as error:
            raise UsageError(f"%graph: overlay {word}: {error.message}") from error

    def _focus(self, opened: OpenView, word: str) -> None:
        """Bring a node into view; without a viewer, its neighbours are printed."""
        graph = opened.view.graph
        node = node_of(word, graph, self._shell.user_ns, "graph")
        opened.view.focus(node.name)
        if front_end(self._shell) == "none":
            print(node_text(node))  # noqa: T201 - the answer where there is no picture

    def record_call(self, call: str) -> Graph:
        """Run a call of another framework, show it with its values, and return its graph.

        Raises:
            UsageError: it is no such call.
        """
        self.open(GraphLine(name=call, recording="values"))
        return self._open[call].view.graph

    def step_through(self, graph: Graph) -> None:
        """Open the stepper in the views of a graph, once they show its recorded run at the end of the cell."""
        for opened in self._open.values():
            if opened.view.graph is graph:
                opened.view.show_pane("stepper")

    def _stop(self, line: GraphLine, key: str) -> None:
        """Close views, or only end their recording."""
        if not line.recording:
            self.close(key)
            return
        for opened in [self._open[name] for name in ([line.name] if line.name else self._open) if name in self._open]:
            opened.record("")

    def close(self, name: str) -> None:
        """Close the view of `name`, or all views for ""."""
        for key in [name] if name else list(self._open):
            opened = self._open.pop(key, None)
            if opened is not None:
                self._leave_stills(opened)
                opened.close()

    def close_all(self) -> None:
        """Finish the static pictures and close everything."""
        self.close("")
        self._painter.finish()
        for _, views in self._functions.values():
            _close(views)
        self._functions.clear()

    def begin(self) -> None:
        """Prepare the recording of the runs of a cell."""
        self.traced.clear()
        self.notes.clear()
        for opened in list(self._open.values()):
            with self._guard("choosing what is recorded"):
                opened.begin()

    def begin_session(self, session: Session) -> None:
        """Record the runs of a session, if those of its graph are to be recorded."""
        for opened in list(self._open.values()):
            with self._guard("choosing what is recorded"):
                opened.record_new(session.graph)

    def update(self) -> None:
        """Update all views after a cell, each once."""
        self._cell_ended = time.monotonic()
        ended = time.time() * 1000
        for opened in list(self._open.values()):
            with self._guard("updating a view"):
                self._update(opened, ended)

    def fail(self, text: str) -> None:
        """Show a failure in every view's status line."""
        for opened in list(self._open.values()):
            opened.view.fail(text)

    def picture(self, graph: Graph) -> str | None:
        """The HTML of a static picture of any graph; None if it cannot be drawn."""
        drawn: list[str] = []
        with self._guard("drawing a graph"):
            drawn.append(to_static_html(build_scene(graph)))
        return drawn[0] if drawn else None

    def _open_function(self, name: str, function: Function | FunctionDef) -> None:
        if isinstance(function, Function) and not function.instantiations:
            raise UsageError(f"%graph: '{name}' has not been called yet: it is traced for the types of its first call.")
        self.show_function(function)

    def show_function(self, function: Function | FunctionDef | FunctionView) -> bool:
        """Show a function in the running cell, live if there is a page, and as a static picture.

        Returns False if it cannot be shown.
        """
        shown: list[FunctionView] = []
        with self._guard("showing a function"):
            if isinstance(function, Function) and not function.instantiations:
                return False
            view = function if isinstance(function, FunctionView) else FunctionView(function)
            still = view.still_bundle()
            shown.append(view)
            if front_end(self._shell) != "none":
                if view is not function:
                    self._record_view(view)
                _display_live(view)
            display(still, raw=True)
        return bool(shown)

    def _record_view(self, view: FunctionView) -> None:
        """Record a view made by the running cell; those of its last run left the page and are closed."""
        cell, run = requested_cell(self._shell), self._shell.execution_count
        last, views = self._functions.get(cell, (run, []))
        if last != run:
            _close(views)
            views = []
        self._functions[cell] = (run, [*views, view])

    def _show(self, opened: OpenView, place: Place) -> None:
        front = front_end(self._shell)
        if place == "side" or (place == "auto" and front == "lab" and self._has_side is not False):
            # A separate panel for each would halve the notebook's width every time.
            opened.dock(next((other for other in reversed(self._open.values()) if other is not opened and other.has_panel), None))
            call_later(ANSWER_SECONDS, lambda: self._look_after(opened))
        elif place == "inline" or front != "none":
            display(opened.view)

    def _look_after(self, opened: OpenView) -> None:
        """Check that a side panel has appeared, after the kernel had time to receive the report."""
        with self._guard("looking after a side panel"):
            if opened.answered:
                self._has_side = True  # from now on a page that is slow is waited for
            if self._has_side or self._open.get(opened.name) is not opened or opened.panel is None:
                return
            quiet = time.monotonic() - max(self._cell_ended, opened.docked_at)
            if self._busy() or quiet < ANSWER_SECONDS:
                call_later(ANSWER_SECONDS, lambda: self._look_after(opened))
                return
            self._has_side = False
            opened.move_into_cell()

    def _update(self, opened: OpenView, ended: float) -> None:
        """Show the graph after a cell that ended at a time in ms since the epoch. Tracing takes time, too."""
        outdated = opened.outdated
        graph = opened.find()
        opened.since = 0
        if graph is not None:
            opened.show(graph)
        opened.view.mark(opened.outdated)
        if opened.outdated != outdated:
            self.notes.append(f"{opened.name}: {_outdated_note(opened.outdated)}")
        opened.view.refresh(sent_at=ended)
        if front_end(self._shell) == "none":
            self._paint(opened, self._painter.paint_now, with_graph=True)
        elif opened.view.still_key != opened.painted or not opened.view.is_packed:
            call_later(QUIET_SECONDS, lambda: self._renew_still(opened))

    def _renew_still(self, opened: OpenView) -> None:
        """Draw the picture for the cell, and save the graph with it, so that it opens without a kernel."""
        if time.monotonic() - self._cell_ended < QUIET_SECONDS or self._busy() or self._open.get(opened.name) is not opened:
            return  # the end of another cell begins anew
        with self._guard("drawing a still picture"):
            self._paint(opened, self._painter.paint, with_graph=False)
        if not opened.view.is_packed:
            self._go_on_saving(opened, opened.view.pack())

    def _go_on_saving(self, opened: OpenView, steps: Iterator[None]) -> None:
        """Pack the graph for a moment, until no step is left. A cell that begins ends this; its own end begins anew."""
        with self._guard("saving a picture"):
            if self._open.get(opened.name) is not opened or self._busy():
                return
            if _take_steps(steps, time.monotonic() + SLICE_SECONDS):
                self._paint(opened, self._painter.paint, with_graph=False)
            else:
                call_later(SLICE_SECONDS, lambda: self._go_on_saving(opened, steps))

    def _leave_stills(self, opened: OpenView) -> None:
        """Draw the pictures below earlier cells a last time: they stay those of the current graph."""
        with self._guard("drawing a still picture"):
            self._paint(opened, self._painter.paint, with_graph=False)
        opened.stills.clear()

    def _paint(self, opened: OpenView, paint: Callable[[Still, Draw], None], *, with_graph: bool) -> None:
        if opened.view.still_key == opened.painted or not hasattr(self._shell, "kernel"):
            return  # a terminal cannot change printed text
        # The picture is taken now: when it is drawn, the next cell may be changing the graph.
        draw = opened.view.take_still(with_graph=with_graph).bundle
        for still in opened.stills.values():
            paint(still, draw)
        opened.painted = opened.view.still_key

    def _finder(self, name: str, *, gradients: bool = False, recorded: bool = False) -> Callable[[], Graph | None]:
        if not name:
            return get_default_graph
        opened = self._open.get(name)
        last = opened.find if opened is not None and isinstance(opened.find, NamedGraph) else None
        kind = RecordedCall if recorded else NamedGraph
        return kind(name, self._shell.user_ns, lambda last, graph: self._follow(name, last, graph), last, gradients=gradients)

    def _follow(self, name: str, last: Graph, graph: Graph) -> None:
        """Note that a call was traced again."""
        self._history.succeed(last, graph)
        self.traced.pop(last, None)
        self.traced[graph] = name

    def _graph_names(self) -> str:
        names = [name for name, value in self._shell.user_ns.items() if not name.startswith("_") and graph_of(value) is not None]
        return f"These are: {', '.join(sorted(names))}." if names else "There is no such variable yet."


def _outdated_note(reason: str) -> str:
    return f"{reason}; the picture is that of the version before" if reason else "the picture is up to date again"


def _close(views: list[FunctionView]) -> None:
    for view in views:
        view.close()


def _display_live(view: FunctionView) -> None:
    """Display the widget alone. `display(view)` would call the formatter that is running."""
    data, metadata = view._repr_mimebundle_() or ({}, {})
    display(data, metadata=metadata, raw=True)


def _take_steps(steps: Iterator[None], end: float) -> bool:
    """Take steps until a time of the monotonic clock. True iff none is left."""
    return all(time.monotonic() < end for _ in steps)
