"""Stored scenes: the data of a graph, and the scene after each request of a viewer.

There are the parts of the graph, too, at any depth. They are in `tests/data/scenes`. Both compilers of scenes give them: `tests/widgets/test_stored_scenes.py`, `widgets/js/tests/stored_scenes.test.ts`.
`python -m tests.golden.scenes` compiles them anew, prints which changed and how, and writes these; names of cases choose some.
The requests stay those of the file; where there is none they are drawn at random.
"""

from __future__ import annotations

import gzip
import json
import random
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from graphcore.graph import Graph
from tests.golden.scene_cases import CASES, DATA, Case
from tests.support.walks import Request, next_request
from widgets import requests
from widgets.render.compiled import build_scene, reveal
from widgets.render.page_data import graph_data
from widgets.render.page_data.types import GradientText
from widgets.requests import FromViewer
from widgets.scene import Scene, SceneState

FOLDER: Final = DATA / "scenes"
WALKS: Final = 2
"""The number of pictures of a case that are opened and closed, each in its own way."""
STEPS: Final = 12
LISTS: Final = ("nodes", "edges", "groups", "lenses")
"""The lists of a scene. A file has each of their items once."""
MOST_LINES: Final = 12
"""The most changes of a case that are printed."""

Json = dict[str, Any]


class View:
    """A picture of a case that the kernel compiles.

    Attributes:
        graph: the graph.
        state: what is open.
        scene: the last scene.
    """

    def __init__(self, graph: Graph, case: Case) -> None:
        self.graph = graph
        self.state = SceneState(**case.limits)
        self.scene = build_scene(graph, self.state)

    def answer(self, request: Request) -> Json:
        """The scene after a request, and what is open in it."""
        match msgspec.convert(request, FromViewer):
            case requests.ExpandRequest(id=box_id):
                self.state.expand(box_id)
            case requests.CollapseRequest(id=box_id):
                self.state.collapse(box_id)
            case requests.RevealRequest(name=name):
                reveal(self.graph, self.state, name)
            case requests.RestoreRequest(openings=openings):
                self.state.restore(openings)
        self.scene = build_scene(self.graph, self.state)
        return {"scene": comparable(self.scene), "openings": msgspec.to_builtins(self.state.openings())}


def comparable(scene: Scene) -> Json:
    """A scene without its number, with the keys of its dimensions numbered in their order.

    Only equality of keys has a meaning.
    """
    numbers: dict[str, str] = {}
    found: Json = msgspec.to_builtins(scene)
    for edge in found["edges"]:
        for dim in edge["dims"]:
            dim["key"] = numbers.setdefault(dim["key"], str(len(numbers)))
    return {**found, "revision": 0}


def data_of(graph: Graph, case: Case) -> Json:
    """The data of a graph, without what only the inspector shows.

    This is texts of ops and gradients, lines of code, and explanations.
    """
    data = graph_data(graph, SceneState(**case.limits))
    head = msgspec.structs.replace(
        data.head,
        ops={name: msgspec.structs.replace(op, doc="", traits="", signature="") for name, op in data.head.ops.items()},
        gradients=[GradientText(function="", definition="", instantiated="") for _ in data.head.gradients],
        spaces=[msgspec.structs.replace(space, why={}) for space in data.head.spaces],
    )
    sources = [msgspec.structs.replace(row, line=1, text="", file="") for row in data.sources]
    found: Json = json.loads(msgspec.json.encode(msgspec.structs.replace(data, head=head, sources=sources)))
    return found


def compiled(case: Case, walks: Iterable[list[Request]]) -> Json:
    """The contents of the file of a case, for these requests."""
    made = []
    for walk in walks:
        with case.opened() as graph:
            view = View(graph, case)  # each walk has a graph: a body that cannot be made is known to all pictures once it was opened
            made.append({"requests": walk, "answers": [view.answer(request) for request in walk]})
    with case.opened() as graph:
        return {"data": data_of(graph, case), "walks": made}


def drawn(case: Case) -> list[list[Request]]:
    """Requests drawn at random."""
    with case.opened() as graph:
        return [_drawn(View(graph, case), random.Random(seed)) for seed in range(WALKS)]


