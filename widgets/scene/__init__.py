"""Scenes: their data, the choices of open scopes, and what only a kernel can explain."""

from widgets.scene.lenses import lens, lens_names, remove_lens
from widgets.scene.snapshot import Snapshot, take_snapshot
from widgets.scene.state import SceneState
from widgets.scene.types import LegendEntry, Lens, LensMark, Scene, SceneEdge, SceneGroup, SceneNode

__all__ = [
    "LegendEntry",
    "Lens",
    "LensMark",
    "Scene",
    "SceneEdge",
    "SceneGroup",
    "SceneNode",
    "SceneState",
    "Snapshot",
    "lens",
    "lens_names",
    "remove_lens",
    "take_snapshot",
]
