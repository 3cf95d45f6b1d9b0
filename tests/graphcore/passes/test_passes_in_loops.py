"""Passes keep Switch/Merge branches and loops intact: random programs keep their results."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

import graphcore as gc
from graphcore.passes import InstantiatedFunctions
from tests.graphcore.passes.functional_programs import LOSSES, POINTS, Loss

KEEP = frozenset({"result", "slope"})
PASSES: dict[str, Callable[[gc.Graph], bool]] = {
    "fold": gc.fold_constants,
    "merge": lambda graph: gc.eliminate_common_subexpressions(graph, lambda node: node.name not in KEEP),
    "identities": lambda graph: gc.remove_identity_nodes(graph, KEEP),
    "dead": lambda graph: gc.remove_dead_nodes(graph, KEEP),
    "all": lambda graph: gc.optimize_graph(None, graph, gc.OptimizerOptions(keep=KEEP)),
}


def lowered(loss: Loss) -> gc.Graph:
    with gc.Graph().as_default() as graph:
        x = gc.placeholder(gc.float64, [3], name="x")
        y = loss(x)
        (slope,) = gc.gradients(y, x)
        gc.identity(y, name="result")
        gc.identity(slope, name="slope")
    gc.lower_functional_ops(InstantiatedFunctions(graph.library), graph)
    return graph


def values(graph: gc.Graph) -> list[npt.NDArray[np.float64]]:
    session = gc.Session(graph)
    return [value for point in POINTS for value in session.run(["result:0", "slope:0"], {"x:0": point})]


@pytest.mark.slow
@pytest.mark.parametrize("name", LOSSES)
def test_branches_and_loops_give_the_same_after_every_pass(name: str) -> None:
    graph = lowered(LOSSES[name])
    assert any(node.op in {"Switch", "_SwitchN"} for node in graph.nodes)
    expected = values(graph)
    for label, apply in PASSES.items():
        apply(graph)
        assert not [node.name for node in graph.nodes if node.error is not None or node.input_errors], label
        for got, wanted in zip(values(graph), expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-12, err_msg=label)
