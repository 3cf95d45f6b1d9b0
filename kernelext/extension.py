"""The parts of the extension, put into a shell together and taken out together."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

from graphcore.graph import live_graphs
from graphcore.runtime import listen_to_sessions
from graphcore.source import CellRun
from kernelext.cells import CellTracker
from kernelext.changes import ChangeLines
from kernelext.completion import Completion
from kernelext.display.formatters import Formatters
from kernelext.display.op_pages import OpPages
from kernelext.errors import ErrorDisplay
from kernelext.graph_line import HELP, HELP_FLAGS, Action, next_words, parse_graph_line
from kernelext.graph_names import seen_graphs
from kernelext.guard import Guard
from kernelext.history import History
from kernelext.long_work import LongWorkDisplay
from kernelext.magics import Magics
from kernelext.remarks import Remarks
from kernelext.undoing import Undoing
from kernelext.views import Views
from kernelext.written_curves import WrittenCurves
from widgets.scene.words import counted

MAGIC: Final = "graph"
LOAD: Final = "load_ext"
_ATTRIBUTE: Final = "_graphloupe_extension"


class Extension:
    """The extension of one shell by `%load_ext kernelext`.

    Args:
        shell: the IPython shell.
    """

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._magics_before: dict[str, Any] = {}
        self._end_listening: Callable[[], None] = lambda: None
        self._guard = Guard(self._failed)
        self.history = History(live_graphs)
        self.undoing = Undoing(shell.user_ns)
        self.changes = ChangeLines(shell, self.history)
        self.views = Views(shell, self._guard, lambda: self.cells.run is not None, self.history)
        self.remarks = Remarks(lambda: seen_graphs(shell.user_ns))
        self.cells = CellTracker(shell, live_graphs, lambda _run, _failed: self._finish_cell(), self._guard, self._begin_cell)
        formatters = Formatters(shell, self.views.picture, self.views.show_function, self._guard)
        self._parts = (
            self.cells,
            ErrorDisplay(shell, self._guard, formatters.difference),
            WrittenCurves(shell, self._guard),
            LongWorkDisplay(shell, self._guard),
            Magics(shell, self.history, self.views.step_through, self.views.record_call),
            Completion(shell, next_words, self._guard),
            formatters,
            OpPages(shell, self._guard, self.views.picture),
        )

    def start(self) -> None:
        """Install all parts."""
        self._set_magic(MAGIC, self._graph_magic())
        self._set_magic(LOAD, quiet_load(self._find_magic(LOAD)))
        for part in self._parts:
            part.start()
        self._end_listening = listen_to_sessions(self.views.begin_session)

    def stop(self) -> None:
        """Close the views and restore the former state."""
        for part in reversed(self._parts):
            with self._guard("unloading"):
                part.stop()
        self._end_listening()
        with self._guard("closing the views"):
            self.views.close_all()
        self.undoing.clear()
        lines = self._shell.magics_manager.magics["line"]
        for name, before in self._magics_before.items():
            lines.pop(name, None)
            if before is not None:
                lines[name] = before

    def _begin_cell(self, run: CellRun) -> None:
        self.remarks.begin(run)
        self.views.begin()
        with self._guard("noting how the graphs are"):
            self.history.begin(run)
        with self._guard("noting what can be undone"):
            self.undoing.begin(run)
        self.changes.begin(run)

    def _finish_cell(self) -> None:
        with self._guard("noting what can be undone"):
            self.undoing.end()
        self.views.update()
        with self._guard("saying what a cell has done"):
            self.changes.end(self.views.traced, self.views.notes)
            self.remarks.end()

    def _failed(self, text: str) -> None:
        self.views.fail(text)

    def _act(self, action: Action, *, off: bool) -> None:
        match action:
            case "undo":
                print(self.undoing.undo())  # noqa: T201 - it says what was done
            case "redo":
                print(self.undoing.redo())  # noqa: T201 - it says what was done
            case "forget":
                names = [name for graph in live_graphs() for name in graph.forget_deleted_cells()]
                print(f"{counted(len(names), 'node')} of deleted cells removed." if names else "No nodes are without a cell.")  # noqa: T201 - its answer
            case "quiet":
                self.changes.quiet = not off

    def _set_magic(self, name: str, function: Callable[[str], None]) -> None:
        self._magics_before[name] = self._find_magic(name)
        shell: Any = self._shell  # the type of this method is that of a decorator
        shell.register_magic_function(function, "line", name)

    def _find_magic(self, name: str) -> Any:
        shell: Any = self._shell  # its method has no types
        return shell.find_line_magic(name)

    def _graph_magic(self) -> Any:
        def graph(line: str) -> None:
            if not {*HELP_FLAGS}.isdisjoint(line.split()):
                print(HELP)  # noqa: T201 - it is what was asked for
                return
            options = parse_graph_line(line)
            if options.action:
                self._act(options.action, off=options.place == "off")
                return
            try:
                self.views.open(options)
            except UsageError:
                raise
            except Exception as error:  # noqa: BLE001 - the rest of the cell has nothing to do with the view
                self._guard.report("opening a view", error)
                print(f"%graph: the view could not be opened ({type(error).__name__}: {error}).", file=sys.stderr)  # noqa: T201

        graph.__doc__ = HELP
        return graph


def quiet_load(load_ext: Callable[[str], None]) -> Callable[[str], None]:
    """Make `%load_ext` silent for a loaded extension: the first cell of a notebook runs again and again."""

    def load(line: str) -> None:
        if line.strip() != __package__:
            load_ext(line)

    load.__doc__ = load_ext.__doc__
    return load


def load(shell: InteractiveShell) -> None:
    """Install the extension in `shell`; an installed one is renewed."""
    unload(shell)
    extension = Extension(shell)
    extension.start()
    setattr(shell, _ATTRIBUTE, extension)


def unload(shell: InteractiveShell) -> None:
    """Remove the extension from `shell`, if it is installed."""
    extension = getattr(shell, _ATTRIBUTE, None)
    if extension is None:
        return
    delattr(shell, _ATTRIBUTE)
    extension.stop()
