"""What a run of the dataflow engine with loops may hold at most: never less than it holds, and near to it where iterations wait for each other."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphcore as gc
from tests.graphcore.runtime.loop_graphs import cond, enter, op, outputs, while_loop

Tensor = gc.Tensor
SIZE = 250
BYTES = 4 * SIZE
ONES = np.ones(SIZE, np.float32)


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def counted(body: Any, starts: list[Any], turns: int, parallel: int) -> list[Tensor]:
    """Loop variables, of which `body(i, *values)` makes the next, so often."""
    one, limit = (enter(gc.constant(value), "f", constant=True, parallel=parallel) for value in (1, turns))
    return while_loop(
        lambda i, *_: op("Less", [i, limit]), lambda i, *a: [op("AddV2", [i, one]), *body(i, *a)], [gc.constant(0), *starts], "f", parallel
    )


def bound_and_peak(fetches: Any, feeds: dict[Any, Any]) -> tuple[int, int]:
    """What was predicted, and what a recorded run held."""
    with gc.Session(engine="dataflow") as session:
        predicted = session.predicted_peak(fetches, feeds)
        session.run(fetches, feeds, gc.RunOptions(trace=True))
        assert predicted.is_bound
        assert predicted.bytes is not None
        assert session.trace is not None
        return predicted.bytes, session.trace.peak_bytes


def test_iterations_that_wait_for_each_other_count_once_however_many_may_be_under_way() -> None:
    bounds = set()
    for parallel in (1, 2, 10, 100):
        with gc.Graph().as_default():
            x = gc.placeholder(gc.float32, [SIZE], name="x")
            weights = enter(x, "f", constant=True, parallel=parallel)
            result = counted(lambda _i, a, weights=weights: [op("Tanh", [op("Mul", [a, weights])])], [op("Neg", [x])], 5, parallel)[1]
            bound, peak = bound_and_peak(result, {x: ONES})
            assert peak <= bound
            bounds.add(bound)
    assert len(bounds) == 1


def test_what_runs_ahead_of_who_takes_it_counts_as_often_as_it_may_wait() -> None:
    """The slow one is a number, so that only what waits for it takes memory."""

    def body(i: Tensor, fast: Tensor, slow: Tensor) -> list[Any]:
        with gc.control_dependencies([i.node]):
            axes = gc.constant([0])
        late = op("Mul", [fast, reduce(lambda value, _: op("Neg", [value]), range(260), slow)])
        return [op("Tanh", [fast]), op("Max", [late, axes])]

    peaks = {}
    for parallel in (1, 40):
        with gc.Graph().as_default():
            x = gc.placeholder(gc.float32, [SIZE], name="x")
            bound, peaks[parallel] = bound_and_peak(counted(body, [x, gc.constant(1.0)], 60, parallel)[2], {x: ONES})
            assert peaks[parallel] <= bound
    assert peaks[40] >= peaks[1] + 15 * BYTES


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_loops_whose_variables_depend_on_each_other_in_any_way_never_hold_more_than_the_bound(data: st.DataObject) -> None:
    with gc.Graph().as_default():
        x = gc.placeholder(gc.float32, [SIZE], name="x")
        inside = enter(x, "f", constant=True)
        count = data.draw(st.integers(1, 4))

        def chosen(values: list[Any]) -> Any:
            return values[data.draw(st.integers(0, len(values) - 1))]

        def body(i: Tensor, *carried: Tensor) -> list[Any]:
            with gc.control_dependencies([i.node]):
                values: list[Any] = [*carried, op("Identity", [inside])]
            even = op("Less", [op("FloorMod", [i, enter(gc.constant(2), "f", constant=True)]), enter(gc.constant(1), "f", constant=True)])
            for _ in range(data.draw(st.integers(1, 12))):
                kind = data.draw(st.integers(0, 5))
                if kind == 0:
                    values.append(reduce(lambda value, _: op("Neg", [value]), range(data.draw(st.integers(1, 8))), chosen(values)))
                elif kind == 1:
                    values += cond(even, [chosen(values)], lambda a: [op("Neg", [a])], lambda a: [op("Tanh", [op("Abs", [a])])])
                elif kind == 2:
                    with gc.control_dependencies([chosen(values).node]):
                        values.append(op("Identity", [chosen(values)]))
                elif kind == 3:
                    values.append(outputs("Reshape", [chosen(values), enter(gc.constant([SIZE]), "f", constant=True)])[0])
                else:
                    values.append(op("Tanh", [op("AddV2", [chosen(values), chosen(values)])]))
            return [chosen(values[count:] or values) for _ in carried]

        starts = [op("Neg", [x]) for _ in range(count)]
        results = counted(body, starts, data.draw(st.integers(0, 12)), data.draw(st.integers(1, 10)))
        bound, peak = bound_and_peak(results, {x: ONES})
        assert peak <= bound
