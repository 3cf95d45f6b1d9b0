"""Graph files that are opened: loaded, drawn, packed for pages, and compared."""

from __future__ import annotations

import random
from typing import Final

import msgspec

import graphcore as gc
from graphcore.definitions import GraphDef
from graphcore.definitions.wire import graph_def_from_bytes, graph_def_to_bytes
from graphcore.errors import GraphError
from graphcore.graph import ImportOptions, import_graph_def
from tests.support.asking import inspect
from tests.support.fuzzing.fuzz import ops
from tests.support.fuzzing.fuzz_inputs import damaged, random_graph, right_graph
from tests.support.fuzzing.target import Target, packed, unpacked
from tests.support.fuzzing.targets import shapes
from widgets.files import as_scene, to_outline
from widgets.render.page_data import graph_data, pack
from widgets.scene.state import SceneState

_NAMES: Final = ("scope/n", "a/b/c/d", "a/" * 200 + "n", "__proto__", "<script>", "n.0", "N-1")


def make(rng: random.Random) -> bytes:
    """Two graphs, the second a damaged copy of the first."""
    kind = rng.random()
    if kind < 0.4:
        first = shapes.make(rng)
    else:
        graph: GraphDef = (right_graph if kind < 0.7 else random_graph)(ops(), rng)
        if rng.random() < 0.3:
            new = dict(zip([node.name for node in graph.node], rng.sample(_NAMES, min(len(graph.node), len(_NAMES))), strict=False))
            nodes = [msgspec.structs.replace(node, name=new.get(node.name, node.name)) for node in graph.node]
            graph = msgspec.structs.replace(graph, node=tuple(nodes))
        try:
            first = graph_def_to_bytes(graph)
        except GraphError:
            first = b""
    return packed(first, damaged(first, first, rng) if first else b"")


def _loaded(data: bytes) -> gc.Graph:
    graph_def = graph_def_from_bytes(data)
    try:
        return _imported(graph_def, validate_shape=True)
    except GraphError:
        return _imported(graph_def, validate_shape=False)


def _imported(graph_def: GraphDef, *, validate_shape: bool) -> gc.Graph:
    graph = gc.Graph()
    import_graph_def(graph_def, graph, ImportOptions(allow_unknown_ops=True, allow_internal_ops=True, validate_shape=validate_shape))
    return graph


def check(given: bytes) -> None:
    """Draw both graphs and their difference."""
    graphs = []
    for data in unpacked(given, 2):
        graph = _loaded(data)
        graphs.append(graph)
        state = SceneState()
        scene = as_scene(graph, state)
        for box in scene.nodes[:20]:
            inspect(graph, state, box.id)
        pack(graph_data(graph, SceneState()))
        to_outline(scene)
    diff = gc.graph_diff(graphs[0], graphs[1])
    str(diff)
    as_scene(diff)


VIEWS: Final = Target(make, check)
