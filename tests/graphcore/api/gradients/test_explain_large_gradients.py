"""`gc.explain_gradient` on graphs too large to list."""

from __future__ import annotations

import gc as collector
import re
from collections.abc import Iterator

import pytest

import graphcore as gc

pytestmark = pytest.mark.sweep


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    """A large graph, built without garbage collection."""
    collector.disable()
    with gc.Graph().as_default() as graph:
        yield graph
    collector.enable()


def place(name: str) -> gc.Tensor:
    return gc.placeholder(gc.float32, [2, 3], name=name)


@pytest.mark.slow
def test_a_chain_of_a_hundred_thousand_nodes_is_explained() -> None:
    x = place("x")
    y = x
    for _ in range(100_000):
        y = gc.tanh(y)
    found = gc.explain_gradient(y, x)
    assert found.path_count == 1
    assert len(found.paths[0]) == 100_001
    assert len(found.steps) == 100_000
    assert all(step.backward for step in found.steps)
    text = repr(found)
    assert len(text) < 20_000
    assert "... 99,960 more ..." in text
    assert "along x -> Tanh -> Tanh_1 -> " in text
    assert text.endswith(" -> Tanh_99998 -> Tanh_99999")
    html = found._repr_html_()
    assert len(html) < 40_000
    assert "<td>... 99,960 more ...</td>" in re.sub(r" (colspan|style)=\"[^\"]*\"", "", html)


@pytest.mark.slow
def test_twenty_thousand_ways_that_meet_are_explained() -> None:
    x = place("x")
    y = gc.apply_op("AddN", [[gc.tanh(x) for _ in range(20_000)]], name="y")
    found = gc.explain_gradient(y, x)
    assert found.path_count == 20_000
    assert len(found.paths) == 4
    (total,) = found.sums
    assert total.tensor == "x:0"
    assert len(total.parts) == 20_000
    assert len(repr(found)) < 20_000
    assert len(found._repr_html_()) < 40_000


@pytest.mark.slow
def test_cuts_behind_a_long_chain_are_found_without_walking_it_for_each() -> None:
    x = place("x")
    y = x
    for _ in range(5_000):
        sizes = gc.apply_op("Shape", [y])
        y = gc.tanh(gc.apply_op("Reshape", [y, sizes]))
    found = gc.explain_gradient(y, x)
    assert len(found.cuts) == 5_000
    assert {cut.kind for cut in found.cuts} == {"shape only"}
    assert found.cuts[0].node == "Shape_4999"
    assert found.cuts[0].path[:3] == ("x", "Reshape", "Tanh")
    assert found.cuts[0].path[-4:] == ("Tanh_4998", "Shape_4999", "Reshape_4999", "Tanh_4999")
    assert len(found.cuts[0].path) == 10_002
    assert sum(len(cut.path) for cut in found.cuts) < 1_100_000
    assert len(repr(found)) < 40_000


def test_what_only_waits_at_the_end_of_a_long_chain_is_told() -> None:
    x, z = place("x"), place("z")
    with gc.control_dependencies([x]):
        y = gc.square(z, name="first")
    for _ in range(5_000):
        with gc.control_dependencies([y]):
            y = gc.tanh(y)
    (cut,) = gc.explain_gradient(y, x).cuts
    assert (cut.kind, cut.node) == ("control only", "first")


def test_more_paths_than_anybody_counts_are_told_as_a_least_number() -> None:
    x = place("x")
    y = x
    for _ in range(100):
        y = gc.tanh(y) + gc.exp(y)
    found = gc.explain_gradient(y, x)
    assert found.path_count == 10**18
    assert "along at least 1,000,000,000,000,000,000 paths" in repr(found)
