"""The kernel's side of one picture: sends scenes and answers requests of the viewer."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import Final, get_args

import msgspec
from traitlets.log import get_logger

from graphcore.errors import InvalidArgumentError
from graphcore.graph import Graph
from graphcore.placement.last_placer import last_placement
from graphcore.support.budget import within_one_budget
from widgets import messages
from widgets.messages import FailureMessage, HighlightMessage, Look, PictureMessage, PictureRequest, SceneMessage, ViewState
from widgets.render.messages import scene_message
from widgets.render.page_data import KeptRows, graph_data_in_steps, with_timelines
from widgets.render.saved_picture import NOT_YET, TOO_LARGE, SavedPicture, packed_graph
from widgets.scene.boxes import Box
from widgets.scene.build import boxes_of, build_scene
from widgets.scene.find import find, matching
from widgets.scene.inspect import inspect
from widgets.scene.lenses import lens_names, own_lenses
from widgets.scene.placement_effect import what_if_for
from widgets.scene.run_names import split_name
from widgets.scene.snapshot import Snapshot, take_snapshot
from widgets.scene.state import SceneState
from widgets.scene.stepping import Stepping
from widgets.scene.timelines import box_around, saved_timelines, timelines_key, timelines_of
from widgets.scene.types import Scene
from widgets.scene.value_lens import nodes_of_health, recorded_values, value_marks
from widgets.scene.values import values_of
from widgets.scene.visible import scope_tree, visible_boxes
from widgets.scene.words import counted
from widgets.timelines import StepTimeline

MIN_SECONDS_BETWEEN: Final = 0.1
"""Scenes are not sent more often than this; of several the latest is sent."""
SUMMARY_BOXES: Final = (20, 8)
"""The numbers of boxes of the scenes for small pictures."""
SUMMARY_NODES: Final = 5_000
"""A larger graph has no scenes for small pictures: cells would wait for them."""

_RENDERERS: Final[dict[str, messages.Renderer]] = {name: name for name in get_args(messages.Renderer)}


class Port:
    """A picture of a graph, sent in scenes. Errors are raised; the owner reports them.

    Args:
        graph: the graph.
        send: a callback for each message.
        title: the title of the picture.
        state: the initial folding, lens and renderer.
        revisions: numbers for the scenes, shared by ports that one viewer shows in turn.

    Attributes:
        state: the user's choices.
        drawn: the viewer's latest report of a picture on the screen, None before the first.
        lock: held during changes.
    """

    def __init__(
        self,
        graph: Graph,
        send: Callable[[PictureMessage], None],
        *,
        title: str = "graph",
        state: SceneState | None = None,
        revisions: Iterator[int] | None = None,
    ) -> None:
        self.state = state or SceneState()
        self.title = title
        self.drawn: messages.DrawnReport | None = None
        self.lock = threading.RLock()
        self._send = send
        self._graph, self._rows = graph, KeptRows(graph)
        self._revision = 0
        self._revisions = revisions or count(1)
        self._last: SceneMessage | None = None
        self._look = Look()
        self._look_is_due = False
        self._due_focus = ""
        self._timelines: tuple[str, list[StepTimeline]] = ("", [])
        self._stepping = Stepping()
        self._boxes: tuple[tuple[object, ...], dict[str, str]] = ((), {})
        self._summaries: list[Scene] = []
        self._packed: tuple[tuple[object, ...], str] | None = None
        self._key: tuple[object, ...] = ()
        self._sent_key: tuple[object, ...] = ()
        self._summaries_key: tuple[object, ...] = ()
        self._before: Snapshot | None = None
        self._now: Snapshot | None = None
        self._seen_version = -1
        self._sent_at = 0.0
        self._next_send = 0.0
        self._waiting: asyncio.TimerHandle | None = None

    @property
    def graph(self) -> Graph:
        """The current graph."""
        return self._graph

    @property
    def scene(self) -> Scene:
        """The current scene, or the next one to be sent."""
        with self.lock:
            if self._waiting is not None:
                return build_scene(self._graph, self.state, previous=self._before, title=self.title, revision=self._revision)
            return (self._last or self._compose()).scene

    def saved_picture(self, model: str, *, with_graph: bool) -> SavedPicture:
        """The current picture for an output.

        Args:
            model: the id of the live view's model.
            with_graph: pack the graph first, all at once.
        """
        with self.lock:
            if with_graph:
                for _ in self.pack():
                    pass
            scene, graph = self.scene, self.packed
            if not graph:
                scene = msgspec.structs.replace(scene, summary=f"{scene.summary} · {NOT_YET if graph is None else TOO_LARGE}")
            return SavedPicture(message=scene_message(scene, self.state), model=model, graph_gzip_base64=graph or "")

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
    def summaries(self) -> list[Scene]:
        """The scene, followed by scenes of fewer boxes, for pictures without a viewer to open them."""
        with self.lock:
            scene = self.scene
            if self._waiting is not None or self._key != self._summaries_key:
                self._summaries, self._summaries_key = self._smaller(scene), self._key
            return [scene, *self._summaries]

    def _smaller(self, scene: Scene) -> list[Scene]:
        """Scenes of ever fewer boxes than `scene`."""
        found = [scene]
        for boxes in SUMMARY_BOXES if len(self._graph) <= SUMMARY_NODES else ():
            state = SceneState(auto_boxes=boxes)
            state.tree = self.state.tree
            summary = build_scene(self._graph, state, previous=self._before, title=self.title, revision=self._revision)
            if len(summary.nodes) < len(found[-1].nodes):
                found.append(summary)
        return found[1:]

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
        if stored.lens not in lens_names():
            raise InvalidArgumentError(f"There is no lens '{stored.lens}': required one of {', '.join(lens_names())}")
        with self.lock:
            self.state.restore(stored)
            self.choose(renderer=stored.renderer, lens=stored.lens)
            self._look = Look(camera=stored.camera, selection=stored.selection)
            self._look_is_due = True
            self._send_scene()

    def show(self, graph: Graph) -> None:
        """Show another graph from the next `refresh` on; scopes of the same names stay open."""
        with self.lock:
            if graph is self._graph:
                return
            self._graph, self._rows = graph, KeptRows(graph)
            self._last, self._sent_key = None, ()
            self._before = self._now = None
            self._seen_version = -1

    def choose(self, *, renderer: str = "", lens: str = "", mirror: bool | None = None) -> None:
        """Choose what the next `refresh` shows; "" and None keep the choice."""
        self.state.renderer = _RENDERERS.get(renderer, self.state.renderer)
        if lens in lens_names():
            self.state.lens = lens
        self.state.mirror = self.state.mirror if mirror is None else mirror

    def focus(self, name: str) -> None:
        """Open what hides a node, and select it and bring it into view from the next `refresh` on.

        This ends when the user looks elsewhere.

        Raises:
            InvalidArgumentError: there is no such node.
        """
        with self.lock:
            if not self.state.reveal(scope_tree(self._graph, self.state), name):
                raise InvalidArgumentError(f"There is no node '{name}' in the graph")
            self._due_focus = name

    def refresh(self, failed: Callable[[str, Exception], None], *, sent_at: float | None = None) -> None:
        """Send the current graph, at once or after the minimum interval, unless the picture is the same.

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
                self._send(messages.UnchangedMessage())
            if self._stepping.has_begun(self._graph):
                self._send(messages.ShowPaneMessage(pane="stepper"))

    def send(self) -> None:
        """Send the current graph at once."""
        with self.lock:
            self._send_scene()

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
            case messages.ReadyRequest():
                last = self._last or self._compose()
                self._send(
                    msgspec.structs.replace(
                        last, sent_at=0.0, focus=self._box_of(self._due_focus), lens=self.state.lens, look=self._due_look()
                    )
                )
            case messages.ExpandRequest(id=box_id):
                self.state.expand(box_id)
                self._send_scene()
            case messages.CollapseRequest(id=box_id):
                self.state.collapse(box_id)
                self._send_scene()
            case messages.InspectRequest(id=box_id):
                self._inspect(box_id)
            case messages.ValuesRequest(name=name, first=first):
                self._send_values(name, first)
            case messages.WhatIfRequest(ids=ids, device=device, apply=apply):
                self._try_device(ids, device, apply=apply)
            case messages.TimelinesRequest(known=known):
                self._send_timelines(known)
            case messages.HealthRequest():
                self._send_health()
            case messages.StepsRequest(known=known):
                self._send_steps(known)
            case messages.LiveStepRequest():
                self._step(request)
            case messages.RevealRequest(name=name, quiet=quiet):
                self._reveal(name, quiet=quiet)
            case messages.SearchRequest(query=query, limit=limit):
                inner = visible_boxes(self._graph, self.state).inner_nodes()
                self._send(find(self._graph, query, limit=limit, inner=inner))
            case messages.FilterRequest(query=query):
                inner = visible_boxes(self._graph, self.state).inner_nodes()
                self.highlight([node.name for node in matching(query, [*self._graph.nodes, *inner])], f"for {query}")
            case messages.RendererRequest(renderer=renderer):
                self.state.renderer = renderer
                self._send_scene()
            case messages.LensRequest(lens=lens):
                self.choose(lens=lens)
            case messages.RestoreRequest(openings=openings):
                self.state.restore(openings)
                self._send_scene()
            case messages.LookReport(look=look):
                self._look, self._look_is_due, self._due_focus = look, False, ""
            case messages.DrawnReport():
                self.drawn = request
            case messages.CrowdedRequest(boxes=boxes):
                self.state.limit(boxes)
                # The same picture in another form: it has the number of the one that it replaces.
                self._last = msgspec.structs.replace(self._last or self._compose(), scene=self._scene_now())
                self._send(self._last)
            case messages.DifferenceRequest():
                pass  # answered by the owner of the view, which has earlier states of the graph
            case _:
                get_logger().debug("Graphloupe's view has no answer to %r", request)

    def highlight(self, names: Iterable[str], what: str) -> None:
        """Dim all boxes of the picture but those of these nodes.

        Args:
            what: what the nodes have in common, after their number: `for op:Relu`.
        """
        with self.lock:
            known = boxes_of(self._graph, self.state)
            nodes = list(names)
            boxes = list(dict.fromkeys(known[name] for name in nodes if name in known))
            text = f"{counted(len(nodes), 'node')} {what}, in {counted(len(boxes), 'box', 'boxes')}"
            self._send(HighlightMessage(boxes=boxes, text=text))

    def nodes_in_view(self) -> list[str]:
        """The names of the nodes with boxes of their own; in an open call the names within the function."""
        with self.lock:
            return _main_names(visible_boxes(self._graph, self.state).boxes)

    def _inspect(self, box_id: str) -> None:
        inspection = inspect(self._graph, self.state, box_id)
        if inspection is None:
            self._send(FailureMessage(request="inspect", text=f"'{box_id}' is no longer in the graph"))
            return
        self._send(messages.InspectionMessage(inspection=inspection))

    def _send_values(self, name: str, first: int) -> None:
        node = self._graph.find(name) or next(
            (node for node in visible_boxes(self._graph, self.state).inner_nodes() if node.name == name), None
        )
        values = None if node is None else values_of(node, first)
        if values is None:
            self._send(FailureMessage(request="values", text=f"'{name}' has no values any more"))
        else:
            self._send(messages.ValuesMessage(name=name, values=values))

    def _try_device(self, ids: list[str], device: str | None, *, apply: bool) -> None:
        visible = visible_boxes(self._graph, self.state)
        found = what_if_for(self._graph, visible, ids, device, apply=apply)
        if apply:
            self._remember()
            self._send_scene()
        self._send(messages.WhatIfMessage(what_if=found))

    def _send_timelines(self, known: str) -> None:
        key = timelines_key(self._graph)
        if key != self._timelines[0]:
            self._timelines = (key, timelines_of(self._graph))
        timelines = self._timelines[1]
        boxes = boxes_of(self._graph, self.state)
        shown = {node: box for timeline in timelines for node in timeline.nodes if (box := box_around(node, boxes))}
        self._send(messages.TimelinesMessage(key=key, timelines=None if key == known else timelines, boxes=shown))

    def _send_health(self) -> None:
        recorded = recorded_values(self._graph)
        if recorded is None:
            _, _, note = value_marks(self._graph, ())
            self._send(messages.HealthMessage(note=note))
            return
        health = recorded.values.health
        boxes = boxes_of(self._graph, self.state)
        shown = {name: boxes[name] for name in nodes_of_health(health) if name in boxes}
        self._send(messages.HealthMessage(health=health, boxes=shown))

    def _send_steps(self, known: str) -> None:
        self._send(self._stepping.message(self._graph, self._boxes_of_steps(), known))

    def _step(self, request: messages.LiveStepRequest) -> None:
        boxes = self._boxes_of_steps()
        has_ended = self._stepping.go(self._graph, boxes, request)
        self._send(self._stepping.message(self._graph, boxes, ""))
        if has_ended:
            self._send_scene()  # its record has become that of the graph

    def _boxes_of_steps(self) -> dict[str, str]:
        """The boxes of nodes, kept from one step to the next."""
        key = id(self._graph), self._graph.version, *self.state.choices()
        if key != self._boxes[0]:
            self._boxes = key, boxes_of(self._graph, self.state)
        return self._boxes[1]

    def _reveal(self, name: str, *, quiet: bool) -> None:
        if not self.state.reveal(scope_tree(self._graph, self.state), name):
            self._send(FailureMessage(request="reveal", text=f"'{name}' is no longer in the graph"))
            return
        self._send_scene(focus="" if quiet else name)

    # ---- sending ----------------------------------------------------------------------------------------------------

    def _remember(self) -> None:
        """Store the graph of the last refresh, so that the scene can mark changes."""
        if self._graph.version != self._seen_version:
            self._before, self._now = self._now, take_snapshot(self._graph)
            self._seen_version = self._graph.version
        else:
            self._before = self._now

    def _send_soon(self, failed: Callable[[str, Exception], None]) -> None:
        delay = self._next_send - time.monotonic()
        loop = _running_loop() if delay > 0 else None
        if self._waiting is None and loop is None:
            self._send_scene()
        elif self._waiting is None and loop is not None:
            self._waiting = loop.call_later(delay, self._send_late, failed)

    def _send_late(self, failed: Callable[[str, Exception], None]) -> None:
        try:
            with self.lock:
                self._waiting = None
                self._send_scene()
        except Exception as error:  # noqa: BLE001 - no caller could handle it
            failed("refresh", error)

    def _send_scene(self, focus: str = "") -> None:
        self._next_send = time.monotonic() + MIN_SECONDS_BETWEEN
        self._send(self._compose(focus))
        self._sent_key = self._shown_key()

    def _compose(self, focus: str = "") -> SceneMessage:
        self._revision = next(self._revisions)
        box = self._box_of(focus or self._due_focus)
        self._last = scene_message(self._scene_now(), self.state, focus=box, sent_at=self._sent_at, look=self._due_look())
        self._sent_at = 0.0
        return self._last

    def _box_of(self, name: str) -> str:
        """The box of a node, which may be that of its scope or variable."""
        return boxes_of(self._graph, self.state).get(name, name) if name else ""

    def _due_look(self) -> Look | None:
        """The look that was restored in Python, until the viewer reports its own."""
        return self._look if self._look_is_due else None

    def _scene_now(self) -> Scene:
        """The scene. If nothing it shows can have changed (by a training cell, say), the last one is reused."""
        graph = self._graph
        key = self._scene_key()
        if self._last is not None and key == self._key:
            return msgspec.structs.replace(self._last.scene, revision=self._revision)
        scene = build_scene(graph, self.state, previous=self._before, title=self.title, revision=self._revision)
        self._key = key
        return scene

    def _scene_key(self) -> tuple[object, ...]:
        """Everything that decides what the scene is."""
        return (*self._content(), id(self._before), self.title, *self.state.choices())

    def _shown_key(self) -> tuple[object, ...]:
        """Everything that decides what the viewer shows; it asks anew for values and steps with each picture."""
        state = self.state
        return (*self._scene_key(), state.lens, state.renderer, self._due_focus, self._due_look(), self._graph.run_count)

    @property
    def still_key(self) -> tuple[object, ...]:
        """Everything that decides what the picture of an output is, for comparison of two moments."""
        return (*self._scene_key(), self.state.lens, self.state.renderer, self.packed is None)

    def _content(self) -> tuple[object, ...]:
        """Everything that decides what is in the graph behind the picture, for comparison of two moments."""
        graph, cells = self._graph, self._graph.cells
        return (id(graph), graph.version, last_placement(graph), graph.trace, graph.recording, cells.faults, cells.runs, own_lenses())


def _main_names(boxes: Iterable[Box]) -> list[str]:
    return list(dict.fromkeys([split_name(box.main.name)[1] for box in boxes if box.main is not None]))


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
