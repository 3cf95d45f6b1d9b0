"""Scenes of graphs, compiled by the viewer's own code in the engine, which keeps the data of graphs."""

from __future__ import annotations

import json
import threading
import uuid
from typing import Any, Final, Generic, TypeVar

import msgspec

from graphcore.graph import Graph
from graphcore.graph.attached import Attached
from widgets.render.engine import EngineError, engine
from widgets.render.page_data import LiveData, PageData, content_of, rows_of
from widgets.render.page_data.build import json_line, page_lines
from widgets.render.plain_scene import plain_scene
from widgets.scene.snapshot import Snapshot, take_snapshot
from widgets.scene.state import Asked, SceneState
from widgets.scene.time_lens import times_note
from widgets.scene.types import Openings, Scene
from widgets.scene.value_lens import values_note

T = TypeVar("T")

COMPILE_LIMIT: Final = 60.0
"""Seconds for one scene: that of 10,000 nodes takes less than one."""

_UNKNOWN: Final = -1
_UNSENT: Final = 0
"""In place of the start of the engine that has the data of a graph: no engine has it, or it is to be sent whole."""


class _Answer(msgspec.Struct, Generic[T], frozen=True):
    answer: T
    openings: Openings
    found: bool


class _Limits(msgspec.Struct, frozen=True):
    max_boxes: int
    auto_boxes: int


class _Wish(msgspec.Struct, frozen=True, kw_only=True):
    """A picture, as `js/src/stills/compiler.ts` reads it."""

    title: str
    lens: str
    renderer: str
    openings: Openings
    limits: _Limits
    asked: tuple[Asked, ...]
    fresh: list[int]
    altered: list[int]


class _LostError(EngineError):
    """The engine was started again meanwhile, or has forgotten a graph."""


class Taken(Generic[T]):
    """A picture of a graph at one moment, which the engine compiles later, on any thread."""

    def __init__(self, compiler: GraphCompiler, what: str, kind: Any, wish: str) -> None:
        self._compiler = compiler
        self._what = what
        self._kind = kind
        self._wish = wish

    def result(self) -> T:
        """The answer about the picture.

        Raises:
            EngineError: there is no engine, or it cannot hold the graph.
        """
        return self.answer().answer

    def answer(self) -> _Answer[T]:
        """The same with what is open in it."""
        text = self._compiler.request(self._what, self._wish)
        reply: _Answer[T] = _decoded(text, self._kind)
        return reply


