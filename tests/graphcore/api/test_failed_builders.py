"""Ctrl-C or errors while gradients, branches and loops are built leave the graph unchanged."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import pytest

import graphcore as gc
from graphcore.errors import InvalidArgumentError, NotFoundError
from graphcore.graph.model.edges import EdgeStore
from tests.graphcore.graph.example_graphs import everything, ranks_fit
from tests.support.whole_graphs import Mirror, check_whole


def small() -> gc.Graph:
    """`z` depends on two placeholders and a variable of either kind."""
    graph = gc.Graph()
    with graph.as_default():
        x, y = gc.placeholder(gc.float32, [2], name="x"), gc.placeholder(gc.float32, [2], name="y")
        w, v = gc.Variable([1.0, 2.0], name="w"), gc.Variable([1.0, 2.0], name="v", use_resource=True)
        gc.add(gc.tanh(x) * y * w, v + gc.square(v), name="z")
        gc.placeholder(gc.bool_, [], name="p")
    return graph


def press() -> None:
    signal.raise_signal(signal.SIGINT)


def presses_and_gives(value: gc.Tensor) -> gc.Tensor:
    """A branch that makes a node before Ctrl-C is pressed."""
    made = value * 2.0
    press()
    return made


def branch(graph: gc.Graph) -> Any:
    x, y, p = (graph.get_tensor_by_name(f"{name}:0") for name in "xyp")
    return gc.cond(p, lambda: x * y, lambda: presses_and_gives(x))


def loop(graph: gc.Graph) -> Any:
    x = graph.get_tensor_by_name("x:0")
    return gc.while_loop(lambda i, _: i < 3, lambda i, t: (i + 1, presses_and_gives(t)), [0, x])


def function(graph: gc.Graph) -> Any:
    return gc.function(presses_and_gives)(graph.get_tensor_by_name("x:0"))


def nested(graph: gc.Graph) -> Any:
    x, p = (graph.get_tensor_by_name(f"{name}:0") for name in "xp")
    return gc.cond(p, lambda: function(graph), lambda: x)


@pytest.mark.parametrize("build", [branch, loop, function, nested])
def test_ctrl_c_while_a_function_is_traced_leaves_nothing_of_it(build: Callable[[gc.Graph], Any]) -> None:
    graph = small()
    functions = graph.library.list_function_names()
    nodes, mirror = [node.name for node in graph.nodes], Mirror(graph)
    with graph.as_default(), pytest.raises(KeyboardInterrupt):
        build(graph)
    made = [node.name for node in graph.nodes if node.name not in nodes]
    assert all(graph.get_operation_by_name(name).op == "Const" for name in made)  # constants for the given values
    assert graph.library.list_function_names() == functions
    assert (graph.scopes.name, graph.scopes.controls) == ("", ())
    check_whole(graph, mirror)
    with graph.as_default():
        y = gc.cond(graph.get_tensor_by_name("p:0"), lambda: graph.get_tensor_by_name("x:0") * 3.0, lambda: graph.get_tensor_by_name("y:0"))
        assert gc.Session().run(y, {"x:0": [1, 2], "y:0": [3, 4], "p:0": True}).tolist() == [3, 6]


@pytest.mark.parametrize("fed", ["tensors", "a resource"])
def test_ctrl_c_while_gradients_are_built_leaves_nothing_of_them(fed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = small()
    z = graph.get_tensor_by_name("z:0")
    xs: list[Any] = [graph.get_tensor_by_name(name) for name in ("x:0", "y:0", "w/read:0")]
    if fed == "a resource":
        xs = [each for each in graph.get_collection("variables") if each.op.name == "v"]
    before, mirror, count = everything(graph), Mirror(graph), [0]
    add_node = EdgeStore.add_node

    def pressing(store: EdgeStore, node: gc.Node) -> None:
        count[0] += node.graph is graph
        if count[0] == 3:
            press()
        add_node(store, node)

    with monkeypatch.context() as patch:
        patch.setattr(EdgeStore, "add_node", pressing)
        with pytest.raises(KeyboardInterrupt):
            gc.gradients(z, xs)
    assert everything(graph) == before
    assert not mirror.versions
    assert None not in gc.gradients(z, xs)
    check_whole(graph, mirror)
    assert ranks_fit(graph)


def test_gradients_that_fail_on_the_way_leave_nothing_behind() -> None:
    graph = small()
    with graph.as_default():
        z = graph.get_tensor_by_name("z:0")
        total = gc.exp(gc.apply_op("IgammaGradA", [gc.tanh(z), z]))
    before = everything(graph)
    with pytest.raises(NotFoundError, match="No gradient defined"):
        gc.gradients(total, [graph.get_tensor_by_name("x:0")])
    assert everything(graph) == before


def test_a_branch_that_does_without_a_branch_that_failed_uses_what_that_had_captured() -> None:
    with gc.Graph().as_default() as graph:
        x, p = gc.placeholder(gc.float32, [2], name="x"), gc.placeholder(gc.bool_, [], name="p")

        def either() -> Any:
            with pytest.raises(InvalidArgumentError, match="must give the same number of values"):
                gc.cond(p, lambda: x * 2.0, lambda: (x, x))
            return x * 3.0

        y = gc.cond(p, either, lambda: x)
        names = graph.library.list_function_names()
        assert gc.Session().run(y, {x: [1, 2], p: True}).tolist() == [3, 6]
    assert names == ["cond_true", "cond_false"]
    assert y.node.inputs[1:] == [x]  # captures of the failed branch are not arguments
