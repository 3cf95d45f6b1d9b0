"""An open view of a graph: its place, its static pictures, and the runs that it records."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from comm import get_comm_manager
from IPython.display import DisplayHandle

from graphcore.graph import Graph
from graphcore.runtime import RunOptions
from graphcore.support.files import is_file, is_folder
from kernelext.graph_line import DIFF, IN_VIEW
from kernelext.graph_sources import NamedGraph
from kernelext.side_panel import open_side_panel, stand_alone
from kernelext.still import Still
from widgets.live.graph_view import GraphView

RECORDED: Final = {"time": RunOptions(trace=True), "values": RunOptions(values=True)}
"""The options of recorded runs, by the words of `%graph`."""

SIDE_NOTE: Final = {
    "text/html": "<small>The live view opens in a panel beside the notebook.</small>",
    "text/plain": "The live view opens in a panel beside the notebook.",
}


class OpenView:
    """A live view of one graph, in a side panel or in a cell, with its static pictures.

    Args:
        name: the variable it follows, "" for the default graph.
        find: returns the current graph; None after the variable was deleted.
        graph: the initial graph.
    """

    def __init__(
        self,
        name: str,
        find: Callable[[], Graph | None],
        graph: Graph,
        differ: Callable[[OpenView, int], None] = lambda _view, _since: None,
    ) -> None:
        self.name = name
        self.find = find
        self.since = 0
        self._differ = differ
        # A tab of several is too narrow for more, such as the folder of a file.
        self.title = (Path(name).name if is_file(name) or is_folder(name) else name) or "Graph"
        self.view = GraphView(graph, title=self.title if name else "graph")
        self.view.on_msg(self._on_message)
        self.panel: Any = None
        self.tabs_beside: list[Any] = []
        self.place_in_cell: DisplayHandle | None = None
        self.stills: dict[str, Still] = {}
        self.painted: tuple[object, ...] = ()
        self.answered = False
        self.on_pages = 0
        self.docked_at = 0.0
        self.recording = ""
        self.full = ""

    def _on_message(self, _view: object, content: object, _buffers: object) -> None:
        """Handle a page's report that it shows the view, or no longer does."""
        kind = content.get("type") if isinstance(content, dict) else None
        if kind == "closed":
            self.on_pages = max(self.on_pages - 1, 0)
        elif kind == "ready":
            self.on_pages += 1
            self.answered = True
        elif kind == "want_difference" and isinstance(content, dict):
            self._differ(self, int(content.get("since", 0)))

    @property
    def is_call(self) -> bool:
        """True iff it shows a traced call."""
        return isinstance(self.find, NamedGraph) and self.find.is_call

    @property
    def outdated(self) -> str:
        """The reason if the picture is not that of the present, "" if it is."""
        return self.find.outdated if isinstance(self.find, NamedGraph) else ""

    @property
    def has_panel(self) -> bool:
        """True iff its side panel is open, or about to open. The page's user may close it."""
        return self.panel is not None and not (self.answered and self.on_pages == 0)

    @property
    def is_lost(self) -> bool:
        """True iff the kernel has lost the connection of its view to the pages."""
        comm = self.view.comm
        return comm is None or comm.comm_id not in get_comm_manager().comms

    def dock(self, neighbour: OpenView | None) -> None:
        """Show it in the side panel: its own if open, else a new tab beside the panel of `neighbour`."""
        if self.has_panel:
            self.view.come_forward()
            return
        self._close_panel()
        self.answered = False
        self.docked_at = time.monotonic()
        self.panel = open_side_panel(self.view, self.title, None if neighbour is None else neighbour.panel)
        if neighbour is not None:
            neighbour.tabs_beside.append(self.panel)
        # If no panel appears, the view takes this place in the cell.
        self.place_in_cell = DisplayHandle()
        self.place_in_cell.display(SIDE_NOTE, raw=True)

    def move_into_cell(self) -> None:
        """Show it in the cell that requested it, since no side panel has appeared."""
        self._close_panel()
        if self.place_in_cell is not None:
            self.place_in_cell.update(self.view)
        self.place_in_cell = None

    def show(self, graph: Graph) -> None:
        """Show another graph; if runs are recorded, then those of its sessions."""
        recording, full, is_same = self.recording, self.full, graph is self.view.graph
        if not is_same:
            self.record("")
        self.view.show(graph, follows=self.is_call)
        if not is_same:
            self.record(recording, full)

    def record(self, recording: str, full: str = "") -> None:
        """Record the runs of the graph's sessions from now on; "" ends this.

        Args:
            full: the pattern of the nodes with full statistics, or `IN_VIEW`.
        """
        if recording or self.recording:
            self.view.graph.recording = self._options(recording, full)
        self.recording, self.full = recording, full

    def begin(self) -> None:
        """Record the boxes in view in the runs of the cell that begins, if they are to be recorded."""
        if self.full == IN_VIEW:
            self.view.graph.recording = self._options(self.recording, self.full)

    def _options(self, recording: str, full: str) -> RunOptions | None:
        if full == IN_VIEW:
            return RunOptions(values=tuple(self.view.nodes_in_view()) or True)
        return RunOptions(values=full) if full else RECORDED[recording] if recording else None

    def record_new(self, graph: Graph) -> None:
        """Record the runs of a graph that its variable has got in the running cell.

        The view shows it after the cell.
        """
        follows = bool(self.name) and not self.name.startswith(DIFF) and not self.is_call  # the default graph hands on its recording itself
        if self.recording and follows and graph is not self.view.graph and self.find() is graph:
            graph.recording = self._options(self.recording, self.full)

    def close(self) -> None:
        """Remove the view from all pages; its static pictures stay."""
        self.record("")
        self._close_panel()
        self.view.close()

    def _close_panel(self) -> None:
        if self.panel is not None:
            self.panel.close()
        self.panel = None
        for tab in self.tabs_beside:
            stand_alone(tab)
        self.tabs_beside.clear()
