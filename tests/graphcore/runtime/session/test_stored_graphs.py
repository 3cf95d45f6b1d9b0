"""Graphs made by TensorFlow 1, run by both engines: TensorFlow's values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import graphcore as gc
from graphcore.runtime.dataflow.dataflow_program import DataflowProgram
from graphcore.runtime.plan.loop_plan import LoopPlan

DATA = Path(__file__).parents[3] / "data"


@pytest.mark.parametrize("engine", ["plan", "dataflow"])
def test_a_while_loop_a_branch_and_their_gradients_give_the_stored_values(engine: str) -> None:
    graph = gc.load(DATA / "while_v1.pb")
    with np.load(DATA / "while_v1.npz") as stored, gc.Session(graph, engine=engine) as session:
        x = stored["feed x:0"]
        program = session.planner.prepare(["y:0", "dx:0"], ["x:0"]).program
        assert type(program) is (LoopPlan if engine == "plan" else DataflowProgram)
        for _ in range(2):
            y, dx = session.run(["y:0", "dx:0"], {"x:0": x})
            np.testing.assert_allclose(y, stored["fetch y:0"], rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(dx, stored["fetch dx:0"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("engine", ["plan", "dataflow"])
def test_training_with_variables_by_reference_gives_the_stored_losses(engine: str) -> None:
    graph = gc.load(DATA / "mlp_train_v1.pb")
    with np.load(DATA / "mlp_train_v1.npz") as stored, gc.Session(graph, engine=engine) as session:
        feeds = {"x:0": stored["feed x:0"], "t:0": stored["feed t:0"]}
        session.run("init")
        losses = [session.run(["loss:0", "train"], feeds)[0] for _ in stored["losses"]]
        np.testing.assert_allclose(losses, stored["losses"], rtol=1e-4)
