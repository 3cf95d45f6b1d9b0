"""The effect of a requested device, before and after it is requested."""

from __future__ import annotations

import json
from typing import Final

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from graphcore.source import CellRun, current_run

WIDTH: Final = 1024
GPUS: Final = [f"/job:worker/replica:0/task:0/device:GPU:{number}" for number in range(2)]


@pytest.fixture
def graph() -> gc.Graph:
    """A variable, its product with an input, and a change of the variable."""
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [WIDTH, WIDTH], name="x")
        variable = gc.Variable(np.zeros((WIDTH, WIDTH), np.float32), name="W")
        product = gc.matmul(x, variable, name="product")
        variable.assign_sub(product, name="change")
    return graph


@pytest.fixture
def machine() -> gc.DeviceSet:
    return gc.simulated_devices("2 gpu")


def named(graph: gc.Graph, name: str) -> gc.Node:
    return graph.get_operation_by_name(name)


def state(graph: gc.Graph) -> object:
    return graph.version, graph.as_graph_def(), [node.assigned_device for node in graph.nodes]


def test_nodes_may_be_given_by_name_and_as_variables(graph: gc.Graph, machine: gc.DeviceSet) -> None:
    [variable] = graph.get_collection("variables")
    with graph.as_default():
        by_name = gc.what_if(["W", "product:0"], "/gpu:1", machine, fetches=["product"])
        as_variable = gc.what_if(variable, "/gpu:1", machine)
        explained = [gc.explain_placement(each, machine) for each in ("W", "W:0", variable, named(graph, "W"))]
        for unknown in (lambda: gc.explain_placement("V", machine), lambda: gc.what_if("V", "/gpu:1", machine)):
            with pytest.raises(NotFoundError, match="'V'"):
                unknown()
    assert by_name == gc.what_if([named(graph, "W"), named(graph, "product")], "/gpu:1", machine, fetches=[named(graph, "product")])
    assert as_variable.nodes == ("W",)
    assert {each.node for each in explained} == {"W"}


def test_the_effect_names_what_follows_and_what_is_copied(graph: gc.Graph, machine: gc.DeviceSet) -> None:
    before = state(graph)
    found = gc.what_if(named(graph, "W"), "/gpu:1", machine, fetches=[named(graph, "product")])
    assert state(graph) == before
    moved = {node.name: node.requested for node in found.moved}
    assert moved == {"W": True, "W/initial_value": False, "W/Assign": False, "W/read": False, "change": False}
    assert {(node.source, node.destination) for node in found.moved} == {(GPUS[0], GPUS[1])}
    assert found.copies_before == ()
    assert [(copy.tensor, copy.bytes) for copy in found.copies_after] == [("W/read:0", 4 * WIDTH**2)]
    assert found.before is not None
    assert found.after is not None
    assert found.after.makespan > found.before.makespan
    assert found.after.peak_bytes[GPUS[1]] == 4 * WIDTH**2  # the variable, which its read shares
    assert "4 follow" in str(found)
    assert "virtual clock of simulated devices" in str(found)
    assert json.loads(found.to_json())["device"] == "/device:GPU:1"


def test_a_request_that_breaks_a_constraint_says_which_and_cannot_be_applied(graph: gc.Graph, machine: gc.DeviceSet) -> None:
    named(graph, "W/read").set_requested_device("/gpu:0")
    before = state(graph)
    found = gc.what_if(named(graph, "change"), "/gpu:1", machine)
    assert "Cannot merge devices with incompatible ids" in found.error
    assert {entry.name for entry in found.conflict} == {"W/read", "W", "change"}
    assert "cannot be placed" in str(found)
    assert found.lines == ()
    with pytest.raises(InvalidArgumentError, match="'/device:GPU:1' cannot be requested for change"):
        found.apply(graph)
    assert state(graph) == before


