"""Branches, loops and devices take the arguments of TensorFlow 1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import graphcore as gc


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as made:
        yield made


def test_branches_and_loops_take_the_arguments_of_tensorflow_in_its_order() -> None:
    x, p = gc.constant(3.0), gc.placeholder(gc.bool_, [])
    old = gc.cond(p, fn1=lambda: x, fn2=lambda: -x)
    single = gc.cond(p, lambda: [x], lambda: (x * 2.0,))
    kept = gc.cond(p, lambda: [x], lambda: [x * 2.0], True, "kept")
    looped = gc.while_loop(lambda i: i < 10, lambda i: [i * 2], [3], [gc.TensorShape([])], 1, False, True, "repeat")
    assert looped.name == "StopGradient:0"
    with gc.Session() as session:
        assert session.run([old, single, kept, looped], {p: False}) == [-3.0, 6.0, [6.0], 12]
    with pytest.raises(gc.errors.InvalidArgumentError, match="false branch of cond must be a function, got None"):
        gc.cond(p, lambda: x)


def test_exclusive_cases_refuse_two_true_conditions() -> None:
    x = gc.placeholder(gc.int32, [], name="x")
    chosen = gc.case({x > 1: lambda: gc.constant("big"), x > 5: lambda: gc.constant("huge")}, lambda: gc.constant("small"), exclusive=True)
    with gc.Session() as session:
        assert [session.run(chosen, {x: n}) for n in (0, 3)] == [b"small", b"big"]
        with pytest.raises(gc.errors.InvalidArgumentError, match="at most one true condition of Greater:0, Greater_1:0"):
            session.run(chosen, {x: 7})


def test_a_function_chooses_the_device_of_each_node_as_in_tensorflow() -> None:
    seen: list[tuple[str, str, str]] = []

    def choose(op: Any) -> str:
        seen.append((op.type, op.name, op.device))
        return "//cpu:0" if isinstance(op.node_def, gc.NodeDef) and op.node_def.op == "Placeholder" else "/gpu:1"

    with gc.device("/job:w/cpu:0"), gc.device(choose):
        x = gc.placeholder(gc.float32, [2], name="x")
        with gc.device("/task:3"):
            a = gc.constant(1.0, name="a")
        y = gc.tanh(x, name="y")
        (gradient,) = gc.gradients(y, x)
    assert [tensor.device for tensor in (x, a, y)] == ["/job:w/device:CPU:0", "/job:w/device:GPU:1", "/job:w/device:GPU:1"]
    assert seen[:3] == [("Placeholder", "x", ""), ("Const", "a", "/task:3"), ("Tanh", "y", "")]
    assert gradient.device == "/job:w/device:GPU:1"
    with gc.device("gpu:0"):
        assert gc.constant(1).device == "/device:GPU:0"
    nothing: Any = lambda _: None  # noqa: E731 - a function that fits no type of device functions
    refusal = "A device function must return a text such as '/cpu:0', got None for 'Const"
    with pytest.raises(gc.errors.InvalidArgumentError, match=refusal), gc.device(nothing):
        gc.constant(1)


def test_gradients_followed_after_an_edit_keep_the_chosen_devices(graph: gc.Graph) -> None:
    with gc.device(lambda op: "/gpu:0" if op.name.startswith("gradients") else "/cpu:0"):
        x = gc.placeholder(gc.float32, [2], name="x")
        h = gc.exp(x, name="h")
        gc.gradients(gc.tanh(h, name="y"), x)

    def gradients() -> list[gc.Node]:
        return [node for node in graph.op_nodes() if node.name.startswith("gradients")]

    before = gradients()
    graph.update_edge(x.node, 0, graph.get_operation_by_name("y"), 0)
    graph.derivations.settle()
    assert {node.device for node in before} == {node.device for node in gradients()} == {"/device:GPU:0"}
    assert set(before) - set(gradients()), "the edit has not changed the gradients"
