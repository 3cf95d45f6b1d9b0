"""Random walks through a picture: what a reader opens, closes, reveals and mirrors."""

from __future__ import annotations

import random
from typing import Any, Protocol

import msgspec

from graphcore import Graph
from widgets.render.compiled import boxes_of
from widgets.scene import Scene, SceneState

Request = dict[str, Any]


class Picture(Protocol):
    """A picture that a reader walks through."""

    graph: Graph
    state: SceneState
    scene: Scene


def next_request(chance: random.Random, picture: Picture) -> Request:
    """A request of a viewer that shows a picture."""
    graph, state, scene = picture.graph, picture.state, picture.scene
    closed = [node.id for node in scene.nodes if node.expandable]
    opened = [group.id for group in scene.groups]
    inner = [name for name in boxes_of(graph, state) if graph.find(name) is None] if chance.random() < 0.5 else []
    names = inner or [node.name for node in graph.nodes]
    kind = chance.choices(["expand", "collapse", "reveal", "all", "mirror"], [6, 3, 2, 1, 2])[0]
    if kind == "expand" and closed:
        return {"type": "expand", "id": chance.choice(closed)}
    if kind == "collapse" and opened:
        return {"type": "collapse", "id": chance.choice(opened)}
    if kind == "reveal" and names:
        return {"type": "reveal", "name": chance.choice(names)}
    if kind == "mirror" or chance.random() < 0.2:
        openings = msgspec.structs.replace(state.openings(), mirror=not state.mirror)
        return {"type": "restore", "openings": msgspec.to_builtins(openings)}
    return {"type": chance.choice(["expand", "collapse"]), "id": "*"}
