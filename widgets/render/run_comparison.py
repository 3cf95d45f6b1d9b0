"""The picture of two compared runs: statistics on boxes, and the first tensor that differs selected."""

from __future__ import annotations

from typing import Final

from graphcore.api import RunComparison
from graphcore.api.tensor_comparison import Measure
from graphcore.support.shown import one_line
from widgets.messages import Look
from widgets.overlays import Combine, Scale
from widgets.render.compiled import boxes_of, build_scene
from widgets.render.messages import scene_message
from widgets.render.page_data import graph_data, rows_of
from widgets.render.saved_picture import SavedPicture, packed_graph
from widgets.scene.overlays import add_overlay
from widgets.scene.state import SceneState
from widgets.scene.types import Scene

_OVERLAYS: Final[tuple[tuple[Measure, str, str, Combine, Scale, tuple[float, ...]], ...]] = (
    ("tolerance", "Difference by tolerance", "", "max", "log", (1.0, 0.1, 0.01)),
    ("relative", "Relative difference", "", "max", "log", ()),
    ("max_abs", "Max abs difference", "", "max", "log", ()),
    ("cosine", "Cosine of both", "", "mean", "linear", ()),
    ("sqnr", "Signal to difference", "dB", "mean", "linear", ()),
)
"""The statistics that are lenses, the one that opens first; only what differs has the hottest colour in that."""


def saved_comparison(comparison: RunComparison) -> tuple[SavedPicture, Scene]:
    """A comparison of two runs for an output.

    The statistics stay on the graph of the first run as overlays, and the first tensor that differs is selected.

    Args:
        comparison: the comparison; its runs have a tensor in common.
    """
    graph, state = comparison.graph, SceneState()
    overlays = [
        add_overlay(graph, numbers, title=title, unit=unit, combine=combine, scale=scale, thresholds=thresholds)
        for measure, title, unit, combine, scale, thresholds in _OVERLAYS
        if (numbers := comparison.numbers(measure))
    ]
    state.lens = overlays[0].name if overlays else state.lens
    first = comparison.first
    if first is not None:
        state.reveal(first.name)
    scene = build_scene(graph, state, title=one_line(str(comparison).partition("\n")[0]))
    box = boxes_of(graph, state).get(first.name, "") if first is not None else ""
    look = Look(camera=None, selection=[box]) if box else None
    message = scene_message(scene, state, look=look)
    return SavedPicture(message=message, graph_gzip_base64=packed_graph(graph_data(graph, state, rows_of(graph)))), scene
