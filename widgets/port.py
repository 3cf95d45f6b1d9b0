"""The kernel's side of one picture: sends what has changed, and explains what a page cannot know."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final, get_args

from traitlets.log import get_logger

from graphcore.errors import InvalidArgumentError
from graphcore.graph import Graph
from graphcore.support.budget import within_one_budget
from widgets import messages, requests
from widgets.messages import ChangeMessage, Choices, FailureMessage, Look, NamesMessage, PictureMessage, ViewState
from widgets.render.compiled import boxes_of, build_scene, compiler_of, main_names
from widgets.render.page_data import LiveData, content_of, graph_data_in_steps, pack_change, rows_of, with_timelines
from widgets.render.plain_scene import plain_scene
from widgets.render.saved_picture import NOT_YET, TOO_LARGE, TakenPicture, packed_graph
from widgets.requests import PictureRequest
from widgets.scene.explain import explain, locate
from widgets.scene.overlays import lens_names_of
from widgets.scene.placement_effect import what_if_for
from widgets.scene.run_names import split_name
from widgets.scene.snapshot import Snapshot, take_snapshot
from widgets.scene.state import SceneState
from widgets.scene.stepping import Stepping
from widgets.scene.timelines import saved_timelines, timelines_key, timelines_of
from widgets.scene.types import Scene
from widgets.scene.values import values_of
from widgets.timelines import StepTimeline

MIN_SECONDS_BETWEEN: Final = 0.1
"""Scenes are not sent more often than this; of several the latest is sent."""
SUMMARY_BOXES: Final = (20, 8)
"""The numbers of boxes of the scenes for small pictures."""
SUMMARY_NODES: Final = 5_000
"""A larger graph has no scenes for small pictures: cells would wait for them."""

_RENDERERS: Final[dict[str, messages.Renderer]] = {name: name for name in get_args(messages.Renderer)}


Send = Callable[[PictureMessage, list[bytes]], None]
"""Sends a message with its binary buffers."""


class Port:
    """A picture of a graph, whose scenes pages compile from the changes that are sent. Errors are raised; the owner reports them.

    Args:
        graph: the graph.
        send: a callback for each message and its buffers.
        title: the title of the picture.
        state: the initial folding, lens and renderer.

    Attributes:
        state: the user's choices, as pages report them.
        name: the title of the picture, as long as it is not outdated.
        outdated: the reason if the picture is that of an earlier version, "" if it is not.
        drawn: the viewer's latest report of a picture on the screen, None before the first.
        lock: held during changes.
    """

    def __init__(self, graph: Graph, send: Send, *, title: str = "graph", state: SceneState | None = None) -> None:
        self.state = state or SceneState()
        self.name = title
        self.outdated = ""
        self.drawn: requests.DrawnReport | None = None
        self.lock = threading.RLock()
        self._send = send
        self._begin(graph)
        self._chosen = True
        self._look = Look()
        self._look_is_due = False
        self._due_focus = ""
        self._timelines: tuple[str, list[StepTimeline]] = ("", [])
        self._stepping = Stepping()
        self._boxes: tuple[tuple[object, ...], dict[str, str]] = ((), {})
        self._packed: tuple[tuple[object, ...], str] | None = None
        self._sent_at = 0.0
        self._next_send = 0.0
        self._waiting: asyncio.TimerHandle | None = None

    def _begin(self, graph: Graph) -> None:
        self._graph, self._rows = graph, rows_of(graph)
        self._live = LiveData(graph, self._rows, self.state)
        self._scene: Scene | None = None
        self._key: tuple[object, ...] = ()
        self._sent_key: tuple[object, ...] = ()
        self._before: Snapshot | None = None
        self._now: Snapshot | None = None
        self._seen_version = -1

    @property
    def graph(self) -> Graph:
        """The current graph."""
        return self._graph

    @property
    def title(self) -> str:
        """The title of the picture, which says so where it is outdated."""
        return f"{self.name}: picture of the version before ({self.outdated})" if self.outdated else self.name

    @property
    def scene(self) -> Scene:
        """The picture of the last refresh, as pages with the reported choices show it."""
        with self.lock:
            key = self._scene_key()
            if self._scene is None or key != self._key:
                self._scene, self._key = build_scene(self._graph, self.state, previous=self._before, title=self.title), key
            return self._scene

    def take(self, model: str, *, with_graph: bool) -> TakenPicture:
        """Take the current picture for an output.

        Args:
            model: the id of the live view's model.
            with_graph: pack the graph first, all at once.
        """
        with self.lock:
            if with_graph:
                for _ in self.pack():
                    pass
            graph, compiler = self._graph, compiler_of(self._graph)
            states = [self.state, *(SceneState(auto_boxes=boxes) for boxes in SUMMARY_BOXES if len(graph) <= SUMMARY_NODES)]
            taken = [compiler.take(Scene, "scene", state, title=self.title, previous=self._before) for state in states]
            packed = self.packed
            note = "" if packed else NOT_YET if packed is None else TOO_LARGE
            plain = partial(plain_scene, graph, self.title)
            return TakenPicture(taken, self.state.copy(), plain, model, packed or "", note)

    @property
    def packed(self) -> str | None:
        """The packed graph, which opens saved pictures.

        "" if it is too large, None if the graph has changed since it was packed.
        """
        return None if self._packed is None or self._packed[0] != self._content() else self._packed[1]

    def pack(self) -> Iterator[None]:
        """Pack the graph for saved pictures, in steps of about a millisecond. Ends early if the graph changes between them."""
        if self.packed is not None:
            return
        content = self._content()
        steps = graph_data_in_steps(self._graph, self.state, self._rows)
        while content == self._content():
            try:
                next(steps)
            except StopIteration as end:
                self._packed = content, packed_graph(with_timelines(end.value, saved_timelines(self._graph)))
                return
            yield

    @property
    def view_state(self) -> ViewState:
        """The user's choices, with camera and selection."""
        with self.lock:
            openings, look = self.state.openings(), self._look
            return ViewState(
                opened=openings.opened,
                closed=openings.closed,
                mode=openings.mode,
                mirror=openings.mirror,
                lens=self.state.lens,
                renderer=self.state.renderer,
                camera=look.camera,
                selection=look.selection,
            )

    def restore(self, stored: ViewState) -> None:
        """Restore the user's choices, and send the picture.

        Raises:
            InvalidArgumentError: there is no such lens.
        """
        if stored.lens not in lens_names_of(self._graph):
            raise InvalidArgumentError(f"There is no lens '{stored.lens}': required one of {', '.join(lens_names_of(self._graph))}")
        with self.lock:
            self.state.restore(stored)
            self.choose(renderer=stored.renderer, lens=stored.lens)
            self._look = Look(camera=stored.camera, selection=stored.selection)
            self._look_is_due = True
            self._send_change()

    def show(self, graph: Graph, *, follows: bool = False) -> None:
        """Show another graph from the next `refresh` on; scopes of the same names stay open.

        Args:
            graph: the graph.
            follows: True for a later state of the same, whose new and changed nodes are marked.
        """
        with self.lock:
            if graph is not self._graph:
                now = self._now
                self._begin(graph)
                self._now = now if follows else None

    def choose(self, *, renderer: str = "", lens: str = "", mirror: bool | None = None) -> None:
        """Choose what the next `refresh` shows; "" and None keep the choice."""
        before = self.state.renderer, self.state.lens, self.state.mirror
        self.state.renderer = _RENDERERS.get(renderer, self.state.renderer)
        if lens in lens_names_of(self._graph):
            self.state.lens = lens
        self.state.mirror = self.state.mirror if mirror is None else mirror
        self._chosen |= before != (self.state.renderer, self.state.lens, self.state.mirror)

    def focus(self, name: str) -> None:
        """Open what hides a node, and select it and bring it into view from the next `refresh` on.

        This ends when the user looks elsewhere.

        Raises:
            InvalidArgumentError: there is no such node.
        """
        with self.lock:
            if locate(self._graph, name) is None:
                raise InvalidArgumentError(f"There is no node '{name}' in the graph")
            self.state.reveal(name)
            self._due_focus = name

    def refresh(self, failed: Callable[[str, Exception], None], *, sent_at: float | None = None) -> None:
        """Send the changes of the graph, soon. If the picture is the same, only that is sent.

        Args:
            failed: a callback for later failures.
            sent_at: the end of the cell, in ms since the epoch; now if None.
        """
        with self.lock:
            self._graph.settle()
            self._remember()
            if self._waiting is not None or self._shown_key() != self._sent_key:
                self._sent_at = time.time() * 1000 if sent_at is None else sent_at
                self._send_soon(failed)
            else:
                self._send(messages.UnchangedMessage(), [])
            if self._stepping.has_begun(self._graph):
                self._send(messages.ShowPaneMessage(pane="stepper"), [])

    def send(self) -> None:
        """Send what has changed at once."""
        with self.lock:
            self._send_change()

    def close(self) -> None:
        """Cancel pending messages."""
        with self.lock:
            if self._waiting is not None:
                self._waiting.cancel()
                self._waiting = None

    @within_one_budget
    def answer(self, request: PictureRequest) -> None:
        """Answer a request of the viewer, or report its failure."""
        match request:
            case requests.ReadyRequest() | requests.WholeRequest():
                self._send_change(whole=True)
            case requests.OpeningsReport(openings=openings):
                self.state.restore(openings)
            case requests.RendererRequest(renderer=renderer):
                self.state.renderer = renderer
            case requests.LensRequest(lens=lens):
                self.state.lens = lens if lens in lens_names_of(self._graph) else self.state.lens
            case requests.LookReport(look=look):
                self._look, self._look_is_due, self._due_focus = look, False, ""
            case requests.DrawnReport():
                self.drawn = request
            case requests.ExplainRequest(id=box_id, name=name):
                self._explain(box_id, name)
            case requests.ValuesRequest(name=name, first=first):
                self._send_values(name, first)
            case requests.RequestDeviceRequest(ids=ids, names=names, device=device, apply=apply):
                self._try_device(ids, names, device, apply=apply)
            case requests.TimelinesRequest(known=held_key):
                self._send_timelines(held_key)
            case requests.StepsRequest(known=held_key):
                self._send_steps(held_key)
            case requests.LiveStepRequest():
                self._step(request)
            case requests.DifferenceRequest():
                pass  # answered by the owner of the view, which has earlier states of the graph
            case _:
                get_logger().debug("Graphloupe's view has no answer to %r", request)

    def highlight(self, names: Iterable[str], what: str) -> None:
        """Dim all boxes of the picture but those of these nodes.

        Args:
            names: the names of the nodes.
            what: what the nodes have in common, after their number: `for op:Relu`.
        """
        with self.lock:
            self._send(NamesMessage(names=list(names), what=what), [])

    def nodes_in_view(self) -> list[str]:
        """The names of the nodes with boxes of their own; in an open call the names within the function."""
        with self.lock:
            return list(dict.fromkeys([split_name(name)[1] for name in main_names(self._graph, self.state)]))

    def _explain(self, box_id: str, name: str) -> None:
        explanation = explain(self._graph, name)
        if explanation is None:
            self._send(FailureMessage(request="inspect", text=f"'{box_id}' is no longer in the graph"), [])
            return
        self._send(messages.ExplanationMessage(id=box_id, explanation=explanation), [])

    def _send_values(self, name: str, first: int) -> None:
        located = locate(self._graph, name)
        values = None if located is None else values_of(located.node, first)
        if values is None:
            self._send(FailureMessage(request="values", text=f"'{name}' has no values any more"), [])
        else:
            self._send(messages.ValuesMessage(name=name, values=values), [])

    def _try_device(self, ids: list[str], names: list[str], device: str | None, *, apply: bool) -> None:
        effect = what_if_for(self._graph, ids, names, device, apply=apply)
        if apply:
            self._remember()
            self._send_change()
        self._send(messages.WhatIfMessage(what_if=effect), [])

    def _send_timelines(self, held_key: str) -> None:
        key = timelines_key(self._graph)
        if key != self._timelines[0]:
            self._timelines = (key, timelines_of(self._graph))
        self._send(messages.TimelinesMessage(key=key, timelines=None if key == held_key else self._timelines[1]), [])

    def _send_steps(self, held_key: str) -> None:
        self._send(self._stepping.message(self._graph, held_key), [])

    def _step(self, request: requests.LiveStepRequest) -> None:
        has_ended = self._stepping.go(self._graph, self._boxes_of_steps(), request)
        self._send_steps("")
        if has_ended:
            self._send_change()  # its record has become that of the graph

    def _boxes_of_steps(self) -> dict[str, str]:
        """The boxes of nodes, kept from one step to the next."""
        key = id(self._graph), self._graph.version, *self.state.choices()
        if key != self._boxes[0]:
            self._boxes = key, boxes_of(self._graph, self.state)
        return self._boxes[1]

    # ---- sending ----------------------------------------------------------------------------------------------------

    def _remember(self) -> None:
        """Store the graph of the last refresh, so that the picture can mark changes."""
        if self._graph.version != self._seen_version:
            self._before, self._now = self._now, take_snapshot(self._graph)
            self._seen_version = self._graph.version
        else:
            self._before = self._now

    def _send_soon(self, failed: Callable[[str, Exception], None]) -> None:
        delay = self._next_send - time.monotonic()
        loop = _running_loop() if delay > 0 else None
        if self._waiting is None and loop is None:
            self._send_change()
        elif self._waiting is None and loop is not None:
            self._waiting = loop.call_later(delay, self._send_late, failed)

    def _send_late(self, failed: Callable[[str, Exception], None]) -> None:
        try:
            with self.lock:
                self._waiting = None
                self._send_change()
        except Exception as error:  # noqa: BLE001 - no caller could handle it
            failed("refresh", error)

    def _send_change(self, *, whole: bool = False) -> None:
        """Send what has changed since the last message, or the whole graph and all choices."""
        self._next_send = time.monotonic() + MIN_SECONDS_BETWEEN
        key = self._shown_key()
        change = self._live.whole() if whole else self._live.change()
        fresh, altered = ([], []) if self._before is None or self._now is None else self._now.since(self._before)
        state = self.state
        choices = Choices(openings=state.openings(), lens=state.lens, renderer=state.renderer) if whole or self._chosen else None
        message = ChangeMessage(
            title=self.title,
            choices=choices,
            fresh=fresh,
            altered=altered,
            focus=self._due_focus,
            sent_at=self._sent_at,
            look=self._look if self._look_is_due else None,
            outdated=bool(self.outdated),
        )
        self._sent_at, self._chosen, self._sent_key = 0.0, False, key
        self._send(message, [pack_change(change)])

    def _scene_key(self) -> tuple[object, ...]:
        """Everything that decides what the scene is."""
        return (*self._content(), id(self._before), self.title, *self.state.choices())

    def _shown_key(self) -> tuple[object, ...]:
        """Everything in the kernel that decides the picture. The viewer asks anew for values and steps with each."""
        return (*self._content(), id(self._before), self.title, self._due_focus, self._look_is_due, self._chosen, self._graph.run_count)

    @property
    def still_key(self) -> tuple[object, ...]:
        """Everything that decides what the picture of an output is, for comparison of two moments."""
        return (*self._scene_key(), self.state.lens, self.state.renderer, self.packed is None)

    def _content(self) -> tuple[object, ...]:
        """Everything that decides what is in the graph behind the picture, for comparison of two moments."""
        return (id(self._graph), *content_of(self._graph))


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
