"""One line under each cell that changed a graph: counts of nodes, shapes and errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from graphcore.difference import GraphDiff
from graphcore.frontends.record import ForeignRecord
from graphcore.graph import Graph, get_default_graph
from graphcore.source import CellRun
from graphcore.support.shown import html_text
from kernelext.front_end import requested_cell
from kernelext.graph_names import graph_of
from kernelext.history import Comparison, History
from kernelext.layer_changes import LayerChanges

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

    def end(self, calls: Mapping[Graph, str], notes: Iterable[str]) -> None:
        """Display the line of the run, if it has changed a graph.

        Args:
            calls: the traced calls of views, by their graphs.
            notes: further lines: what could not be traced.
        """
        run, self._run = self._run, None
        # Front ends that name no cells run whole notebooks; a terminal has no kernel.
        if run is None or self.quiet or not (requested_cell(self._shell) or not hasattr(self._shell, "kernel")):
            return
        cells = get_default_graph().cells
        lost = sum([len(cells.nodes_of(cell)) for cell in cells.deleted - self._deleted])
        if lost:
            self._display(f"{_counted(lost, 'node')} without a cell: %graph forget removes {'it' if lost == 1 else 'them'}", run)
        places = list(calls)
        for graph in sorted(self._history.changed_by(run), key=lambda graph: places.index(graph) if graph in calls else -1):
            name = f"{calls[graph]}: " if graph in calls else self._name(graph)
            left = sum(1 for node in graph.cells.nodes_of(run.cell) if node.error is not None and node.error.is_left)
            text = "" if name is None else _text(self._history.compare(graph, run.execution), left)
            if text:
                self._display(f"{name}{text}", run)
        for note in notes:
            display({"text/plain": note, "text/html": f"<small style='{_STYLE}'>{html_text(note)}</small>"}, raw=True)

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


def _text(comparison: Comparison, left: int) -> str:
    """The words for a comparison."""
    return change_text(comparison.diff, left, comparison.records)


def change_text(diff: GraphDiff, left: int = 0, records: tuple[ForeignRecord, ForeignRecord] | None = None) -> str:
    """A difference as counts: `+6 nodes, 2 replaced, shapes of 3 changed, 1 error`; "" if there is none.

    Args:
        diff: the difference.
        left: the number of nodes that the cell has not made again, because it failed.
        records: what stands behind two traces of a call, whose layers are counted.
    """
    before, after = diff.before.nodes, diff.after.nodes
    kinds = {name: {part.kind for part in change.changes} for name, change in diff.changed.items()}
    layers = None if records is None else LayerChanges(diff, *records)
    counted = {*diff.added, *diff.removed, *diff.changed} if layers is None else set(layers.outside)
    added, removed = [sum(1 for name in names if name in counted) for names in (diff.added, diff.removed)]
    typed = {} if layers is None else {name: changes for name, changes in kinds.items() if "type" in changes}
    types = sum(1 for name in typed if not after[name].error)  # what fails has none
    shapes = sum(1 for name, changes in kinds.items() if changes & {"shape", "type"} and name not in typed)
    replaced = sum(1 for name, changes in kinds.items() if name in counted and changes - {"shape", "type", "error"})
    former = {new: before[old].error for old, new in diff.pairs.items()}
    errors = sum(1 for name, node in after.items() if node.error and node.error != former.get(name, ""))
    mended = sum(1 for name, error in former.items() if error and not after[name].error)
    parts = [
        *([] if layers is None else layers.parts),
        f"+{_counted(added, 'node')}" if added else "",
        f"\u2212{_counted(removed, 'node')}" if removed else "",
        f"{replaced:,} replaced" if replaced else "",
        f"types of {types:,} changed" if types else "",
        f"shapes of {shapes:,} changed" if shapes else "",
        _counted(errors, "error") if errors else "",
        f"{_counted(mended, 'error')} gone" if mended else "",
        f"{_counted(left, 'node')} not made again" if left else "",
    ]
    rewired = 0 if layers is None else sum(1 for changes in kinds.values() if changes & {"input", "control"})
    rest = "functions changed" if diff.functions else f"{rewired:,} rewired" if rewired else ""
    return ", ".join(filter(None, parts)) or rest


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
