"""Gradients through graphs: correct values, only necessary nodes, and a record of their origins."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import NotFoundError

tf: Any = gc


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def numeric(session: gc.Session, y: gc.Tensor, x: gc.Tensor, value: np.ndarray, epsilon: float = 1e-5) -> np.ndarray:
    result = np.zeros_like(value)
    for index in np.ndindex(value.shape):
        up, down = value.copy(), value.copy()
        up[index] += epsilon
        down[index] -= epsilon
        result[index] = (session.run(y, {x: up}) - session.run(y, {x: down})).sum() / (2 * epsilon)
    return result


EXPRESSIONS: dict[str, Callable[[gc.Tensor], gc.Tensor]] = {
    "square": gc.square,
    "softmax cross entropy": lambda x: -gc.reduce_sum(gc.constant([[0.0, 1.0, 0.0]], gc.float64) * gc.log(gc.softmax(x))),
    "broadcast bias": lambda x: gc.tanh(x + gc.constant([1.0, 2.0, 3.0], gc.float64)) * gc.constant(2.0, gc.float64),
    "mean of a sum": lambda x: gc.reduce_mean(gc.reduce_sum(x * x, axis=1)),
    "used twice": lambda x: gc.exp(x) * x + x,
    "division": lambda x: 1.0 / (x * x + 2.0),
    "matmul": lambda x: gc.matmul(x, x, transpose_b=True),
    "reshape and concat": lambda x: gc.concat([gc.reshape(x, [-1]), gc.reshape(gc.square(x), [-1])], 0),
    "max": lambda x: gc.reduce_max(x, axis=1),
}


@pytest.mark.parametrize("simplify", [True, False], ids=["simplified", "plain"])
@pytest.mark.parametrize("shape", [[2, 3], [None, 3], None], ids=["known", "partial", "unknown"])
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_gradients_agree_with_finite_differences(name: str, shape: list[int | None] | None, simplify: bool) -> None:
    x = gc.placeholder(gc.float64, shape, name="x")
    y = EXPRESSIONS[name](x)
    (gradient,) = gc.gradients(y, x, simplify=simplify)
    assert gradient is not None
    value = np.array([[0.3, -0.7, 1.2], [0.9, 0.1, -0.4]])
    session = gc.Session()
    np.testing.assert_allclose(session.run(gradient, {x: value}), numeric(session, y, x, value), rtol=1e-5, atol=1e-7)


def test_the_second_derivative_is_a_gradient_of_a_gradient() -> None:
    x = gc.placeholder(gc.float64, [], name="x")
    y = x * x * x
    (first,) = gc.gradients(y, x)
    (second,) = gc.gradients(first, x)
    assert second is not None
    assert gc.Session().run(second, {x: 2.0}) == pytest.approx(12.0)


def test_no_path_gives_none_and_stop_gradient_cuts_it() -> None:
    x = gc.placeholder(gc.float32, [2], name="x")
    z = gc.placeholder(gc.float32, [2], name="z")
    y = gc.square(gc.stop_gradient(x)) + z
    assert gc.gradients(y, [x])[0] is None
    assert gc.gradients(z * 2.0, [x])[0] is None


def test_stop_gradients_are_reached_but_not_passed() -> None:
    a = gc.placeholder(gc.float32, [], name="a")
    b = a * 2.0
    partial = gc.gradients(a + b, [a, b], stop_gradients=[a, b])
    total = gc.gradients(a + b, [a, b])
    assert gc.Session().run([partial, total], {a: 1.0}) == [[1.0, 1.0], [3.0, 1.0]]


def test_gradients_of_variables_flow_through_their_reads() -> None:
    w = gc.Variable([3.0], name="W")
    (gradient,) = gc.gradients(gc.square(w.value()), [w])
    session = gc.Session()
    session.run(gc.initialize_all_variables())
    assert gradient is not None
    assert session.run(gradient).tolist() == [6.0]


def test_a_given_output_gradient_is_used() -> None:
    x = gc.placeholder(gc.float32, [2], name="x")
    (gradient,) = gc.gradients(x * 3.0, x, grad_ys=gc.constant([10.0, 100.0]))
    assert gradient is not None
    assert gc.Session().run(gradient, {x: [1.0, 1.0]}).tolist() == [30, 300]


def test_each_gradient_node_is_recorded_with_what_it_differentiates(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [2, 3], name="x")
    w = gc.placeholder(gc.float32, [3, 4], name="w")
    product = gc.matmul(x, w, name="product")
    (gradient,) = gc.gradients(product, w)
    assert gradient is not None
    record = graph.gradient_records[gradient.node.name]
    assert (gradient.name, record.forward, record.body_node) == ("gradients/w:0", "w", "result")
    (inner,) = gradient.node.inputs
    record = graph.gradient_records[inner.node.name]
    assert record.forward == "product"
    assert record.function is not None
    assert record.body_node == "dy"
    assert inner.name == "gradients/product_grad/dy:0"


def test_broadcast_handling_falls_away_where_nothing_was_broadcast(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [None, 3], name="x")
    y = x * x
    before = len(graph)
    gc.gradients(y, x)
    ops = sorted(node.op for node in graph.nodes[before:])
    assert ops == ["AddN", "Identity", "Mul", "Mul", "OnesLike"]


def test_a_bias_is_summed_over_the_batch(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [None, 3], name="x")
    b = gc.placeholder(gc.float32, [3], name="b")
    y = x + b
    before = len(graph)
    gc.gradients(y, b)
    assert sorted(node.op for node in graph.nodes[before:]) == ["Const", "Identity", "OnesLike", "Sum"]


def test_forward_values_are_reused(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [3], name="x")
    y = gc.exp(x)
    before = len(graph)
    gc.gradients(y, x)
    assert "Exp" not in [node.op for node in graph.nodes[before:]]


def test_the_plain_body_is_inlined_whole_where_it_is_needed(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [3], name="x")
    y = gc.exp(x)
    before = len(graph)
    gc.gradients(y, x, simplify=False)
    assert [node.op for node in graph.nodes[before:]].count("Exp") == 1


def test_integers_have_no_gradient() -> None:
    n = gc.placeholder(gc.int32, [2], name="n")
    assert gc.gradients(n, n) == [None]
    x = gc.placeholder(gc.float32, [2], name="x")
    assert gc.gradients(gc.argmax(x), x) == [None]
    beside, alone = [gc.gradients(ys, x)[0] for ys in ([gc.argmax(x), x * x], x * x)]
    with gc.Session() as session:
        np.testing.assert_array_equal(*session.run([beside, alone], {x: [1.0, 2.0]}))


def test_an_op_without_a_gradient_is_named() -> None:
    x = gc.placeholder(gc.float32, [2], name="x")
    w = gc.Variable([1.0, 2.0], name="W")
    updated = tf.scatter_update(w, [0, 1], x)
    with pytest.raises(NotFoundError, match="No gradient defined for op: ScatterUpdate"):
        gc.gradients(gc.identity(updated), x)


def test_gradients_pass_by_ops_that_change_state_or_call_python() -> None:
    x = gc.constant([1.0, 2.0])
    w = gc.Variable([3.0, 4.0], use_resource=False)
    for stopped in (
        tf.py_func(lambda a: a * 2, [x], gc.float32),
        tf.py_func(lambda a: a * 2, [x], gc.float32, stateful=False),
        *(gc.assign(w, x), gc.assign_add(w, x), gc.assign_sub(w, x)),
        *(tf.scatter_add(w, [0, 1], x), tf.scatter_sub(w, [0, 1], x), tf.scatter_mul(w, [0, 1], x), tf.scatter_div(w, [0, 1], x)),
        *(update(w, [[0], [1]], x) for update in (tf.scatter_nd_update, tf.scatter_nd_add, tf.scatter_nd_sub)),
        tf.image.hsv_to_rgb(gc.concat([x, [0.5]], 0)),
    ):
        with gc.Session() as session:
            session.run(w.initializer)
            assert session.run(gc.gradients(gc.reduce_sum(stopped) + gc.reduce_sum(3.0 * x), x)[0]).tolist() == [3.0, 3.0]
        assert gc.gradients(stopped, x) == [None]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (np.array([1.0, 2.0], np.float32), [2.0, 8.0]),
        (np.array([1.0, 2.0]), [2.0, 8.0]),
        ([[1.0, 2.0]], [2.0, 8.0]),
        ([[1, 2]], [2.0, 8.0]),
        ([np.array([3.0, 0.0], np.float32)], [6.0, 0.0]),
    ],
)
def test_incoming_gradients_may_be_numbers(given: Any, expected: list[float]) -> None:
    x = gc.constant([1.0, 2.0])
    with gc.Session() as session:
        assert session.run(gc.gradients(x * x, x, grad_ys=given)[0]).tolist() == expected
        assert session.run(gc.gradients([x[0] * 2, x[1] * 3], x, grad_ys=[7.0, None])[0]).tolist() == [14.0, 3.0]


def test_no_xs_have_no_gradients() -> None:
    assert gc.gradients(gc.constant(1.0), []) == []
