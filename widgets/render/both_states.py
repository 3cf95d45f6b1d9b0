"""The two states of a difference side by side, beside the picture of both in one."""

from __future__ import annotations

import base64

from graphcore.difference import GraphDiff, difference_graph, state_graphs, twins
from graphcore.graph import Graph
from widgets.render.compiled import first_scene
from widgets.render.messages import scene_message
from widgets.render.page_data import graph_data, pack, rows_of
from widgets.render.saved_picture import MAX_SAVED_BYTES, BothStates, SavedPicture, StatePicture, packed_graph
from widgets.scene.state import SceneState


def both_states(diff: GraphDiff) -> BothStates:
    """The two states of a difference as pictures."""
    titles, (before, after) = diff.titles, state_graphs(diff)
    return BothStates(
        titles=titles,
        words=str(diff),
        pictures=(_picture(before, titles[0]), _picture(after, titles[1])),
        twins=twins(diff),
    )


def saved_difference(diff: GraphDiff) -> SavedPicture:
    """A difference for an output: both states in one picture, and side by side unless they are too large."""
    graph, state = difference_graph(diff), SceneState()
    data = graph_data(graph, state, rows_of(graph))
    scene = first_scene(graph, data, state, title=" → ".join(diff.titles))
    packed = packed_graph(data)
    states = both_states(diff) if packed else None
    if states is not None and len(packed) + sum([len(picture.graph_gzip_base64) for picture in states.pictures]) > MAX_SAVED_BYTES:
        states = None
    return SavedPicture(message=scene_message(scene, state), graph_gzip_base64=packed, states=states)


def _picture(graph: Graph, title: str) -> StatePicture:
    state = SceneState()
    data = graph_data(graph, state, rows_of(graph))
    scene = first_scene(graph, data, state, title=title)
    packed = base64.b64encode(pack(data)).decode("ascii")
    return StatePicture(message=scene_message(scene, state), graph_gzip_base64=packed)
