"""`colocate_with`: new nodes on the device of another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import InvalidArgumentError
from tests.support.cells import run_as_cell

TWO_CPUS = ["/cpu:0", "/cpu:1"]


@pytest.fixture(autouse=True)
def graph() -> Any:
    with gc.Graph().as_default() as made:
        yield made


def groups(node: gc.Node | gc.Tensor) -> list[str]:
    made = node if isinstance(node, gc.Node) else node.node
    return [group.decode() for group in made.colocation_groups()]


def test_nodes_and_constants_join_the_groups_of_the_node_and_take_its_device(graph: gc.Graph) -> None:
    with gc.device("/cpu:1"):
        x = gc.placeholder(gc.float32, [2], name="x")
    with gc.device("/cpu:0"), graph.colocate_with(x):
        y = gc.sqrt(x) + gc.constant(1.0, name="one")
        with graph.colocate_with(y):
            z = y * 2.0
        with graph.colocate_with(None, ignore_existing=True):
            apart = gc.exp(y)
    assert groups(y) == groups(z) == groups(graph.get_operation_by_name("one")) == ["loc:@x"]
    assert y.node.device == z.node.device == "/device:CPU:1"
    assert groups(apart) == ["loc:@Exp"]
    assert apart.node.device == ""
    with gc.Session(graph, devices=TWO_CPUS) as session:
        np.testing.assert_allclose(session.run(z, {x: [4.0, 9.0]}), [6.0, 8.0])


def test_groups_of_several_blocks_and_of_the_node_itself_are_joined(graph: gc.Graph) -> None:
    first, second = gc.placeholder(gc.float32, [], name="b"), gc.placeholder(gc.float32, [], name="a")
    with graph.colocate_with(first), graph.colocate_with(second):
        both = gc.sqrt(first)
        v = gc.Variable(1.0, name="v")
    assert groups(both) == groups(v.op) == ["loc:@a", "loc:@b"]
    assert groups(v.initializer) == ["loc:@a", "loc:@b", "loc:@v"]


def test_gradients_join_too_and_are_built_again_with_their_groups(graph: gc.Graph) -> None:
    x, w = gc.placeholder(gc.float32, [], name="x"), gc.placeholder(gc.float32, [], name="w")
    y = run_as_cell(lambda: gc.square(x, name="y"), 1)
    with graph.colocate_with(w):
        (slope,) = gc.gradients(y, [x])
    assert groups(slope) == ["loc:@w"]
    assert gc.Session(graph).run(slope, {x: 3.0}) == 6.0
    run_as_cell(lambda: gc.exp(x, name="y"), 2)
    again = graph.get_tensor_by_name(slope.name)
    assert groups(again) == ["loc:@w"]
    assert gc.Session(graph).run(again, {x: 0.0}) == 1.0


@pytest.mark.parametrize(("op", "came"), [(3, "int 3"), (None, "NoneType")])
def test_what_is_no_node_is_refused(graph: gc.Graph, op: Any, came: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"op: required a node, a tensor or a variable.*got {came}"), graph.colocate_with(op):
        pass


def test_a_node_of_another_graph_is_refused(graph: gc.Graph) -> None:
    with gc.Graph().as_default():
        other = gc.constant(1.0)
    with pytest.raises(InvalidArgumentError, match="graph"), graph.colocate_with(other):
        pass


def test_variables_made_directly_in_a_block_get_the_devices_requested_around_the_outermost_block(graph: gc.Graph) -> None:
    with gc.device(None):
        x = gc.constant(1.0, name="x")
    with gc.device("/cpu:1"), graph.colocate_with(x), graph.colocate_with(x):
        variable, node = gc.Variable(2.0, name="v"), gc.constant(2.0, name="c")
        with gc.device(""):
            requested = gc.Variable(2.0, name="w")
    assert variable.op.device == "/device:CPU:1"
    assert node.node.device == requested.op.device == ""
    assert groups(variable.op) == groups(node) == ["loc:@x"]


def test_variables_in_a_block_get_no_device_from_around_where_the_graph_is_not_entered() -> None:
    gc_graph = gc.Graph()
    with gc_graph.as_default():
        x = gc.constant(1.0, name="x")
    with gc_graph.device("/cpu:1"), gc_graph.colocate_with(x), gc_graph.as_default():
        variable = gc.Variable(2.0, name="v")
    assert variable.op.device == ""
