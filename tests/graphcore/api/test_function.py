"""`gc.function`: Python functions become functions of the graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import GraphError


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


@gc.function
def dense(x: gc.Tensor, w: gc.Tensor) -> gc.Tensor:
    return gc.relu(x @ w) * 2.0


X = np.array([[1.0, -2.0], [3.0, 4.0]], np.float32)
W = np.eye(2, dtype=np.float32)


def test_a_call_on_tensors_is_one_node_that_calls_the_traced_function(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [None, 2], name="x")
    y = dense(x, W)
    assert y.node.op == "dense"
    assert [node.op for node in graph.nodes] == ["Placeholder", "Const", "dense"]
    assert gc.Session().run(y, {x: X}).tolist() == [[2, 0], [6, 8]]


def test_a_function_is_traced_once_for_each_combination_of_types(graph: gc.Graph) -> None:
    calls = []

    @gc.function(name="Twice")
    def twice(x: gc.Tensor) -> gc.Tensor:
        calls.append(x.dtype)
        return x + x

    single, whole = gc.constant([1.0, 2.0]), gc.constant([3, 4])
    results = [twice(single), twice(whole), twice(single + 1.0)]
    assert calls == [gc.float32, gc.int32]
    assert [made.input_types for made in twice.instantiations] == [(gc.float32,), (gc.int32,)]
    assert [made.fdef.name for made in twice.instantiations] == ["Twice", "Twice_1"]
    assert [value.tolist() for value in gc.Session().run(results)] == [[2, 4], [6, 8], [4, 6]]
    assert all(made.fdef.name in graph.library for made in twice.instantiations)


def test_the_traced_function_reads_back_from_its_text(graph: gc.Graph) -> None:
    dense(gc.constant(X), W)
    fdef = graph.library.find("dense")
    assert fdef is not None
    assert [arg.name for arg in fdef.signature.input_arg] == ["x", "w"]
    assert gc.parse_function(gc.debug_string(fdef)) == fdef


def test_a_call_on_arrays_runs_in_the_default_session() -> None:
    with gc.Session():
        for _ in range(2):
            result = dense(X, W)
            assert isinstance(result, np.ndarray)
            assert result.tolist() == [[2, 0], [6, 8]]


def test_what_is_returned_keeps_its_structure() -> None:
    @gc.function
    def parts(x: gc.Tensor) -> dict[str, object]:
        return {"same": x, "pair": (x + x, [-x]), "nothing": None}

    made = parts(gc.constant(3.0))
    assert list(made) == ["same", "pair", "nothing"]
    assert made["nothing"] is None
    assert gc.Session().run([made["same"], made["pair"][0], made["pair"][1][0]]) == [3.0, 6.0, -3.0]


def test_functions_call_functions() -> None:
    @gc.function
    def inner(x: gc.Tensor) -> gc.Tensor:
        return x * x

    @gc.function
    def outer(*values: gc.Tensor, shift: float = 1.0) -> Any:
        return inner(values[0]) + inner(values[1]) + shift

    assert gc.Session().run(outer(gc.constant(2.0), gc.constant(3.0))) == 14.0


def test_gradients_go_through_calls() -> None:
    x, w = gc.placeholder(gc.float32, [None, 2]), gc.placeholder(gc.float32, [2, 2])
    through, direct = dense(x, w), dense.python_function(x, w)
    session, feeds = gc.Session(), {x: X, w: W + 0.5}
    for ours, expected in zip(gc.gradients(through * through, [x, w]), gc.gradients(direct * direct, [x, w]), strict=True):
        np.testing.assert_allclose(session.run(ours, feeds), session.run(expected, feeds), rtol=1e-6)


def test_a_function_that_fails_leaves_graph_and_library_as_they_were(graph: gc.Graph) -> None:
    @gc.function
    def captures(x: gc.Tensor) -> gc.Tensor:
        dense(x, x)
        return x + outside

    with gc.Graph().as_default():
        outside = gc.constant([[1.0]])
    argument = gc.constant([[1.0]])
    before = len(graph), len(graph.library)
    with pytest.raises(GraphError, match="belongs to another graph"):
        captures(argument)
    assert (len(graph), len(graph.library)) == before
    assert captures.instantiations == []


def test_another_python_function_of_the_same_name_gets_a_name_of_its_own(graph: gc.Graph) -> None:
    first = gc.function(lambda x: x + 1.0, name="f")(gc.constant(1.0))
    second = gc.function(lambda x: x + 2.0, name="f")(gc.constant(1.0))
    assert (first.node.op, second.node.op) == ("f", "f_1")
    assert gc.Session().run([first, second]) == [2.0, 3.0]


def test_a_function_that_is_defined_again_as_it_was_keeps_its_name(graph: gc.Graph) -> None:
    def define(factor: float) -> Any:
        def scaled(x: gc.Tensor) -> gc.Tensor:
            return gc.tanh(x) * factor

        return gc.function(scaled)

    x = gc.placeholder(gc.float32, [None], name="x")
    first, again, changed = [define(factor)(x).node for factor in (2.0, 2.0, 3.0)]
    assert [first.op, again.op, changed.op] == ["scaled", "scaled", "scaled_1"]
    assert define(3.0)(x).node.op == "scaled_1"
    assert graph.library.list_function_names() == ["scaled", "scaled_1"]
    with gc.Session() as session:
        assert session.run([first.outputs[0], again.outputs[0]], {x: [0.5]}) == [
            pytest.approx([2 * np.tanh(0.5)]),
            pytest.approx([2 * np.tanh(0.5)]),
        ]


def test_graph_to_function_def_names_arguments_returns_and_control_returns() -> None:
    body = gc.Graph()
    x = body.apply_op("_Arg", attrs={"T": gc.float32, "index": 0}, name="Input/X").outputs[0]
    with body.name_scope("scope"):
        y = body.apply_op("Neg", [x], name="y")
    body.apply_op("_Retval", [y.outputs[0]], {"index": 0}, name="out_RetVal")
    body.apply_op("_Retval", [x], {"index": 1}, name="same_RetVal")
    fdef = gc.graph_to_function_def(body, "f", [y])
    assert [arg.name for arg in fdef.signature.input_arg] == ["input_x"]
    assert dict(fdef.ret) == {"out": "scope/y:y:0", "same": "input_x"}
    assert dict(fdef.control_ret) == {"scope/y": "scope/y"}
    again = gc.function_def_to_body(fdef, {})
    assert [node.name for node in again.graph.nodes] == ["input_x", "scope/y", "out_RetVal", "same_RetVal"]


def test_an_instantiation_prints_as_its_function_and_what_has_no_text_is_refused() -> None:
    with gc.Graph().as_default():

        @gc.function
        def twice(x: gc.Tensor) -> gc.Tensor:
            return x + x

        twice(gc.constant([1.0]))
        (made,) = twice.instantiations
        assert gc.debug_string(made) == gc.debug_string(made.fdef)
        assert gc.parse_function(gc.debug_string(made)) == made.fdef
    with pytest.raises(GraphError, match=r"debug_string prints a graph, .* got 3 of type int"):
        gc.debug_string(3)  # type: ignore[arg-type]  # a possible mistake of users


@pytest.mark.parametrize("given", [gc.float32, "f", [gc.float32]])
def test_what_is_no_function_is_refused(given: Any) -> None:
    with pytest.raises(GraphError, match="takes a Python function"):
        gc.function(given)
    with pytest.raises(GraphError, match="takes a Python function"):
        gc.function(name="f")(given)


def test_a_callable_without_a_name_needs_one() -> None:
    class Doubled:
        def __call__(self, x: gc.Tensor) -> gc.Tensor:
            return x * 2.0

    doubled = Doubled()
    with pytest.raises(GraphError, match="needs name="):
        gc.function(doubled)
    np.testing.assert_array_equal(gc.Session().run(gc.function(doubled, name="doubled")(gc.constant(X))), 2 * X)
