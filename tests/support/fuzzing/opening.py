"""Opening of model files as a viewer does it: the picture, the data of a page, bodies, and weights."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import graphcore as gc
from graphcore.errors import GraphError
from graphcore.frontends.record import foreign_of
from widgets import to_outline
from widgets.render.page_data import graph_data, pack
from widgets.scene.state import SceneState

_MAX_BODIES: Final = 5


def open_as_a_viewer(path: Path, weights: int) -> None:
    """Open a file, show it, and read some tensors and bodies. An error of one of them must not hide those of the others.

    Args:
        path: the file.
        weights: the most nodes whose tensors are read.

    Raises:
        GraphError: the first of all errors.
    """
    graph = gc.load(path, allow_unknown_ops=True)
    to_outline(graph)
    pack(graph_data(graph, SceneState()))
    record = foreign_of(graph)
    if record is None:
        return
    errors: list[GraphError] = []
    for title in [function.name for function in record.source.functions.values()][:_MAX_BODIES]:
        try:
            record.body(title, "")
        except GraphError as error:
            errors.append(error)
    for node in record.source.main.nodes[:weights]:
        if node.weight is not None and node.weight.load is not None:
            try:
                node.weight.load()
            except GraphError as error:
                errors.append(error)
    if errors:
        raise errors[0]
