"""The live view of a graph: an anywidget that sends changes and answers requests of the viewer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from graphcore.difference import difference_of
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Graph
from graphcore.passes import InstantiatedFunctions
from widgets import messages, requests
from widgets.function import FunctionSession, opened_from
from widgets.live.live_view import LiveView
from widgets.live.states_session import StatesSession
from widgets.messages import FailureMessage, FunctionClosedMessage, StatesClosedMessage
from widgets.overlays import Overlay
from widgets.port import Port
from widgets.render.saved_picture import TakenPicture
from widgets.render.static_display import to_static_html
from widgets.scene.neighborhood import filtered, neighborhood, path_between
from widgets.scene.overlays import add_overlay
from widgets.scene.state import SceneState
from widgets.scene.types import Scene
from widgets.scene.words import counted


class GraphView(LiveView):
    """A live picture of a graph. Display it like any widget; call `refresh` after changes of the graph.

    It raises no errors into the user's cell: failures are logged and shown in the viewer's status line.

    Args:
        graph: the graph.
        title: the title of the picture.
        state: the initial folding, lens and renderer.
    """

    def __init__(self, graph: Graph, *, title: str = "graph", state: SceneState | None = None) -> None:
        self._port = Port(graph, self._send_message, title=title, state=state)
        self._session: FunctionSession | None = None
        self._states: StatesSession | None = None
        super().__init__(title, "graph")

    @property
    def graph(self) -> Graph:
        """The current graph."""
        return self._port.graph

    @property
    def choices(self) -> SceneState:
        """The user's choices that decide what is drawn: folding, lens, renderer."""
        return self._port.state

    @property
    def state(self) -> dict[str, Any]:
        """Everything the user chose in the view, as a dict for JSON; assign it to restore the view.

        The keys are `opened`, `closed` (paths of scopes), `mode` (`auto`, `all` or `none`, for all other scopes), `mirror`, `lens`, `renderer`,
        `camera` (the point in the middle of the window and the scale, None while it follows the graph), and `selection` (ids of boxes).
        A key that is left out has its default.

        Raises:
            InvalidArgumentError: on assignment, something that is not such a dict. The view stays as it was.
        """
        state: dict[str, Any] = msgspec.to_builtins(self._port.view_state)
        return state

    @state.setter
    def state(self, state: dict[str, Any]) -> None:
        try:
            stored = msgspec.convert(state, messages.ViewState)
            msgspec.json.encode(stored)  # text that no notebook can hold, such as a lone surrogate
        except (msgspec.ValidationError, UnicodeEncodeError) as error:
            raise InvalidArgumentError(f"Cannot restore a view: required a dict like `view.state`, and {error}") from None
        self._port.restore(stored)

    @property
    def drawn(self) -> requests.DrawnReport | None:
        """The viewer's latest report of a picture on the screen, None before the first."""
        return self._port.drawn

    @property
    def scene(self) -> Scene:
        """The picture of the last refresh."""
        return self._port.scene

    def show(self, graph: Graph, *, follows: bool = False) -> None:
        """Show another graph from the next `refresh` on; scopes of the same names stay open.

        Args:
            graph: the graph.
            follows: True for a later state of the same, whose new and changed nodes are marked.
        """
        self._port.show(graph, follows=follows)

    def mark(self, outdated: str) -> None:
        """Mark the picture as that of an earlier version, with the reason, from the next `refresh` on. "" ends this."""
        self._port.outdated = outdated

    def choose(self, *, renderer: str = "", lens: str = "", mirror: bool | None = None) -> None:
        """Choose what the next `refresh` shows; "" and None keep the choice.

        Args:
            renderer: `graphviz` or `mermaid`.
            lens: the name of a lens.
            mirror: show the gradient of each box beside it.
        """
        self._port.choose(renderer=renderer, lens=lens, mirror=mirror)

    def overlay(self, numbers: Any, **options: Any) -> Overlay:
        """Put numbers on the graph, and show them.

        Args:
            numbers, options: those of `widgets.add_overlay`, such as `title="Time", unit="ms"`.

        Raises:
            GraphError: as there.
        """
        overlay = add_overlay(self.graph, numbers, **options)
        self.choose(lens=overlay.name)
        self.refresh()
        return overlay

    def focus(self, node: str) -> None:
        """Open what hides a node; from the next `refresh` on it is selected and in view.

        Raises:
            InvalidArgumentError: there is no such node.
        """
        self._port.focus(node)

    def show_pane(self, pane: str) -> None:
        """Open a pane below the picture on all pages: `timeline`, `memory`, `health` or `stepper`."""
        self._send_message(messages.ShowPaneMessage(pane=pane))

    def refresh(self, *, sent_at: float | None = None) -> None:
        """Send the current graph: once a cell, at most ten times a second.

        Args:
            sent_at: the end of the cell, in ms since the epoch; now if None.
        """
        try:
            self._port.refresh(self._failed, sent_at=sent_at)
            with self._port.lock:
                self._follow_difference()
        except Exception as error:  # noqa: BLE001 - a view must never break the user's cell
            self._failed("refresh", error)

    def neighborhood(self, node: str, steps: int = 1) -> list[str]:
        """Highlight what is near a node, and return the names of the nodes.

        Args:
            node: the name of a node.
            steps: the most edges from it, in either direction; control edges count, too.

        Raises:
            InvalidArgumentError: there is no such node, or the number of steps is negative.
        """
        names = neighborhood(self.graph, node, steps)
        self._port.highlight(names, f"within {counted(steps, 'step')} of {node}")
        return names

    def path(self, source: str, target: str) -> list[str]:
        """Highlight all ways from one node to another, or back, and return the names of the nodes on them.

        The list is empty if there is no way.

        Raises:
            InvalidArgumentError: there is no such node.
        """
        names = path_between(self.graph, source, target)
        self._port.highlight(names, f"between {source} and {target}")
        return names

    def filter(self, *, op: str = "", device: str = "", cell: str = "") -> list[str]:
        """Highlight the nodes with this op, device and cell, and return their names.

        Args:
            op: a part of the op's name, whatever the case.
            device: a part of the device's name.
            cell: the number of a cell, or a part of its label.

        Raises:
            InvalidArgumentError: none of them is given.
        """
        names = filtered(self.graph, op=op, device=device, cell=cell)
        fields = {"op": op, "device": device, "cell": cell}
        self._port.highlight(names, "for " + " ".join(f"{field}:{value}" for field, value in fields.items() if value))
        return names

    def nodes_in_view(self) -> list[str]:
        """The names of the nodes that have boxes of their own in the picture.

        For a node in an open call it is the name within the function.
        """
        return self._port.nodes_in_view()

    def take_still(self, *, with_graph: bool) -> TakenPicture:
        """Take the current picture for an output; its `bundle` is drawn on any thread.

        Args:
            with_graph: pack the graph first, all at once, if it has changed since `pack`.
        """
        return self._port.take(self.model_id, with_graph=with_graph)

    def pack(self) -> Iterator[None]:
        """Pack the graph, which opens saved pictures, in steps of about a millisecond."""
        return self._port.pack()

    @property
    def is_packed(self) -> bool:
        """True iff the graph has not changed since it was packed."""
        return self._port.packed is not None

    @property
    def still_key(self) -> tuple[object, ...]:
        """Everything that decides what `take_still` takes, for comparison of two moments."""
        return self._port.still_key

    def still_bundle(self, *, with_graph: bool = True) -> dict[str, Any]:
        """The picture for an output, as MIME data."""
        return self.take_still(with_graph=with_graph).bundle()

    def static_html(self) -> str:
        """The static picture, as HTML without script."""
        return to_static_html(*self.take_still(with_graph=False).scenes, lens=self._port.state.lens)

    def close(self) -> None:
        """Remove the view from all pages."""
        self._port.close()
        super().close()

    def _answer(self, request: Any) -> None:
        with self._port.lock:
            match request:
                case requests.OpenFunctionRequest(id=box_id, place=place):
                    self._open_function(box_id, place)
                case requests.BackRequest(crumb=crumb):
                    if self._session is not None and not self._session.back(crumb):
                        self._session = None
                        self._send_message(FunctionClosedMessage())
                case requests.StatesRequest(open=True):
                    self._show_states()
                case requests.StatesRequest():
                    self._close_states()
                case requests.PaneRequest(pane="before" | "after" as pane, message=inner):
                    if self._states is not None:
                        self._states.answer(pane, inner)
                case requests.PaneRequest() | requests.SetAttrRequest() | requests.ChooseUseRequest() | requests.DifferentiateRequest():
                    if self._session is not None:
                        self._session.answer(request)
                case requests.ReadyRequest():
                    self._port.answer(request)
                    if self._session is not None:
                        self._session.send()
                    if self._states is not None:
                        self._states.send()
                case _:
                    self._port.answer(request)

    def _open_function(self, box_id: str, place: int) -> None:
        graph = self._port.graph
        subject = opened_from(graph, InstantiatedFunctions(graph.library), box_id, place)
        session = FunctionSession(self._send_message, self._port.title)
        session.open(subject)
        session.send()
        self._session = session

    def _show_states(self) -> None:
        diff = difference_of(self.graph)
        if diff is None:
            self._send_message(FailureMessage(request="want_states", text="This picture shows no difference any more"))
            return
        self._states = StatesSession(self._send_message, diff)
        self._states.send()

    def _close_states(self) -> None:
        self._states = None
        self._send_message(StatesClosedMessage())

    def _follow_difference(self) -> None:
        """Let the pictures of both states follow the difference that is shown."""
        if self._states is None:
            return
        diff = difference_of(self.graph)
        if diff is None:
            self._close_states()
        else:
            self._states.follow(diff)
