"""One line under each cell that changed a graph: counts of nodes, shapes and errors."""

from __future__ import annotations

from typing import Final

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from graphcore.difference import GraphDiff
from graphcore.graph import Graph, get_default_graph
from graphcore.source import CellRun
from graphcore.support.shown import html_text
from kernelext.front_end import requested_cell
from kernelext.graph_names import graph_of
from kernelext.history import History

ANCHOR: Final = "#graphloupe-difference-"
"""The link of a line, without the number of the run; views open the difference."""
_STYLE: Final = "color: var(--jp-content-font-color2, gray); text-decoration: none"


class ChangeLines:
    """The lines of one shell.

    Args:
        shell: the IPython shell.
        history: the earlier states of graphs.

    Attributes:
        quiet: True for no lines.
    """

    def __init__(self, shell: InteractiveShell, history: History) -> None:
        self._shell = shell
        self._history = history
        self._run: CellRun | None = None
        self._deleted: frozenset[str] = frozenset()
        self.quiet = False

    def begin(self, run: CellRun) -> None:
        """Note the run that begins."""
        self._run = run
        self._deleted = get_default_graph().cells.deleted

    def end(self) -> None:
        """Display the line of the run, if it has changed a graph."""
        run, self._run = self._run, None
        # Front ends that name no cells run whole notebooks; a terminal has no kernel.
        if run is None or self.quiet or not (requested_cell(self._shell) or not hasattr(self._shell, "kernel")):
            return
        cells = get_default_graph().cells
        lost = sum([len(cells.nodes_of(cell)) for cell in cells.deleted - self._deleted])
        if lost:
            self._display(f"{_counted(lost, 'node')} without a cell: %graph forget removes {'it' if lost == 1 else 'them'}", run)
        for graph in self._history.changed_by(run):
            name = self._name(graph)
            left = sum(1 for node in graph.cells.nodes_of(run.cell) if node.error is not None and node.error.is_left)
            text = "" if name is None else change_text(self._history.compare(graph, run.execution).diff, left)
            if text:
                self._display(f"{name}{text}", run)

    def _display(self, text: str, run: CellRun) -> None:
        title = f"Show the difference in the picture (%diff {run.execution} shows it here, %graph quiet ends these lines)"
        link = f"<a href='{ANCHOR}{run.execution}' title='{title}' style='{_STYLE}'>{html_text(text)}</a>"
        display({"text/plain": text, "text/html": f"<small>{link}</small>"}, raw=True)

    def _name(self, graph: Graph) -> str | None:
        """The variable of a graph, "" for the default one; None for a graph that users do not see."""
        if graph is get_default_graph():
            return ""
        named = [(name, value) for name, value in self._shell.user_ns.items() if not name.startswith("_") and graph_of(value) is graph]
        named.sort(key=lambda pair: pair[1] is not graph)  # the graph's own name rather than that of a tensor in it
        return f"{named[0][0]}: " if named else None


def change_text(diff: GraphDiff, left: int = 0) -> str:
    """A difference as counts: `+6 nodes, 2 replaced, shapes of 3 changed, 1 error`; "" if there is none.

    Args:
        diff: the difference.
        left: the number of nodes that the cell has not made again, because it failed.
    """
    changes = {name: {one.kind for one in change.changes} for name, change in diff.changed.items()}
    shapes = sum(1 for kinds in changes.values() if kinds & {"shape", "type"})
    replaced = sum(1 for kinds in changes.values() if kinds - {"shape", "type", "error"})
    before, after = diff.before.nodes, diff.after.nodes
    former = {new: before[old].error for old, new in diff.pairs.items()}
    errors = sum(1 for name, node in after.items() if node.error and node.error != former.get(name, ""))
    mended = sum(1 for name, error in former.items() if error and not after[name].error)
    parts = [
        f"+{_counted(len(diff.added), 'node')}" if diff.added else "",
        f"\u2212{_counted(len(diff.removed), 'node')}" if diff.removed else "",
        f"{replaced:,} replaced" if replaced else "",
        f"shapes of {shapes:,} changed" if shapes else "",
        _counted(errors, "error") if errors else "",
        f"{_counted(mended, 'error')} gone" if mended else "",
        f"{_counted(left, 'node')} not made again" if left else "",
    ]
    return ", ".join(filter(None, parts)) or ("functions changed" if diff.functions else "")


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
