"""Scenes as files that a viewer downloads."""

from __future__ import annotations

from widgets import messages
from widgets.render.dot import to_dot
from widgets.render.mermaid import to_mermaid
from widgets.render.svg import to_svg
from widgets.scene.types import Scene


def exported(scene: Scene, kind: messages.ExportFormat) -> messages.ExportMessage:
    """Export a scene as the text of a file."""
    write = {"svg": to_svg, "dot": to_dot, "mermaid": to_mermaid}[kind]
    return messages.ExportMessage(format=kind, text=write(scene))
