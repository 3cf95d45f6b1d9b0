"""Shapes inferred by TensorFlow for its own graphs: ours are equal or more precise."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import networkx as nx
import pytest

import graphcore as gc

DATA = Path(__file__).parents[3] / "data"
FILES = sorted(DATA.glob("*.shapes.json"))
VERDICTS = ("same", "more precise", "less precise", "wrong", "op unknown")


def as_shape(text: str) -> gc.Shape:
    """A shape from text such as `[2, None, 3]`, `?`."""
    if text == "?":
        return gc.Shape(None)
    sizes = [size.strip() for size in text[1:-1].split(",") if size.strip()]
    return gc.Shape([None if size in {"?", "None"} else int(size) for size in sizes])


def verdict(ours: gc.Shape, theirs: gc.Shape) -> str:
    if not ours.is_compatible_with(theirs):
        return "wrong"
    if ours.is_identical_to(theirs):
        return "same"
    return "more precise" if ours.merge_with(theirs).is_identical_to(ours) else "less precise"


def verdicts(path: Path) -> dict[str, list[str]]:
    """The outputs of one file by verdict, each with both shapes. Results of unregistered ops are left out."""
    graph = gc.load(DATA / path.name.replace(".shapes.json", ".pb"), allow_unknown_ops=True)
    opaque = {node.name for node in graph.nodes if node.is_opaque}
    unknown = opaque.union(*[nx.descendants(graph.nx, name) for name in opaque])
    found: dict[str, list[str]] = {name: [] for name in VERDICTS}
    for name, text in json.loads(path.read_text()).items():
        node_name, _, index = name.rpartition("/")
        outputs = graph.get_operation_by_name(node_name).outputs
        ours = outputs[int(index)].shape if int(index) < len(outputs) else gc.Shape(None)
        kind = "op unknown" if node_name in unknown else verdict(ours, as_shape(text))
        found[kind].append(f"{name}: {ours}, in TensorFlow {text}")
    return found


@pytest.fixture(scope="module")
def table() -> dict[str, dict[str, list[str]]]:
    """The verdicts of all files; printed (`pytest -rP` shows it)."""
    found = {path.name.partition(".")[0]: verdicts(path) for path in FILES}
    head = "".join([f"{name:>15}" for name in VERDICTS])
    rows = [f"{file:<16}" + "".join([f"{len(kinds[name]):>15}" for name in VERDICTS]) for file, kinds in found.items()]
    sys.stdout.write("\n".join(["", " " * 16 + head, *rows, ""]))
    return found


@pytest.mark.parametrize("file", [path.name.partition(".")[0] for path in FILES])
def test_every_shape_is_that_of_tensorflow_or_more_precise(file: str, table: dict[str, dict[str, list[str]]]) -> None:
    assert table[file]["less precise"] == []
    assert table[file]["wrong"] == []
    assert table[file]["op unknown"] == []
    assert table[file]["same"]
