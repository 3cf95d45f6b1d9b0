"""First pictures of the models in `tests/data/frontends` as text: a line for each frame and each box.

`python -m tests.golden.first_pictures` writes them anew. Read them: would a student say what each model is?
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import graphcore as gc
from graphcore.errors import GraphError
from widgets.render.compiled import build_scene
from widgets.scene import SceneGroup, SceneNode, SceneState

MODELS: Final = Path(__file__).parents[1] / "data" / "frontends"
TARGET: Final = Path(__file__).with_name("first_pictures.txt")


def models() -> list[Path]:
    """The stored models and weights, without the files of elements beside them."""
    return sorted(path for path in MODELS.iterdir() if not path.name.startswith("README") and path.suffix != ".bin")


def picture(path: Path) -> str:
    """The first picture of a model; the error of one that is refused."""
    try:
        scene = build_scene(gc.load(path), SceneState())
    except GraphError as error:
        return f"{path.name}: refused: {error.message.replace(str(MODELS), '...')[:100]}\n"
    lines = [f"{path.name}: {sum(node.count for node in scene.nodes)} nodes in {len(scene.nodes)} boxes"]
    inside: dict[str, list[str]] = {}
    for node in scene.nodes:
        inside.setdefault(node.group, []).append(_box(node))
    lines += _lines("", inside, scene.groups, "  ")
    return "\n".join(lines) + "\n"


def _lines(group: str, inside: dict[str, list[str]], groups: list[SceneGroup], indent: str) -> list[str]:
    lines = [f"{indent}{line}" for line in inside.get(group, ())]
    for each in groups:
        if each.parent == group:
            lines += [f"{indent}{each.label}:", *_lines(each.id, inside, groups, f"{indent}  ")]
    return lines


def _box(node: SceneNode) -> str:
    repeat = f" ×{node.repeat}" if node.repeat else ""
    count = f" ({node.count} nodes)" if node.count > 1 else ""
    return f"{node.op} {node.label}{repeat}{count}".strip()


def written() -> str:
    """All first pictures."""
    return "\n".join(picture(path) for path in models())


if __name__ == "__main__":
    TARGET.write_text(written(), encoding="utf-8")
    sys.stdout.write(f"{TARGET}\n")