class GraphCompiler:
    """The data of one graph in the engine.

    It gets the changes only, and the whole if it has forgotten the graph.

    Args:
        graph: the graph.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._live = LiveData(graph, rows_of(graph), SceneState())
        self._key = uuid.uuid4().hex
        self._lock = threading.Lock()
        self._content: tuple[object, ...] = ()
        self._unsent: list[str] = []
        self._start = _UNKNOWN

    def take(self, kind: type[T], what: str, state: SceneState, *, title: str = "graph", previous: Snapshot | None = None) -> Taken[T]:
        """Take a picture of the graph as it is now.

        Args:
            kind: the type of the answer.
            what: `scene`, `boxes`, `mains` or `openings`.
            state: the choices.
            title: the title of the picture.
            previous: an earlier snapshot, to mark new and changed boxes; None marks nothing.
        """
        self._graph.settle()
        fresh, altered = ([], []) if previous is None else take_snapshot(self._graph).since(previous)
        wish = _wish(state, title, fresh, altered)
        with self._lock:
            content = content_of(self._graph)
            if self._start > 0 and not (engine.is_running and self._start == engine.starts):
                self._forget()
            if self._start == _UNKNOWN:
                self._unsent, self._start = [_text(self._live.whole())], _UNSENT
            elif content != self._content:
                self._unsent.append(_text(self._live.change()))
            self._content = content
        return Taken(self, what, _Answer[kind], wish)  # type: ignore[valid-type]

    def ask(self, kind: type[T], what: str, state: SceneState, *, title: str = "graph", previous: Snapshot | None = None) -> tuple[T, bool]:
        """The engine's answer about a picture, and False if a node that the state reveals is not there.

        The arguments are those of `take`; what the state reveals is open in it afterwards.

        Raises:
            EngineError: there is no engine, or it cannot hold the graph.
        """
        asked = tuple(state.asked)
        try:
            answer = self.take(kind, what, state, title=title, previous=previous).answer()
        except _LostError:
            answer = self.take(kind, what, state, title=title, previous=previous).answer()
        if asked:
            state.restore(answer.openings)
        return answer.answer, answer.found

    def request(self, what: str, wish: str) -> str:
        """The engine's answer, after what it does not know yet of the graph.

        Raises:
            EngineError: there is no engine, or it cannot hold the graph.
        """
        with self._lock:
            text = "null"
            try:
                text = engine.ask("compile", what, self._key, f"[{','.join(self._unsent)}]", wish, limit=COMPILE_LIMIT)
            finally:
                if text == "null":
                    self._forget()
            if text == "null":
                raise _LostError("the engine was started again")
            self._unsent, self._start = [], engine.starts
            return text

    def _forget(self) -> None:
        self._unsent, self._start = [], _UNKNOWN


_compilers: Final[Attached[GraphCompiler]] = Attached()


def compiler_of(graph: Graph) -> GraphCompiler:
    """The compiler of a graph."""
    compiler = _compilers.of(graph)
    if compiler is None:
        compiler = GraphCompiler(graph)
        _compilers.set(graph, compiler)
    return compiler


def build_scene(
    graph: Graph, state: SceneState | None = None, *, previous: Snapshot | None = None, title: str = "graph", revision: int = 0
) -> Scene:
    """The visible part of `graph`. Where the engine does not start it is a plain one, whose summary says the reason.

    Args:
        graph: the graph.
        state: the folding; a fresh state opens as many scopes as there is space for.
        previous: an earlier snapshot (`take_snapshot`), to mark new and changed boxes; None marks nothing.
        title, revision: carried in the scene.
    """
    try:
        scene, _ = compiler_of(graph).ask(Scene, "scene", state or SceneState(), title=title, previous=previous)
    except EngineError as error:
        scene = plain_scene(graph, title, str(error))
    return msgspec.structs.replace(scene, revision=revision) if revision else scene


def first_scene(graph: Graph, data: PageData, state: SceneState, *, title: str = "graph") -> Scene:
    """The scene of `build_scene`, of the data that is written into a page.

    The engine need not get the graph in another form, and does not keep it.
    """
    try:
        notes = _text({"times": times_note(graph), "values": values_note(graph)})
        text = engine.ask("first", page_lines(data).decode(), notes, _wish(state, title), limit=COMPILE_LIMIT)
    except EngineError as error:
        return plain_scene(graph, title, str(error))
    made: _Answer[Scene] = _decoded(text, _Answer[Scene])
    if state.asked:
        state.restore(made.openings)
    return made.answer


def without_long_edges(scene: Scene) -> Scene:
    """The scene with stubs for producers that are far away; as it is without an engine."""
    try:
        cut: Scene = _decoded(engine.ask("cut", _text(scene)), Scene)
    except EngineError:
        return scene
    return cut


def boxes_of(graph: Graph, state: SceneState) -> dict[str, str]:
    """The box id of each node by its name, in the picture of `build_scene`; empty without an engine."""
    try:
        return compiler_of(graph).ask(dict[str, str], "boxes", state)[0]
    except EngineError:
        return {}


def main_names(graph: Graph, state: SceneState) -> list[str]:
    """The names of the nodes with boxes of their own in the picture; empty without an engine."""
    try:
        return compiler_of(graph).ask(list[str], "mains", state)[0]
    except EngineError:
        return []


def reveal(graph: Graph, state: SceneState, name: str) -> bool:
    """Open all scopes around the node called `name`, at any depth. False if there is no such node.

    Raises:
        EngineError: the engine does not start.
    """
    state.reveal(name)
    return compiler_of(graph).ask(type(None), "openings", state)[1]


def _wish(state: SceneState, title: str, fresh: list[int] | None = None, altered: list[int] | None = None) -> str:
    wish = _Wish(
        title=title,
        lens=state.lens,
        renderer=state.renderer,
        openings=state.openings(),
        limits=_Limits(state.max_boxes, state.auto_boxes),
        asked=tuple(state.asked),
        fresh=fresh or [],
        altered=altered or [],
    )
    return _text(wish)


def _text(value: object) -> str:
    return json_line(value).decode()


def _decoded(text: str, kind: Any) -> Any:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, UnicodeEncodeError):  # half of a pair of letters, which json reads
        return msgspec.convert(json.loads(text), kind)
