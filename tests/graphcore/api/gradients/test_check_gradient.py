"""`gc.check_gradient`: gradients against central differences, with a table of results."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import FailedPreconditionError, InvalidArgumentError

tf: Any = gc


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def wrong_square(factor: float) -> gc.Tensor:
    """x * x with a gradient through one of its two inputs only, times `factor`."""
    x = gc.placeholder(gc.float64, [2, 3], name="x")
    return x * gc.stop_gradient(x) * factor


def test_placeholders_constants_and_variables_pass_where_the_gradient_is_right() -> None:
    x = gc.placeholder(gc.float64, [None, 3], name="x")
    w = gc.Variable(np.linspace(-1, 1, 12).reshape(3, 4), name="W")
    b = gc.constant([1.0, 2.0, 3.0, 4.0], gc.float64, name="b")
    y = gc.softmax(gc.matmul(gc.tanh(x), w) + b)
    with gc.Session() as session:
        session.run(gc.initialize_all_variables())
        check = gc.check_gradient(y, [x, w, b], {x: [[0.1, 0.2, -0.3], [1.0, 0.5, 2.0]]})
    assert check
    assert check.passed
    assert [row.name for row in check.inputs] == ["x:0", "W:0", "b:0"]
    assert [row.shape for row in check.inputs] == [(2, 3), (3, 4), (4,)]
    assert [row.checked for row in check.inputs] == [6, 12, 4]
    assert check.error < 1e-7


def test_a_value_on_the_way_can_be_the_input() -> None:
    x = gc.placeholder(gc.float64, [3], name="x")
    middle = gc.exp(x, name="middle")
    check = gc.check_gradient(gc.square(middle) * x, [middle, x], {x: [0.1, 0.2, 0.3]})
    assert check.passed
    assert check.inputs[0].gradient == pytest.approx(check.inputs[0].difference, rel=1e-6)


def test_a_wrong_gradient_fails_and_the_worst_element_is_shown_with_both_values() -> None:
    y = wrong_square(1.0)
    value = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    check = gc.check_gradient(y, "x:0", {"x:0": value})
    (row,) = check.inputs
    assert not check
    assert not row.passed
    assert row.worst is not None
    assert row.gradient == pytest.approx(row.difference / 2, rel=1e-6)
    assert row.error == pytest.approx(0.5, rel=1e-6)
    heading, columns, line = repr(check).splitlines()
    assert heading == "gradient of mul_1:0 against central differences: FAILED (delta 1e-05, tolerance 1e-05, double)"
    assert columns.split() == ["input", "dtype", "shape", "checked", "error", "worst", "at", "gradient", "difference"]
    assert re.fullmatch(r"  x:0    double  \[2,3\]  6        0\.5    WRONG  \[\d, \d\]    \S+ +\S+", line)


def test_the_table_is_shown_as_html_in_a_notebook() -> None:
    x = gc.placeholder(gc.float64, [], name="x")
    check = gc.check_gradient(x * x, x, {x: 3.0})
    html = check._repr_html_()
    assert html.startswith("<p>gradient of mul:0 against central differences: passed")
    assert html.count("<tr>") == 2
    assert html.count("white-space: nowrap") == 2 * 9, "a number that is broken over two lines cannot be read"


def test_a_gradient_of_none_is_compared_as_zeros() -> None:
    x = gc.placeholder(gc.float64, [2], name="x")
    z = gc.placeholder(gc.float64, [2], name="z")
    cut = gc.stop_gradient(x) + z * 1.0
    check = gc.check_gradient(cut, [x, z], {x: [1.0, 2.0], z: [0.0, 0.0]})
    assert [row.has_gradient for row in check.inputs] == [False, True]
    assert [row.passed for row in check.inputs] == [False, True]
    assert " None " in repr(check)
    unused = gc.placeholder(gc.float64, [2], name="unused")
    assert gc.check_gradient(z * 2.0, unused, {z: [1.0, 2.0], unused: [1.0, 2.0]}).passed


@pytest.mark.parametrize("dtype", [gc.complex64, gc.complex128])
def test_complex_inputs_are_moved_in_both_directions(dtype: gc.DType) -> None:
    z = gc.placeholder(dtype, [2], name="z")
    value = np.array([0.3 + 0.2j, -0.5 + 0.7j])
    assert gc.check_gradient(gc.ops.conj(gc.ops.exp(z)) * z, z, {z: value}).passed
    size = gc.ops.complex_abs(z, Tout=gc.float32 if dtype is gc.complex64 else gc.float64)
    assert gc.check_gradient(size, z, {z: value}).passed
    assert not gc.check_gradient(z * gc.stop_gradient(z), z, {z: value}).passed


def test_a_float_graph_is_checked_in_double_precision_unless_another_is_asked_for() -> None:
    x = gc.placeholder(gc.float32, [2, 3], name="x")
    y = gc.log(gc.softmax(x * gc.constant([[1.0], [2.0]])))
    value = [[0.1, 0.2, 0.3], [1.0, 1.1, 1.2]]
    single = gc.check_gradient(y, x, {x: value}, dtype=gc.float32)
    double = gc.check_gradient(y, x, {x: value})
    assert single.passed
    assert double.passed
    assert (single.dtype, double.dtype) == ("float", "double")
    assert double.error < 1e-6 < single.error
    assert double.inputs[0].dtype == "float"


def test_half_precision_passes_with_its_wide_tolerance() -> None:
    x = gc.placeholder(gc.float16, [4], name="x")
    assert gc.check_gradient(gc.tanh(x), x, {x: [0.1, 0.5, -0.3, 1.0]}).passed


def test_delta_and_tolerance_decide() -> None:
    x = gc.placeholder(gc.float64, [1], name="x")
    y = gc.exp(x)
    coarse = gc.check_gradient(y, x, {x: [1.0]}, delta=0.5, tolerance=1e-9)
    assert coarse.delta == 0.5
    assert coarse.inputs[0].difference == pytest.approx(coarse.inputs[0].gradient * np.sinh(0.5) / 0.5)
    nearly = wrong_square(1.0)
    assert gc.check_gradient(nearly, "x_1:0", {"x_1:0": np.ones((2, 3))}, tolerance=0.6).passed


def test_of_a_large_input_some_elements_are_checked() -> None:
    x = gc.placeholder(gc.float64, [40, 40], name="x")
    check = gc.check_gradient(gc.tanh(x), x, {x: np.zeros((40, 40))}, most_elements=20)
    assert check.passed
    assert "20 of 1,600" in repr(check)


def test_the_graph_and_the_variables_stay_as_they_are(graph: gc.Graph) -> None:
    w = gc.Variable([1.0, 2.0], name="W")
    y = gc.square(w.value())
    names, version = [node.name for node in graph.nodes], graph.version
    with gc.Session() as session:
        session.run(w.initializer)
        assert gc.check_gradient(y, w).passed
        assert session.run(w).tolist() == [1.0, 2.0]
    assert [node.name for node in graph.nodes] == names
    assert graph.version == version


def test_what_is_missing_is_said() -> None:
    x = gc.placeholder(gc.float32, [2], name="x")
    n = gc.placeholder(gc.int32, [2], name="n")
    w = gc.Variable([1.0, 2.0], name="W")
    with pytest.raises(
        InvalidArgumentError, match=r"requires a value for the placeholder 'x' \(float \[2\]\) in feed_dict: 'mul:0' depends"
    ):
        gc.check_gradient(x * w, w)
    with pytest.raises(InvalidArgumentError, match="requires tensors of floating or complex dtype, but 'n:0' is int32"):
        gc.check_gradient(x, n, {x: [1.0, 2.0]})
    with pytest.raises(FailedPreconditionError, match="uninitialized value W"):
        gc.check_gradient(x * w, x, {x: [1.0, 2.0]})
    with pytest.raises(InvalidArgumentError, match="at least one x"):
        gc.check_gradient(x, [])
    with pytest.raises(InvalidArgumentError, match="requires one y, got 2"):
        gc.check_gradient([x, x], x)
    with pytest.raises(InvalidArgumentError, match="delta and a tolerance above 0, got -1"):
        gc.check_gradient(x, x, {x: [1.0, 2.0]}, delta=-1.0)


def test_random_numbers_are_refused_until_they_are_fed() -> None:
    x = gc.placeholder(gc.float64, [2], name="x")
    noise = gc.random_uniform([2], dtype=gc.float64, name="noise")
    y = x * noise
    with pytest.raises(InvalidArgumentError, match=r"feed a value for .*RandomUniform"):
        gc.check_gradient(y, x, {x: [1.0, 2.0]})
    assert gc.check_gradient(y, x, {x: [1.0, 2.0], noise: [0.5, 0.25]}).passed


def test_a_custom_gradient_may_use_what_its_function_has_computed() -> None:
    @tf.custom_gradient  # type: ignore[untyped-decorator]  # it is loaded on demand
    def softened(v: Any) -> Any:
        e = gc.exp(v)
        return gc.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))

    @tf.custom_gradient  # type: ignore[untyped-decorator]  # it is loaded on demand
    def wrong(v: Any) -> Any:
        e = gc.exp(v)
        return gc.log(1 + e), lambda dy: dy * e

    x = gc.constant([1.0, 2.0])
    before = [node.name for node in x.graph.nodes]
    y, other = softened(x), wrong(x)
    nodes = len(x.graph.nodes)
    assert gc.check_gradient(y, x)
    assert not gc.check_gradient(other, x)
    assert len(x.graph.nodes) == nodes > len(before)


def test_right_networks_with_kinks_pass() -> None:
    random = np.random.default_rng(0)
    hidden = gc.constant(random.normal(size=(32, 20)), gc.float32)
    weights = [gc.constant(random.normal(size=(20, 20)) * 0.4, gc.float32) for _ in range(3)]
    for weight in weights:
        hidden = gc.nn.relu(gc.matmul(hidden, weight))
    found = gc.check_gradient(gc.reduce_mean(hidden * hidden), weights)
    assert found
    assert found.dtype == "double"


@pytest.mark.parametrize("function", [gc.nn.relu, gc.ops.relu6, gc.ops.leaky_relu])
def test_at_a_kink_the_gradient_lies_between_both_slopes_and_the_report_says_so(function: Any) -> None:
    x = gc.constant([0.0, 1.0, -1.0])
    found = gc.check_gradient(function(x), x)
    assert found
    assert found.inputs[0].kinks == 1
    assert "at a kink, where the slope changes at once, as that of relu does at 0" in repr(found)
    assert "at a kink" in found._repr_html_()


def test_a_wrong_gradient_fails_beside_kinks_too() -> None:
    x = gc.constant([0.0, 1.0, -1.0])
    assert not gc.check_gradient(gc.nn.relu(x) + x * gc.stop_gradient(x), x)