def _drawn(view: View, chance: random.Random) -> list[Request]:
    walk: list[Request] = [{"type": "ready"}]
    while len(walk) < STEPS:
        view.answer(walk[-1])
        walk.append(next_request(chance, view))
    return walk


def changes(before: Json, after: Json) -> Iterator[str]:
    """The differences between two files of a case, one line each."""
    for name in ("head", "texts", "sources", "spaces"):
        if before["data"].get(name) != after["data"].get(name):
            yield f"data: {name}"
    for number, (walk, other) in enumerate(zip(before["walks"], after["walks"], strict=True), 1):
        for request, old, new in zip(walk["requests"], walk["answers"], other["answers"], strict=True):
            for change in _changes_of_scene(old["scene"], new["scene"]):
                yield f"walk {number}, {json.dumps(request, ensure_ascii=False)[:80]}: {change}"
            if old["openings"] != new["openings"]:
                yield f"walk {number}, {json.dumps(request)}: openings {old['openings']} -> {new['openings']}"


def _changes_of_scene(before: Json, after: Json) -> Iterator[str]:
    for field in before.keys() | after.keys():
        old, new = before.get(field), after.get(field)
        if old == new:
            continue
        if field not in LISTS:
            yield f"{field}: {_short(old)} -> {_short(new)}"
            continue
        key = "name" if field == "lenses" else "id"
        olds, news = {row[key]: row for row in old}, {row[key]: row for row in new}  # type: ignore[union-attr]
        yield from (f"{field}: {_short(row)} is gone" for row in olds.keys() - news.keys())
        yield from (f"{field}: {_short(row)} is new" for row in news.keys() - olds.keys())
        for row in olds.keys() & news.keys():
            differing = [name for name in olds[row] if olds[row][name] != news[row].get(name)]
            yield from (f"{field}: {_short(row)}: {name}: {_short(olds[row][name])} -> {_short(news[row].get(name))}" for name in differing)
        if list(olds) != list(news) and olds.keys() == news.keys():
            yield f"{field}: in another order"


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 100 else f"{text[:97]}..."


def file_of(name: str) -> Path:
    """The file of a case."""
    return FOLDER / f"{name}.json.gz"


def read(name: str) -> Json:
    """The contents of the file of a case, with whole scenes."""
    stored: Json = json.loads(gzip.decompress(file_of(name).read_bytes()))
    items = stored.pop("items")
    for walk in stored["walks"]:
        for answer in walk["answers"]:
            answer["scene"].update({field: [items[place] for place in answer["scene"][field]] for field in LISTS})
    return stored


def write(name: str, contents: Json) -> None:
    """Write the file of a case."""
    places: dict[str, int] = {}
    stored = {
        **contents,
        "walks": [{**walk, "answers": [_packed(answer, places) for answer in walk["answers"]]} for walk in contents["walks"]],
    }
    stored["items"] = [json.loads(text) for text in places]
    text = json.dumps(stored, ensure_ascii=True, separators=(",", ":"))
    file_of(name).write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def _packed(answer: Json, places: dict[str, int]) -> Json:
    scene = answer["scene"]
    lists = {field: [places.setdefault(json.dumps(row), len(places)) for row in scene[field]] for field in LISTS}
    return {**answer, "scene": {**scene, **lists}}


def renew(name: str) -> None:
    """Write the file of a case anew if a scene has changed, and print how."""
    case = CASES[name]
    if not file_of(name).exists():
        write(name, compiled(case, drawn(case)))
        sys.stdout.write(f"{name}: new\n")
        return
    before = read(name)
    after = compiled(case, [walk["requests"] for walk in before["walks"]])
    found = list(changes(before, after))
    if found:
        write(name, after)
        more = [f"and {len(found) - MOST_LINES} more"] if len(found) > MOST_LINES else []
        sys.stdout.write("\n    ".join([f"{name}:", *found[:MOST_LINES], *more]) + "\n")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for stale in {path.name.partition(".")[0] for path in FOLDER.iterdir()} - CASES.keys():
        file_of(stale).unlink()
        sys.stdout.write(f"{stale}: gone\n")
    for each in sys.argv[1:] or CASES:
        renew(each)
