"""Simplification of registered bodies by `gc.gradients`, in graphs and functions, and its option."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

import graphcore as gc

BROADCASTING = {"Shape", "BroadcastGradientArgs", "Reshape", "Identity", "Cast"}


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def layer(x: gc.Tensor, w: gc.Tensor) -> gc.Tensor:
    return gc.tanh(gc.exp(x) * w)


def plainly(x: gc.Tensor, w: gc.Tensor) -> gc.Tensor:
    return layer(x, w)


def in_a_branch(x: gc.Tensor, w: gc.Tensor) -> gc.Tensor:
    found: gc.Tensor = gc.cond(gc.reduce_sum(x) > 0.0, lambda: layer(x, w), lambda: x * w)
    return found


def in_a_loop(x: gc.Tensor, w: gc.Tensor) -> gc.Tensor:
    found: gc.Tensor = gc.while_loop(lambda i, _: i < 2, lambda i, v: (i + 1, layer(v, w)), (0, x))[1]
    return found


def backward_ops(build: Callable[[gc.Tensor, gc.Tensor], gc.Tensor], simplify: bool) -> Counter[str]:
    """The ops of a backward pass, including functions, without the forward part."""
    with gc.Graph().as_default() as graph:
        x, w = gc.placeholder(gc.float32, [2, 3], name="x"), gc.placeholder(gc.float32, [2, 3], name="w")
        y = build(x, w)
        before = {node.name for node in graph.nodes} | {function.signature.name for function in graph.library.to_proto().function}
        gc.gradients(y, [x, w], simplify=simplify)
        made = [node for node in graph.op_nodes() if node.name not in before and "_forward_of" not in node.node_def.attr]
        made = [node for node in made if graph.gradient_records[node.name].body_node != "result"]
        bodies = [
            function
            for function in graph.library.to_proto().function
            if function.signature.name not in before and "_forward" not in function.signature.name
        ]
        return Counter([node.op for node in made] + [node.op for body in bodies for node in body.node_def])


@pytest.mark.parametrize("build", [plainly, in_a_branch, in_a_loop])
def test_forward_values_are_reused_and_broadcast_handling_falls_away(build: Callable[[gc.Tensor, gc.Tensor], gc.Tensor]) -> None:
    ops = backward_ops(build, simplify=True)
    assert not BROADCASTING & ops.keys()
    assert not {"Tanh", "Exp", "Sum"} & ops.keys()
    assert {"Square", "Sub", "Mul"} <= ops.keys()


@pytest.mark.parametrize("build", [plainly, in_a_branch, in_a_loop])
def test_without_simplifying_the_registered_bodies_stay_as_they_are(build: Callable[[gc.Tensor, gc.Tensor], gc.Tensor]) -> None:
    ops = backward_ops(build, simplify=False)
    assert {"Tanh", "Exp", "Shape", "BroadcastGradientArgs", "Sum", "Reshape", "Cast"} <= ops.keys()


def test_terms_that_are_zero_vanish_from_sums(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [3], name="x")
    y = gc.ops.sign(x) * x
    before = len(graph)
    (gradient,) = gc.gradients(y, x)
    assert "AddN" not in [node.op for node in graph.nodes[before:]]
    with gc.Session() as session:
        assert session.run(gradient, {x: [-2.0, 0.5, 3.0]}).tolist() == [-1.0, 1.0, 1.0]
    (plain,) = gc.gradients(y, x, simplify=False)
    assert plain.node.inputs[0].node.op == "AddN"


def test_nothing_is_computed_of_a_gradient_that_is_zero(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [None], name="x")
    y = gc.ops.sign(gc.tanh(gc.exp(x)))
    before = len(graph)
    (gradient,) = gc.gradients(y, x)
    assert not {"Mul", "Square"} & {node.op for node in graph.nodes[before:]}
    assert gc.explain_gradient(y, x).is_zero
    with gc.Session() as session:
        assert session.run(gradient, {x: [1.0, 2.0]}).tolist() == [0.0, 0.0]


def test_a_sum_is_explained_by_the_terms_that_it_has() -> None:
    x = gc.placeholder(gc.float32, [3], name="x")
    y = gc.add_n([gc.ops.sign(x), gc.exp(x, name="first"), gc.tanh(x, name="second")])
    (total,) = gc.explain_gradient(y, x).sums
    assert [part.node for part in total.parts] == ["first", "second"]
