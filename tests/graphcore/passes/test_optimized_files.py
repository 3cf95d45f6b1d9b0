"""Graphs made by TensorFlow give its outputs after optimisation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import graphcore as gc

DATA = Path(__file__).parents[2] / "data"


@pytest.mark.parametrize("name", ["functions_v2", "transformer", "while_v1"])
def test_an_optimized_graph_gives_what_tensorflow_gave(name: str) -> None:
    graph = gc.load(DATA / f"{name}.pb")
    with np.load(DATA / f"{name}.npz") as stored:
        feeds = {key.removeprefix("feed "): stored[key] for key in stored if key.startswith("feed ")}
        expected = {key.removeprefix("fetch "): stored[key] for key in stored if key.startswith("fetch ")}
    keep = frozenset([label.partition(":")[0] for label in (*feeds, *expected)])
    before = len(graph)
    assert gc.optimize_graph(None, graph, gc.OptimizerOptions(keep=keep))
    assert len(graph) < before or name == "functions_v2", "there the bodies of its functions are put in"
    assert not [node.name for node in graph.nodes if node.error is not None or node.input_errors]
    values = gc.Session(graph).run(list(expected), feeds)
    for value, wanted in zip(values, expected.values(), strict=True):
        np.testing.assert_allclose(value, wanted, rtol=2e-5, atol=2e-6)


def test_an_optimized_training_graph_learns_as_tensorflow_did() -> None:
    graph = gc.load(DATA / "mlp_train_v1.pb")
    before = len(graph)
    assert gc.optimize_graph(None, graph, gc.OptimizerOptions(keep=frozenset({"x", "t", "loss", "train", "init"})))
    assert len(graph) < before
    with np.load(DATA / "mlp_train_v1.npz") as stored, gc.Session(graph) as session:
        feeds = {"x:0": stored["feed x:0"], "t:0": stored["feed t:0"]}
        session.run("init")
        losses = []
        for _ in stored["losses"]:
            losses.append(session.run("loss:0", feeds))
            session.run("train", feeds)
        np.testing.assert_allclose(losses, stored["losses"], rtol=1e-4)
