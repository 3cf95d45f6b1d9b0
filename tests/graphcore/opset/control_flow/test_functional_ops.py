"""If, Case, While and MapAccumulate as ops: truth values, branch indices, errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import InvalidArgumentError, NotFoundError

FUNCTIONS = {
    "Twice": "(x:float) -> (y:float) {\n  y = Add[T=float](x, x)\n}",
    "Squared": "(x:float) -> (y:float) {\n  y = Square[T=float](x)\n}",
    "Whole": "(x:int32) -> (y:int32) {\n  y = Neg[T=int32](x)\n}",
    "Both": "(x:float) -> (y:float, z:float) {\n  y = Add[T=float](x, x)\n  z = Square[T=float](x)\n}",
    "RankOf": "(x:float) -> (y:int32) {\n  y = Rank[T=float](x)\n}",
    "Joined": "(x:float) -> (y:float) {\n  zero = Const[dtype=int32, value=Tensor<type: int32 shape: [] values: 0>]()\n"
    "  y = ConcatV2[N=2, T=float, Tidx=int32](x, x, zero)\n}",
    "Short": "(x:float) -> (y:bool) {\n  four = Const[dtype=int32, value=Tensor<type: int32 shape: [] values: 4>]()\n"
    "  size = Size[T=float](x)\n  y = Less[T=int32](size, four)\n}",
}


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        for name, text in FUNCTIONS.items():
            graph.library.add_function_def(gc.define_function(name + text))
        yield graph


def run(node: Any, feed: dict[Any, Any] | None = None) -> Any:
    return gc.Session().run(node.outputs, feed)


def if_node(cond: Any, x: Any, then: str = "Twice", otherwise: str = "Squared", **attrs: Any) -> Any:
    given = {"Tout": [gc.float32], "then_branch": gc.Func(then), "else_branch": gc.Func(otherwise), **attrs}
    return gc.get_default_graph().apply_op("If", [cond, [x]], given, "if")


@pytest.mark.parametrize("dtype", [gc.float32, gc.float64, gc.int32, gc.uint8, gc.int16, gc.int8, gc.int64])
def test_a_number_is_true_if_it_is_not_zero(dtype: gc.DType) -> None:
    for number, expected in ((0, 9.0), (1, 6.0), (7, 6.0)):
        assert run(if_node(gc.constant(number, dtype), 3.0)) == [expected]
    assert run(if_node(gc.constant(np.zeros(2, dtype.as_numpy)), 3.0)) == [6.0], "what is no scalar is true if it has elements"
    assert run(if_node(gc.constant(np.zeros([2, 0], dtype.as_numpy)), 3.0)) == [9.0]


def test_other_numbers_cannot_be_conditions() -> None:
    for dtype, name in ((gc.complex64, "complex64"), (gc.uint16, "uint16"), (gc.half, "half")):
        with pytest.raises(InvalidArgumentError, match=f"{name} cannot be converted to a boolean"):
            run(if_node(gc.constant(np.ones([], dtype.as_numpy)), 3.0))


@pytest.mark.parametrize(("condition", "expected"), [(b"", 9.0), (b"x", 6.0), ([b""], 6.0)])
def test_a_string_is_true_if_it_is_not_empty(condition: Any, expected: float) -> None:
    assert run(if_node(gc.constant(condition), 3.0)) == [expected]
    place = gc.placeholder(gc.string, name="text")
    assert run(if_node(place, 3.0), {place: condition}) == [expected]


def test_the_shapes_that_an_attr_declares_count(graph: gc.Graph) -> None:
    assert if_node(True, gc.placeholder(gc.float32, [2, 3])).outputs[0].shape == gc.Shape([2, 3])
    assert if_node(True, gc.placeholder(gc.float32), output_shapes=[gc.Shape([4, None])]).outputs[0].shape == gc.Shape([4, None])
    with pytest.raises(InvalidArgumentError, match=r"`output_shapes` must be the same length as num outputs \(2 vs. 1"):
        if_node(True, 1.0, output_shapes=[gc.Shape([]), gc.Shape([])])
    assert graph.find("if_2") is None


@pytest.mark.parametrize(
    ("then", "text"),
    [
        ("Whole", r"Function Whole, which 'if' \(op If\) calls: Expects arg\[0\] to be int32 but float is provided"),
        ("Both", r"Expects 1 return values, but 2 is provided"),
        ("RankOf", r"Expects ret\[0\] to be float, but int32 is provided."),
    ],
)
def test_a_branch_that_does_not_fit_is_refused(then: str, text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=text):
        run(if_node(True, gc.placeholder(gc.float32, name="x"), then=then), {"x:0": 1.0})


def test_a_branch_that_is_missing_is_named() -> None:
    with pytest.raises(NotFoundError, match=r"Function Nothing is not defined\."):
        run(if_node(True, 1.0, then="Nothing"))


def test_a_case_requires_a_scalar(graph: gc.Graph) -> None:
    index = gc.placeholder(gc.int32, name="i")
    attrs = {"Tout": [gc.float32], "branches": [gc.Func("Twice")]}
    node = graph.apply_op("Case", [index, [gc.constant(1.0)]], attrs)
    with pytest.raises(InvalidArgumentError, match="branch_index must be a scalar"):
        run(node, {index: [0]})


def while_node(x: Any, cond: str = "Short", body: str = "Joined", **attrs: Any) -> Any:
    given = {"cond": gc.Func(cond), "body": gc.Func(body), **attrs}
    return gc.get_default_graph().apply_op("While", [[x]], given, "while")


def test_growing_loop_variables_have_unknown_sizes() -> None:
    node = while_node(gc.constant([1.0, 2.0]))
    assert node.outputs[0].shape == gc.Shape([None])
    assert run(node)[0].tolist() == [1, 2, 1, 2]


def test_the_condition_of_a_while_gives_one_value_of_any_type() -> None:
    assert run(while_node(gc.constant(3.0), cond="RankOf", body="Twice")) == [3.0], "the rank of a scalar is 0"
    with pytest.raises(InvalidArgumentError, match=r"Expected a single scalar which can be converted to a boolean, got 2 tensors\."):
        run(while_node(gc.constant(3.0), cond="Both", body="Twice"))


def test_a_body_that_gives_something_else_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"calls: Expects ret\[0\] to be float, but int32 is provided."):
        run(while_node(gc.constant([1.0]), body="RankOf"))


def test_map_accumulate_goes_along_the_rows() -> None:
    step = "Weighted(w:float, x:float, u:float) -> (y:float) {\n  wx = Mul[T=float](w, x)\n  y = Add[T=float](wx, u)\n}"
    gc.get_default_graph().library.add_function_def(gc.define_function(step))
    w, xs, u = gc.constant(2.0), gc.constant([[1.0], [2.0], [3.0]]), gc.constant([10.0])
    attrs = {"f": gc.Func("Weighted"), "K": 1}
    y = gc.get_default_graph().apply_op("MapAccumulate", [[w], xs, u], attrs).outputs[0]
    assert y.shape == gc.Shape([3, 1])
    gradients = gc.gradients(y, [w, xs, u])
    values = gc.Session().run([y, *gradients])
    assert values[0].tolist() == [[12], [16], [22]]
    assert [np.asarray(value).tolist() for value in values[1:]] == [3 * 1 + 2 * 2 + 3.0, [[6], [4], [2]], [3]]
    none = gc.get_default_graph().apply_op("MapAccumulate", [[w], gc.zeros([0, 1]), u], attrs).outputs[0]
    assert gc.Session().run(none).shape == (0, 1)


_CURVED = """Curved(w:double, x:double, u:double) -> (y:double) {
  wx = Mul[T=double](w, x)
  wxu = Mul[T=double](wx, u)
  t = Tanh[T=double](wxu)
  y = Add[T=double](t, u)
}"""


def mapped(w: gc.Tensor, xs: gc.Tensor, u: gc.Tensor) -> gc.Tensor:
    library = gc.get_default_graph().library
    if "Curved" not in library:
        library.add_function_def(gc.define_function(_CURVED))
    attrs = {"f": gc.Func("Curved"), "K": 1}
    return gc.get_default_graph().apply_op("MapAccumulate", [[w], xs, u], attrs).outputs[0]


@pytest.mark.slow
@pytest.mark.sweep
@pytest.mark.parametrize("rows", [3, 1, 0, None])
@pytest.mark.parametrize("times", [2, 3])
def test_map_accumulate_has_higher_derivatives(rows: int | None, times: int) -> None:
    random = np.random.default_rng(0)
    values = [random.uniform(0.5, 1.5, shape) for shape in ([2], [3 if rows is None else rows, 2], [2])]
    places = [gc.placeholder(gc.float64, shape) for shape in ([2], [rows, 2], [2])]
    y = gc.reduce_sum(gc.square(mapped(*places)))
    for _ in range(times - 1):
        found = gc.gradients(y, places)
        y = gc.add_n([gc.reduce_sum(gc.square(gradient)) for gradient in found])
    checked = gc.check_gradient(y, places, dict(zip(places, values, strict=True)))
    assert checked.passed, checked


def test_a_function_with_a_map_accumulate_has_a_second_derivative() -> None:
    @gc.function
    def curve(w: gc.Tensor, xs: gc.Tensor) -> gc.Tensor:
        return mapped(w, xs, w * 0.5)

    w, xs = gc.placeholder(gc.float64, [2], name="w"), gc.constant([[0.5, 1.0], [0.7, -0.3]], gc.float64)
    (first,) = gc.gradients(curve(w, xs), w)
    assert gc.check_gradient(gc.reduce_sum(gc.square(first)), w, {w: [0.8, 1.1]}).passed
