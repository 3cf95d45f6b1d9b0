"""Test cases of a rule that exists twice: widening of frames for edge labels.

A page lays out without a kernel, and a kernel draws static pictures without a page, so the rule is in `widgets/render/frames.py` and in
`widgets/js/src/scene/frames.ts`. Both are tested with these cases. `python -m tests.support.tools.frame_cases` writes the file.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, Final

from widgets.render.frames import hold_labels
from widgets.render.geometry import Geometry, Point, Rect, Route
from widgets.scene import Scene, SceneEdge, SceneGroup, SceneNode

FILE: Final = Path(__file__).parents[2] / "data" / "frame_cases.json"
CASES: Final = 60

Case = dict[str, Any]


def draw_case(chance: random.Random) -> Case:
    """Nested frames with boxes and edges, sometimes malformed: a frame without a place, or in itself."""
    width = chance.randint(200, 700)
    groups: list[list[Any]] = []
    nodes: list[list[Any]] = []
    for number in range(chance.randint(1, 5)):
        outer = chance.choice(["", *(group[0] for group in groups)])
        parent = chance.choice([outer] * 8 + ["gone", f"f{number}"])
        x, y = chance.randint(0, width - 100), chance.randint(0, 300)
        groups.append([f"f{number}", parent, x, y, chance.randint(40, min(160, width - x)), chance.randint(40, 200)])
    for number in range(chance.randint(2, 10)):
        group = chance.choice(["", *(group[0] for group in groups)])
        nodes.append([f"n{number}", group, chance.randint(0, width - 60), chance.randint(0, 400), chance.randint(30, 60), 20])
    names = [node[0] for node in nodes]
    edges = [
        [
            f"e{number}",
            chance.choice(names),
            chance.choice(names),
            chance.randint(0, width),
            chance.randint(0, 400),
            chance.randint(10, 150),
        ]
        for number in range(chance.randint(1, 8))
    ]
    placed = [group[0] for group in groups if chance.random() < 0.95]
    return {"width": width, "groups": groups, "nodes": nodes, "edges": edges, "placed": placed}


def held(case: Case) -> dict[str, Any]:
    """The result of the rule: each frame's left edge and width, each label's position."""
    scene = Scene(
        title="",
        revision=0,
        nodes=[SceneNode(id=key, label="", kind="op", group=group) for key, group, *_ in case["nodes"]],
        groups=[SceneGroup(id=key, label="", kind="scope", parent=parent) for key, parent, *_ in case["groups"]],
        edges=[SceneEdge(id=key, source=source, target=target) for key, source, target, *_ in case["edges"]],
    )
    places = Geometry(
        case["width"],
        600,
        {key: Rect(*rect) for key, _, *rect in case["nodes"]},
        {key: Rect(*rect) for key, _, *rect in case["groups"] if key in case["placed"]},
        {key: Route([], Point(0, 0), Point(x, y)) for key, _, _, x, y, _ in case["edges"]},
        "",
    )
    found = hold_labels(scene, places, {key: width for key, *_, width in case["edges"]})
    labels = {key: route.label.x for key, route in found.edges.items() if route.label is not None}
    return {"frames": {key: [rect.x, rect.width] for key, rect in found.groups.items()}, "labels": labels}


def written() -> str:
    """The expected text of the file."""
    chance = random.Random(1)
    cases = [draw_case(chance) for _ in range(CASES)]
    rows = [json.dumps({**case, "held": held(case)}, separators=(",", ":")) for case in cases]
    return "[\n" + ",\n".join(rows) + "\n]\n"


if __name__ == "__main__":
    FILE.write_text(written(), encoding="utf-8")
