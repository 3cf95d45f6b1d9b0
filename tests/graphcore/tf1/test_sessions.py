"""Sessions as TensorFlow 1 makes them: `InteractiveSession`, targets, `ConfigProto`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import graphcore as gc
from graphcore.errors import FailedPreconditionError, InvalidArgumentError
from graphcore.remarks import collect_remarks, collected_remarks


@pytest.fixture(autouse=True)
def _afresh() -> Iterator[None]:
    gc.reset_default_graph()
    yield
    gc.reset_default_graph()


def cell() -> tuple[Any, list[float]]:
    """A cell that begins afresh."""
    gc.reset_default_graph()
    session = gc.InteractiveSession()
    a = gc.get_variable("a", [2], initializer=gc.ones_initializer())
    session.run(gc.global_variables_initializer())
    return session, a.eval().tolist()


@pytest.mark.parametrize("first_to_close", [0, 1])
def test_a_cell_that_resets_the_graph_and_opens_an_interactive_session_can_be_run_again(first_to_close: int) -> None:
    made = [cell(), cell()]
    assert [values for _, values in made] == [[1.0, 1.0], [1.0, 1.0]]
    made[first_to_close][0].close()
    assert gc.get_default_session() is made[1 - first_to_close][0]
    made[1 - first_to_close][0].close()
    assert gc.get_default_session() is None


def test_resetting_while_an_interactive_session_is_open_begins_an_empty_graph() -> None:
    session = gc.InteractiveSession()
    gc.constant(1.0, name="old")
    gc.reset_default_graph()
    assert gc.get_default_graph().get_operations() == []
    session.close()


def test_a_graph_given_to_an_interactive_session_is_the_default_graph_until_it_is_closed() -> None:
    first, second = gc.Graph(), gc.Graph()
    before = gc.get_default_graph()
    one, two = gc.InteractiveSession(graph=first), gc.InteractiveSession(graph=second)
    assert gc.get_default_graph() is second
    one.close()
    assert gc.get_default_graph() is second
    two.close()
    assert gc.get_default_graph() is before


def test_resetting_within_as_default_is_refused() -> None:
    with gc.Graph().as_default(), pytest.raises(FailedPreconditionError, match="reset_default_graph"):
        gc.reset_default_graph()


def test_the_first_argument_may_be_the_target() -> None:
    graph = gc.Graph()
    with graph.as_default():
        x = gc.constant(3)
    for session in (gc.Session("", graph=graph), gc.Session("", graph), gc.Session(graph=graph), gc.Session(graph)):
        assert session.run(x) == 3
    assert gc.Session(target="local", graph=graph).run(x) == 3
    with pytest.raises(InvalidArgumentError, match="graph: required it once"):
        gc.Session(graph, graph=graph)


@pytest.mark.parametrize("device", ["/gpu:0", "/job:ps/task:7"])
def test_a_device_that_is_not_there_is_refused_if_the_config_forbids_soft_placement(device: str) -> None:
    with gc.device(device):
        far = gc.constant(1.0, name="far")
    with (
        gc.Session(config=gc.ConfigProto(allow_soft_placement=False)) as session,
        pytest.raises(InvalidArgumentError, match="far") as raised,
    ):
        session.run(far)
    assert gc.DeviceSpec.parse(device).to_string() in str(raised.value)
    assert gc.Session(config=gc.ConfigProto(allow_soft_placement=True)).run(far) == 1.0
    assert gc.Session(config=gc.ConfigProto()).run(far) == 1.0


def test_the_config_counts_the_cpus() -> None:
    with gc.device("/cpu:3"):
        x = gc.constant(1.0, name="x")
    with gc.Session(config=gc.ConfigProto(device_count={"CPU": 4})) as session:
        assert [device.name[-5:] for device in session.list_devices()] == ["CPU:0", "CPU:1", "CPU:2", "CPU:3"]
        assert session.run(x + 1.0) == 2.0
        assert "CPU:3" in str(gc.explain_placement(x))
    with pytest.raises(InvalidArgumentError, match="device_count"):
        gc.Session(config=gc.ConfigProto(device_count={"CPU": -1}))


def test_options_of_a_config_that_have_no_effect_are_named() -> None:
    config = gc.ConfigProto(allow_soft_placement=True, inter_op_parallelism_threads=1, intra_op_parallelism_threads=4)
    config.gpu_options.allow_growth = True
    config.graph_options.place_pruned_graph = True
    collect_remarks()
    with gc.Session(config=config), gc.Session(config=gc.ConfigProto(log_device_placement=False)):
        assert collected_remarks() == [
            "These options of ConfigProto have no effect here: gpu_options.allow_growth, intra_op_parallelism_threads"
        ]
