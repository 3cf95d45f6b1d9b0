"""Scenes: the visible part of a graph as pure data."""

from widgets.scene.build import boxes_of, build_scene, node_error
from widgets.scene.lenses import LENS_NAMES
from widgets.scene.snapshot import Snapshot, take_snapshot
from widgets.scene.state import SceneState
from widgets.scene.types import LegendEntry, Lens, LensMark, Scene, SceneEdge, SceneGroup, SceneNode

__all__ = [
    "LENS_NAMES",
    "LegendEntry",
    "Lens",
    "LensMark",
    "Scene",
    "SceneEdge",
    "SceneGroup",
    "SceneNode",
    "SceneState",
    "Snapshot",
    "boxes_of",
    "build_scene",
    "node_error",
    "take_snapshot",
]
