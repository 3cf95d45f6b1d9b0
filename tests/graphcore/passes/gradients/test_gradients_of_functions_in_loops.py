"""Functions in Switch/Merge loops: their gradients use the values of the forward pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from tests.graphcore.passes.v1_control_flow import V1Loop, v1_while

ENGINES = ["auto", "plan", "dataflow"]


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def noisy(value: gc.Tensor) -> gc.Tensor:
    """A multiple of the value, drawn for each call."""
    found: gc.Tensor = gc.cond(
        gc.reduce_sum(value) > -1e9, lambda: value * gc.random_uniform([3], 0.5, 1.5, dtype=gc.float64), lambda: value
    )
    return found


def noise_in_a_loop(x: gc.Tensor) -> gc.Tensor:
    return v1_while("loop", 3, lambda _, __, v: [noisy(v[0])], [x])[0]


def noise_in_a_while_op_in_a_loop(x: gc.Tensor) -> gc.Tensor:
    def body(loop: V1Loop, i: gc.Tensor, v: list[gc.Tensor]) -> list[gc.Tensor]:
        start = loop.constant(0, gc.int32)
        return [gc.while_loop(lambda j, _: j <= i, lambda j, w: (j + 1, noisy(w)), (start, v[0]))[1]]

    return v1_while("loop", 2, body, [x])[0]


def noise_beside_a_loop(x: gc.Tensor) -> gc.Tensor:
    return v1_while("loop", 2, lambda loop, _, v: [v[0] * loop.constant(2.0)], [noisy(noisy(x))])[0]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("build", [noise_in_a_loop, noise_in_a_while_op_in_a_loop, noise_beside_a_loop])
def test_what_was_drawn_at_random_is_what_the_gradient_takes(build: Callable[[gc.Tensor], gc.Tensor], engine: Any) -> None:
    x = gc.placeholder(gc.float64, [3], name="x")
    y = build(x)
    (gradient,) = gc.gradients(y, x)
    with gc.Session(engine=engine) as session:
        drawn, factor = session.run([y, gradient], {x: np.ones(3)})
        np.testing.assert_allclose(drawn, factor)
        assert len(set(drawn.tolist())) == 3
        assert not np.allclose(session.run(y, {x: np.ones(3)}), drawn)


def test_a_node_in_a_loop_does_not_run_beside_its_twin(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float64, [3], name="x")

    def body(_: V1Loop, __: gc.Tensor, v: list[gc.Tensor]) -> list[gc.Tensor]:
        chosen: gc.Tensor = gc.cond(gc.reduce_sum(v[0]) > 0.0, lambda: gc.tanh(v[0]), lambda: v[0] * 2.0, name="chosen")
        return [chosen]

    y = v1_while("loop", 3, body, [x])[0]
    (gradient,) = gc.gradients(y, x)
    (augmented,) = [node.name for node in graph.nodes if "_forward_of" in node.node_def.attr]
    metadata = gc.RunMetadata()
    with gc.Session(engine="plan") as session:
        session.run([y, gradient], {x: np.ones(3)}, options=gc.RunOptions(trace=True), run_metadata=metadata)
    assert metadata.trace is not None
    ran = [event.node for event in metadata.trace.events if event.kind == "start"]
    assert any(name == augmented or name.startswith(f"{augmented}/") for name in ran)
    assert not any(name == "chosen" or name.startswith("chosen/") for name in ran)
