"""The effect of another device, as the inspector shows it."""

from __future__ import annotations

import numpy as np
import pytest

import graphcore as gc
from widgets.inspection import WhatIf, WhyStep
from widgets.messages import ChangeMessage, FromKernel, WhatIfMessage
from widgets.port import Port
from widgets.requests import RequestDeviceRequest

GPUS = [f"/job:worker/replica:0/task:0/device:GPU:{number}" for number in range(2)]


@pytest.fixture
def graph() -> gc.Graph:
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [512, 512], name="x")
        with gc.name_scope("layer"):
            variable = gc.Variable(np.zeros((512, 512), np.float32), name="W")
            product = gc.matmul(x, variable, name="product")
        gc.tanh(product, name="out")
    return graph


def ask(graph: gc.Graph, *names: str, device: str | None, apply: bool = False) -> list[FromKernel]:
    sent: list[FromKernel] = []
    port = Port(graph, lambda message, _buffers: sent.append(message))
    port.answer(RequestDeviceRequest(ids=["box"], names=list(names), device=device, apply=apply))
    return sent


def effect_of(graph: gc.Graph, *names: str, device: str | None) -> WhatIf:
    (message,) = ask(graph, *names, device=device)
    assert isinstance(message, WhatIfMessage)
    return message.what_if


def test_a_graph_of_one_process_offers_its_cpu(graph: gc.Graph) -> None:
    found = effect_of(graph, "out", device=None)
    assert [choice.name for choice in found.devices] == ["/job:localhost/replica:0/task:0/device:CPU:0"]
    assert found.effect is None


def test_the_devices_are_those_of_a_session_before_and_after_its_first_run(graph: gc.Graph) -> None:
    session = gc.Session(graph=graph, devices=gc.simulated_devices("2 gpu"))
    for _ in range(2):
        found = effect_of(graph, "out", device=None)
        assert [choice.label for choice in found.devices] == [f"{name} (simulated)" for name in GPUS]
        session.run("out:0", {"x:0": np.zeros((512, 512)), "layer/W/read:0": np.zeros((512, 512))})


def test_the_effect_of_a_variable_names_its_followers_and_the_lines_of_its_cell(graph: gc.Graph) -> None:
    session = gc.Session(graph=graph, devices=gc.simulated_devices("2 gpu"))
    session.run("out:0", {"x:0": np.zeros((512, 512)), "layer/W/read:0": np.zeros((512, 512))})
    found = effect_of(graph, "layer/W", device="/gpu:1")
    effect = found.effect
    assert effect is not None
    assert {step.name for step in effect.moved} >= {"layer/W", "layer/W/read", "layer/W/Assign"}
    assert any("follows" in step.text for step in effect.moved)
    rows = {row.what: row for row in effect.rows}
    assert rows["predicted step"].change.endswith("longer")
    assert rows["copies"].before == "none"
    assert rows["copies"].after.startswith("1, ")
    assert any("the last run, of out" in note and "virtual clock" in note for note in effect.notes)
    assert [line.code for line in effect.lines] == ['with gc.device("/device:GPU:1"):']


def test_several_nodes_move_as_a_whole(graph: gc.Graph) -> None:
    gc.Session(graph=graph, devices=gc.simulated_devices("2 gpu"))
    both = moved(effect_of(graph, "layer/product", "out", device="/gpu:1"))
    assert {row.name for row in both} >= {"layer/product", "out"}


def moved(answer: WhatIf) -> list[WhyStep]:
    assert answer.effect is not None
    return answer.effect.moved


def test_a_broken_constraint_names_the_nodes_in_conflict(graph: gc.Graph) -> None:
    gc.Session(graph=graph, devices=gc.simulated_devices("2 gpu"))
    graph.get_operation_by_name("layer/W/Assign").set_requested_device("/gpu:0")
    found = effect_of(graph, "layer/W/read", device="/gpu:1")
    assert found.effect is not None
    assert "Cannot merge devices with incompatible ids" in found.effect.error
    assert {step.name for step in found.effect.conflict} == {"layer/W/Assign", "layer/W/read"}
    assert not found.effect.lines


def test_applying_requests_the_device_and_sends_the_new_picture(graph: gc.Graph) -> None:
    gc.Session(graph=graph, devices=gc.simulated_devices("2 gpu"))
    change, answer = ask(graph, "out", device="/gpu:1", apply=True)
    node = graph.get_operation_by_name("out")
    assert node.device == "/device:GPU:1"
    assert node.assigned_device == GPUS[1]
    assert isinstance(change, ChangeMessage)
    assert isinstance(answer, WhatIfMessage)
    assert answer.what_if.applied
    assert answer.what_if.requested == "/device:GPU:1"
    ask(graph, "out", device="", apply=True)
    assert node.device == ""
    assert node.assigned_device == GPUS[0]


def test_a_graph_that_cannot_change_refuses_with_the_reason(graph: gc.Graph) -> None:
    gc.Session(graph=graph, devices=gc.simulated_devices("2 gpu"))
    graph.finalize()
    with pytest.raises(gc.GraphError, match="finalized"):
        ask(graph, "out", device="/gpu:1", apply=True)
    assert graph.get_operation_by_name("out").device == ""


def test_nodes_of_a_body_are_referred_to_the_call() -> None:
    graph = gc.Graph()

    @gc.function
    def double_tanh(x: gc.Tensor) -> gc.Tensor:
        return gc.tanh(gc.tanh(x, name="inner"))

    with graph.as_default():
        double_tanh(gc.placeholder(gc.float32, [2], name="x"))
    assert "device of its call" in effect_of(graph, "double_tanh:/inner", device=None).note


def test_a_run_that_places_the_graph_changes_its_picture(graph: gc.Graph) -> None:
    port = Port(graph, lambda _message, _buffers: None)
    port.send()
    session = gc.Session(graph=graph, devices=gc.simulated_devices("2 gpu"))
    session.run("x:0", {"x:0": np.zeros((512, 512))})
    port.send()
    assert "GPU:0" in str(port.scene.lenses)
