"""Graphs with tensor arrays and stacks, and their gradients, run by TensorFlow."""

from __future__ import annotations

import numpy as np
import pytest

import graphcore as gc
from graphcore.definitions.wire import graph_def_to_bytes
from tests.graphcore.opset.array_programs import PROGRAMS
from tests.oracle.conftest import Oracle


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_the_same_in_tensorflow(name: str, oracle: Oracle) -> None:
    with gc.Graph().as_default() as graph, gc.Session() as session:
        fetches, xs = PROGRAMS[name]()
        numbers = [fetch for fetch in fetches if fetch.dtype is gc.float64]
        fetches += [gradient for gradient in gc.gradients(numbers, xs) if gradient is not None] if xs else []
        data = graph_def_to_bytes(graph.as_graph_def())
        theirs = oracle.call("tests.oracle.sides.graph_side:run_graph", data, "pb", {}, [fetch.name for fetch in fetches])
        for mine, other in zip(session.run(fetches), theirs, strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-12)
