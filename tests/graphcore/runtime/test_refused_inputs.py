"""Refused inputs are reported with the node, and with types and shapes of all inputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import FailedPreconditionError, InvalidArgumentError

ENGINES = pytest.mark.parametrize("engine", ["plan", "dataflow"])


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


@ENGINES
@pytest.mark.parametrize("traced", [False, True], ids=["plain", "traced"])
def test_the_error_of_a_refusing_kernel_describes_its_inputs(traced: bool, engine: str) -> None:
    x, i = gc.placeholder(gc.float32, [None, 3], name="x"), gc.placeholder(gc.int32, [], name="i")

    @gc.function
    def third(rows: Any, place: Any) -> Any:
        return gc.ops.gather(rows, place, name="within")

    session = gc.Session(engine=engine)
    for row, name in ((gc.ops.gather(x, i, name="row"), "row"), (third(x, i), "within")):
        with pytest.raises(InvalidArgumentError, match=r"indices\[\] = 9 is not in \[0, 2\)") as caught:
            session.run(row, {x: np.ones((2, 3)), i: 9}, gc.RunOptions(trace=traced))
        assert caught.value.node == name
        assert caught.value.source is not None
        assert caught.value.message.count("[[{{node") == 1
        assert f"[[{{{{node {name}}}}}]] = Gather(" in caught.value.message
        assert caught.value.message.endswith(" on float32 [2,3], int32 []")


@ENGINES
@pytest.mark.parametrize("traced", [False, True], ids=["plain", "traced"])
def test_the_error_of_a_refusing_kernel_describes_the_value_of_a_variable(traced: bool, engine: str) -> None:
    w = gc.Variable(np.zeros((3, 2), np.float32), name="w")
    x, i, n = gc.placeholder(gc.float32, None, name="x"), gc.placeholder(gc.int32, None, name="i"), gc.placeholder(gc.int32, [], name="n")
    updated = gc.ops.scatter_update(w, i, x)
    twice = gc.ops.scatter_add(updated, i + 5, x)  # takes the reference from another node
    _, looped = gc.while_loop(lambda k, _: k < n, lambda k, y: (k + 1, gc.ops.gather(y, i + k * 9)), [gc.constant(0), x])
    session = gc.Session(engine=engine)
    session.run(w.initializer)
    rows = np.ones((1, 2), np.float32)
    cases: list[tuple[Any, dict[Any, Any], str, str]] = [
        (updated, {i: [7], x: rows}, "indices[0] = 7 is not in", " on float32 [3,2], int32 [1], float32 [1,2]"),
        (twice, {i: [1], x: rows}, "indices[0] = 6 is not in", " on float32 [3,2], int32 [1], float32 [1,2]"),
        (w.assign_add(x), {x: np.ones(4)}, "must be the same size", " on float32 [3,2], float32 [4]"),
        ([looped, w.assign_add(x)], {i: [0], x: rows, n: 1}, "must be the same size", " on float32 [3,2], float32 [1,2]"),
    ]
    for fetches, feeds, text, taken in cases:
        with pytest.raises(InvalidArgumentError) as caught:
            session.run(fetches, feeds, gc.RunOptions(trace=traced))
        assert text in caught.value.message
        assert caught.value.message.endswith(taken)
    with pytest.raises(FailedPreconditionError, match="uninitialized value w"):
        gc.Session(engine=engine).run(updated, {i: [1], x: rows}, gc.RunOptions(trace=traced))
