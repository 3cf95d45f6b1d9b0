"""Graphs and scenes as files: the entry point to all renderers."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from graphcore.difference import GraphDiff, difference_graph
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Graph
from graphcore.support.files import checked_path
from graphcore.support.replacing import write_file
from widgets.render.both_states import both_states
from widgets.render.compiled import build_scene, first_scene
from widgets.render.dot_source import DotSource
from widgets.render.html import to_page
from widgets.render.messages import scene_message
from widgets.render.outline import to_outline as scene_to_outline
from widgets.render.page_data import graph_data, pack, rows_of
from widgets.render.stills import to_dot as scene_to_dot
from widgets.render.stills import to_mermaid as scene_to_mermaid
from widgets.render.stills import to_svg as scene_to_svg
from widgets.scene.state import SceneState
from widgets.scene.steps import page_steps
from widgets.scene.timelines import page_timelines
from widgets.scene.types import Scene

Source = Graph | GraphDiff | Scene
SUFFIXES: Final = (".svg", ".dot", ".mmd", ".html", ".txt")


def to_dot(source: Source, state: SceneState | None = None) -> DotSource:
    """DOT of a graph (folded according to `state`), a difference, or a scene.

    Returns:
        A `graphviz.Source`, whose text is its `source`.
    """
    return DotSource(scene_to_dot(as_scene(source, state)))


def to_mermaid(source: Source, state: SceneState | None = None) -> str:
    """Mermaid flowchart text of a graph (folded according to `state`), a difference, or a scene."""
    return scene_to_mermaid(as_scene(source, state))


def to_outline(source: Source, state: SceneState | None = None) -> str:
    """A text tree of a graph (folded according to `state`), a difference, or a scene."""
    return scene_to_outline(as_scene(source, state))


def to_svg(source: Source, state: SceneState | None = None) -> str:
    """An SVG picture of a graph (folded according to `state`), a difference, or a scene."""
    return scene_to_svg(as_scene(source, state), lens="" if state is None else state.lens)


def to_html(source: Source, state: SceneState | None = None, *, title: str = "graph") -> str:
    """An interactive page of a graph, a difference or a scene, for offline use.

    The page of a graph opens every scope and body, finds every node and inspects it, as a live view does. That of a difference shows both states
    in one picture, or side by side. That of a scene is a fixed picture.

    Args:
        source: the graph, difference or scene.
        state: the folding of a graph.
        title: the title of a graph.
    """
    states = both_states(source) if isinstance(source, GraphDiff) else None
    source = _drawable(source)
    own = (state or SceneState()).copy()  # a page opens every call of its tree to carry the bodies, and the live view must not see that
    if not isinstance(source, Graph):
        return to_page(scene_message(source, own), with_mermaid=True)
    data = graph_data(source, own, rows_of(source))
    message = scene_message(first_scene(source, data, own, title=title), own)
    return to_page(message, data=pack(data), timelines=page_timelines(source), steps=page_steps(source), states=states, with_mermaid=True)


def save(source: Source, path: str | Path, state: SceneState | None = None, *, title: str = "graph") -> Path:
    """Write a graph, difference or scene in the format of the suffix: .svg, .dot, .mmd, .html or .txt.

    Args:
        source: the graph, difference or scene.
        path: the file.
        state: the folding of a graph.
        title: the title of a graph.

    Returns:
        The path.

    Raises:
        InvalidArgumentError: another suffix.
        FailedPreconditionError: it cannot be written.
    """
    target = checked_path(path)
    writers = {".svg": to_svg, ".dot": lambda scene: to_dot(scene).source, ".mmd": to_mermaid, ".txt": to_outline}
    suffix = target.suffix.lower()
    if suffix not in SUFFIXES:
        raise InvalidArgumentError(f"Cannot tell the format of '{target.name}': required a name that ends in one of {', '.join(SUFFIXES)}")
    text = to_html(source, state, title=title) if suffix == ".html" else writers[suffix](as_scene(source, state, title))
    write_file(target, text.encode())
    return target


def as_scene(source: Source, state: SceneState | None = None, title: str = "graph") -> Scene:
    """`source` if it is a scene, else the scene of the graph, which gets the title."""
    drawn = _drawable(source)
    return drawn if isinstance(drawn, Scene) else build_scene(drawn, state, title=title)


def _drawable(source: Source) -> Graph | Scene:
    return difference_graph(source) if isinstance(source, GraphDiff) else source
