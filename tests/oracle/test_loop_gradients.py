"""First and second gradients of Switch/Merge loops and branches, built here, run by TensorFlow."""

from __future__ import annotations

import numpy as np
import pytest

import graphcore as gc
from graphcore.definitions.wire import graph_def_to_bytes
from tests.graphcore.passes.gradients.test_gradients_control_flow import PROGRAMS, X
from tests.oracle.conftest import Oracle

NAMES = ["an invariant", "two variables", "nested", "a branch in a loop", "an if in a loop", "a while op in a loop"]


@pytest.mark.parametrize("name", NAMES)
def test_the_gradients_of_a_loop_give_the_same_in_tensorflow(name: str, oracle: Oracle) -> None:
    with gc.Graph().as_default() as graph, gc.Session() as session:
        x = gc.placeholder(gc.float64, [3], name="x")
        n = gc.placeholder(gc.int32, [], name="n")
        y = gc.reduce_sum(PROGRAMS[name](x, n))
        (first,) = gc.gradients(y, x)
        (second,) = gc.gradients(gc.reduce_sum(gc.square(first)), x)
        fetches = [y, first, second]
        data = graph_def_to_bytes(graph.as_graph_def())
        for times in (0, 1, 3):
            feeds = {"x:0": X, "n:0": np.int32(times)}
            theirs = oracle.call("tests.oracle.sides.graph_side:run_graph", data, "pb", feeds, [fetch.name for fetch in fetches])
            mine = session.run(fetches, {x: X, n: times})
            for value, other in zip(mine, theirs, strict=True):
                np.testing.assert_allclose(value, other, rtol=1e-10, err_msg=f"{times} times")
