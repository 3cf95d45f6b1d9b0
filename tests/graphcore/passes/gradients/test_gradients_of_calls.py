"""Gradients through repeated calls of functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest

import graphcore as gc
from graphcore.definitions import GradientDef
from graphcore.errors import InvalidArgumentError

FUNCTIONS = [
    """Product(x:double, n:int32, w:double) -> (y:double, m:int32, z:double) {
      t = Tanh[T=double](x)
      y = Mul[T=double](t:y:0, w)
      m = Add[T=int32](n, n)
      z = Exp[T=double](w)
      return y = y:z:0
      return m = m:z:0
      return z = z:y:0
    }""",
    """Outer(x:double, n:int32, w:double) -> (y:double) {
      inner = Product(x, n, w)
      y = Mul[T=double](inner:y:0, inner:z:0)
      return y = y:z:0
    }""",
    """Cube(x:double) -> (y:double) {
      s = Square[T=double](x)
      y = Mul[T=double](s:y:0, x)
      return y = y:z:0
    }""",
    """TwiceCubeGradient(x:double, dy:double) -> (dx:double) {
      dx = Add[T=double](dy, dy)
      return dx = dx:z:0
    }""",
]
Caller = Callable[[str, Sequence[gc.Tensor], Sequence[gc.DType]], list[gc.Tensor]]


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        for text in FUNCTIONS:
            graph.library.add_function_def(gc.parse_function(text, graph.library.look_up_op_def))
        yield graph


def direct(name: str, inputs: Sequence[gc.Tensor], _: Sequence[gc.DType]) -> list[gc.Tensor]:
    return gc.get_default_graph().apply_op(name, inputs, None, "call").outputs


def by_op(op: str) -> Caller:
    def call(name: str, inputs: Sequence[gc.Tensor], types: Sequence[gc.DType]) -> list[gc.Tensor]:
        attrs = {"f": gc.Func(name), "Tout": list(types)}
        return gc.get_default_graph().apply_op(op, [list(inputs)], attrs, "call").outputs

    return call


CALLERS: dict[str, Caller] = {"direct": direct, "PartitionedCall": by_op("PartitionedCall"), "Stateful": by_op("StatefulPartitionedCall")}
FEEDS = {"x:0": [0.1, 0.2, 0.3], "w:0": [1.0, 2.0, -1.0]}
each_caller = pytest.mark.parametrize("caller", CALLERS.values(), ids=list(CALLERS))


def arguments() -> tuple[gc.Tensor, gc.Tensor, gc.Tensor]:
    return gc.placeholder(gc.float64, [3], name="x"), gc.constant(2), gc.placeholder(gc.float64, [3], name="w")


@each_caller
@pytest.mark.parametrize("simplify", [True, False], ids=["simplified", "plain"])
def test_a_call_is_differentiated_through_each_of_its_outputs(caller: Caller, simplify: bool) -> None:
    x, n, w = arguments()
    outputs = caller("Product", [x, n, w], [gc.float64, gc.int32, gc.float64])
    y = outputs[0] * outputs[2]
    gradients = gc.gradients(y, [x, w], simplify=simplify)
    values = gc.Session().run(gradients, FEEDS)
    a, b = np.array(FEEDS["x:0"]), np.array(FEEDS["w:0"])
    np.testing.assert_allclose(values[0], b * np.exp(b) / np.cosh(a) ** 2)
    np.testing.assert_allclose(values[1], np.tanh(a) * np.exp(b) * (1 + b))


@each_caller
def test_second_and_third_derivatives_go_through_calls(caller: Caller) -> None:
    x = gc.placeholder(gc.float64, [3], name="x")
    (y,) = caller("Cube", [x], [gc.float64])
    derivatives = [y]
    for _ in range(3):
        derivatives += gc.gradients(derivatives[-1], x)
    value = np.array([0.5, -1.0, 2.0])
    results = gc.Session().run(derivatives, {x: value})
    for got, wanted in zip(results, [value**3, 3 * value**2, 6 * value, np.full(3, 6.0)], strict=True):
        np.testing.assert_allclose(got, wanted)


@each_caller
def test_calls_within_calls_have_second_derivatives(caller: Caller) -> None:
    x, n, w = arguments()
    (y,) = caller("Outer", [x, n, w], [gc.float64])
    assert gc.check_gradient(y, [x, w], FEEDS).passed
    first = gc.gradients(y, [x, w])
    assert gc.check_gradient(gc.add_n(first), [x, w], FEEDS).passed


def test_a_gradient_function_of_the_library_is_used(graph: gc.Graph) -> None:
    graph.library.add_gradient_def(GradientDef("Cube", "TwiceCubeGradient"))
    x = gc.placeholder(gc.float64, [3], name="x")
    (y,) = direct("Cube", [x], [])
    (gradient,) = gc.gradients(y, x)
    assert gc.Session().run(gradient, {x: [1.0, 2.0, 3.0]}).tolist() == [2.0, 2.0, 2.0]


def test_a_gradient_function_that_does_not_fit_is_refused_with_both_signatures(graph: gc.Graph) -> None:
    graph.library.add_function_def(gc.parse_function("Lonely(x:double) -> (dx:double) {\n  return dx = x\n}"))
    graph.library.add_gradient_def(GradientDef("Cube", "Lonely"))
    x = gc.placeholder(gc.float64, [3], name="x")
    (y,) = direct("Cube", [x], [])
    (gradient,) = gc.gradients(y, x)
    text = r"'Lonely', the gradient of function 'Cube', must take .* \(double, double\), .* \(double\); it takes \(double\) and returns"
    with pytest.raises(InvalidArgumentError, match=text):
        gc.Session().run(gradient, {x: [1.0, 2.0, 3.0]})


def test_a_second_derivative_can_be_inlined_and_computes_the_same(graph: gc.Graph) -> None:
    x, n, w = arguments()
    (y,) = direct("Outer", [x, n, w], [])
    (first,) = gc.gradients(y, w)
    (second,) = gc.gradients(first, w)
    end = gc.identity(second, name="end")
    before = gc.Session().run(end, FEEDS)
    while gc.expand_inline_functions(gc.InstantiatedFunctions(graph.library), graph):
        pass
    assert not any(node.op in {"SymbolicGradient", "Outer", "Product"} for node in graph.nodes)
    np.testing.assert_allclose(gc.Session().run(end, FEEDS), before)


NORM = """Norm(x:float, s:float, o:float, m:float, v:float) -> (y:float, mean:float) {
  n = FusedBatchNormV3[T=float, U=float](x, s, o, m, v)
  return y = n:y:0
  return mean = n:batch_mean:0
}"""
AROUND = """Around(x:float, s:float, o:float, m:float, v:float) -> (y:float, mean:float) {
  n = Norm(x, s, o, m, v)
  return y = n:y:0
  return mean = n:mean:0
}"""


@pytest.mark.parametrize("simplify", [True, False], ids=["simplified", "plain"])
@pytest.mark.parametrize("name", ["Norm", "Around"])
def test_a_gradient_at_a_statistic_within_a_function_is_dropped_as_in_tensorflow(name: str, simplify: bool, graph: gc.Graph) -> None:
    for text in (NORM, AROUND):
        graph.library.add_function_def(gc.parse_function(text))
    numbers = np.random.default_rng(1)
    inputs = [gc.constant(numbers.random(shape, np.float32)) for shape in ((2, 2, 2, 3), *[(3,)] * 4)]
    y, mean = graph.apply_op(name, inputs).outputs
    loss = gc.reduce_sum(y * y * y)
    found, expected = [gc.gradients(loss, inputs[:3], simplify=plain) for plain in (simplify, True)]
    with gc.Session() as session:
        for value, other in zip(*session.run([found, expected]), strict=True):
            np.testing.assert_allclose(value, other, rtol=1e-6)
            assert np.abs(value).max() > 0
    beside = gc.gradients(loss + gc.reduce_sum(mean), inputs[:3], simplify=simplify)
    with gc.Session() as session:
        for value, other in zip(*session.run([beside, expected]), strict=True):
            np.testing.assert_allclose(value, other, rtol=1e-6)