def test_a_request_that_the_placer_ignores_is_named(graph: gc.Graph, machine: gc.DeviceSet) -> None:
    named(graph, "W").set_requested_device("/gpu:0")
    found = gc.what_if(named(graph, "change"), "/gpu:1", machine)
    assert found.ignored == ("change",)
    assert "ignored for change" in str(found)
    assert found.moved == ()


def test_a_request_can_mend_a_graph_that_cannot_be_placed(graph: gc.Graph, machine: gc.DeviceSet) -> None:
    named(graph, "W/read").set_requested_device("/gpu:0")
    named(graph, "change").set_requested_device("/gpu:1")
    found = gc.what_if(named(graph, "change"), "", machine)
    assert not found.error
    assert found.before is None
    found.apply(graph)
    assert gc.Placer(graph, machine).run()["change"].name == GPUS[0]


def test_an_applied_request_is_followed_and_its_lines_are_those_of_the_cells(machine: gc.DeviceSet) -> None:
    graph = gc.Graph()
    names = []
    for number in range(2):
        token = current_run.set(CellRun(cell=str(number), execution=number, label=f"In [{number}]", file=__file__))
        with graph.as_default():
            names += [gc.placeholder(gc.float32, [2], name=f"{letter}{number}").node.name for letter in "ab"]
        current_run.reset(token)
    effect = gc.what_if([named(graph, name) for name in names], "/gpu:1", machine)
    lines = effect.apply(graph)
    assert lines == effect.lines
    assert [(line.nodes, line.code) for line in lines] == [
        (("a0", "b0"), 'with gc.device("/device:GPU:1"):'),
        (("a1", "b1"), 'with gc.device("/device:GPU:1"):'),
    ]
    assert [line.where.split(",")[0] for line in lines] == ["cell In [0]", "cell In [1]"]
    assert str(lines[0]).startswith("# cell In [0], line ")
    assert [line.others for line in lines] == [0, 0]
    placement = gc.Placer(graph, machine).run()
    assert {placement[name].name for name in names} == {GPUS[1]}


def test_a_line_that_makes_other_nodes_too_is_marked(machine: gc.DeviceSet) -> None:
    graph = gc.Graph()
    with graph.as_default():
        first, *_ = [gc.placeholder(gc.float32, [2]) for _ in range(3)]
    (line,) = gc.what_if(first, "/gpu:1", machine).lines
    assert line.others == 2
    assert "2 other nodes" in str(line)


def test_bad_questions_are_refused(graph: gc.Graph, machine: gc.DeviceSet) -> None:
    with pytest.raises(InvalidArgumentError, match="Required nodes of one graph, got none"):
        gc.what_if([], "/gpu:1", machine)
    with pytest.raises(InvalidArgumentError):
        gc.what_if(named(graph, "x"), "/gpu:one", machine)
    with pytest.raises(FailedPreconditionError):
        gc.what_if(named(graph, "x"), "/gpu:1", gc.DeviceSet())
    assert "refers to a valid device" in gc.what_if(named(graph, "x"), "/gpu:7", machine).error


def test_requests_of_a_node_that_is_gone_change_nothing(graph: gc.Graph, machine: gc.DeviceSet) -> None:
    effect = gc.what_if([named(graph, "x"), named(graph, "change")], "/gpu:1", machine)
    graph.remove_node(named(graph, "change"))
    with pytest.raises(NotFoundError, match="'change'"):
        effect.apply(graph)
    assert named(graph, "x").device == ""


def test_an_applied_proposal_is_placed_as_it_says() -> None:
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [WIDTH, WIDTH], name="x")
        total = gc.add(gc.matmul(gc.matmul(x, x), x), gc.matmul(gc.matmul(x, x), x), name="total")
    machine = gc.simulated_devices("2 gpu")
    proposal = gc.propose_placement(graph, machine, [total])
    assert proposal.moves
    assert proposal.apply(graph)
    placement = gc.Placer(graph, machine).run()
    assert gc.predict_step(placement.devices, fetches=[total]).makespan == pytest.approx(proposal.after.makespan)
