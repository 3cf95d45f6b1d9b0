"""Nodes that can fail do so in both engines; others are left out if only their shape is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import FailedPreconditionError, InvalidArgumentError, UnimplementedError
from tests.graphcore.runtime.loop_graphs import cond, while_loop

ENGINES = pytest.mark.parametrize("engine", ["plan", "dataflow"])
Made = tuple[Any, dict[Any, Any], str]


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def fed(shape: Any = (2,), dtype: gc.DType = gc.float32) -> Any:
    return gc.placeholder(dtype, shape)


def of_nan() -> Made:
    x = fed()
    return gc.ops.check_numerics(x, message="bad", name="fails"), {x: [np.nan, 1]}, "bad : Tensor had NaN values"


def of_nan_passed_on() -> Made:
    x = fed()
    return gc.tanh(gc.exp(gc.ops.check_numerics(x, message="bad", name="fails"))), {x: [np.nan, 1]}, "bad : Tensor had NaN values"


def of_a_missing_row() -> Made:
    x, i = fed(), fed((1,), gc.int32)
    return gc.ops.gather(x, i, name="fails"), {x: [1, 2], i: [9]}, r"indices\[0\] = 9 is not in \[0, 2\)"


def of_a_division() -> Made:
    x = fed(dtype=gc.int32)
    return gc.ops.floor_div(x, x, name="fails"), {x: [0, 1]}, "Integer division by zero"


def of_a_reshape() -> Made:
    x = fed((None,))
    return gc.ops.reshape(x, [3], name="fails"), {x: [1, 2]}, "reshape"


def of_shapes_that_clash() -> Made:
    x, y = fed((None,)), fed((3,))
    return gc.ops.add_v2(x, y, name="fails"), {x: [1, 2], y: [1, 2, 3]}, "broadcast"


def of_an_assertion() -> Made:
    x = fed()
    with gc.control_dependencies([gc.apply_op("Assert", [gc.constant(False), [x]])]):
        return gc.identity(x), {x: [0, 1]}, "assertion failed"


def of_no_value() -> Made:
    return gc.exp(gc.Variable([1.0, 2.0], name="fails")), {}, "uninitialized value"


def of_no_feed() -> Made:
    return gc.exp(gc.placeholder(gc.float32, [2], name="fails")), {}, "You must feed a value for placeholder tensor 'fails'"


FAILING: tuple[Callable[[], Made], ...] = (
    of_nan,
    of_nan_passed_on,
    of_a_missing_row,
    of_a_division,
    of_a_reshape,
    of_shapes_that_clash,
    of_an_assertion,
    of_no_value,
    of_no_feed,
)


def one_more(shape: Any) -> Any:
    return gc.ops.shape(shape) * 2 + 1


WANTED = {"the shape": gc.ops.shape, "the size": gc.ops.size, "what follows from it": one_more}


@ENGINES
@pytest.mark.parametrize("wanted", WANTED)
@pytest.mark.parametrize("make", FAILING, ids=lambda make: make.__name__)
def test_a_failing_node_is_an_error_even_if_only_its_known_shape_is_needed(make: Callable[[], Made], wanted: str, engine: str) -> None:
    """TensorFlow raises these too without its graph optimiser; with it, all but the reshape."""
    y, feeds, text = make()
    with pytest.raises((InvalidArgumentError, FailedPreconditionError), match=text) as caught:
        gc.Session(engine=engine).run(WANTED[wanted](y), feeds)
    assert caught.value.source is not None


@ENGINES
def test_it_is_an_error_in_branches_loops_and_functions_too(engine: str) -> None:
    x, p = fed(dtype=gc.int32), gc.placeholder(gc.bool_, [], name="p")

    def shape_of_quotient(x: Any, *_: Any) -> Any:
        return [gc.ops.shape(gc.ops.floor_div(x, x)) * 2]

    def again(x: Any, i: Any, end: Any) -> Any:
        return [x, i + gc.ops.size(gc.ops.floor_div(x, x)), end]

    in_branch = cond(p, [x], shape_of_quotient, lambda x: [gc.ops.shape(x)])[0]
    in_loop = while_loop(lambda _x, i, end: i < end, again, [x, gc.constant(0), gc.constant(5)])[1]
    in_function: Any = gc.function(lambda x: shape_of_quotient(x)[0])
    session = gc.Session(engine=engine)
    for fetch in (in_branch, in_loop, in_function(x)):
        assert np.sum(session.run(fetch, {x: [1, 1], p: True})) in (4, 6)
        with pytest.raises(InvalidArgumentError, match="Integer division by zero"):
            session.run(fetch, {x: [0, 1], p: True})
    assert session.run(in_branch, {x: [0, 1], p: False}).tolist() == [2]


def test_a_node_that_cannot_fail_does_not_run_if_only_its_known_shape_is_needed() -> None:
    x, y, i = fed((2, 3)), fed((3, 4)), fed((2, 3), gc.int32)
    product = gc.ops.softmax(gc.matmul(gc.tanh(x) * 2.0, y))
    total = gc.reduce_sum(gc.transpose(gc.cast(i + i, gc.float32), [1, 0]), [0])
    plan = gc.Session().plan([gc.ops.shape(product) * 2, gc.ops.shape(total)], {x: None, y: None, i: None})
    assert plan.nodes == []


@pytest.mark.parametrize("op", ["Zeta", "Polygamma", "Atan2", "FloorDiv"])
def test_the_shape_of_a_function_of_two_numbers_is_known_without_computing_it(op: str) -> None:
    x, y = fed((2, 3)), fed((3,))
    plan = gc.Session().plan(gc.ops.shape(gc.apply_op(op, [x, y])), {x: None, y: None})
    assert plan.nodes == []


@ENGINES
@pytest.mark.parametrize("op", ["FloorDiv", "TruncateDiv"])
def test_rounding_the_quotient_of_complex_numbers_is_refused(op: str, engine: str) -> None:
    x = fed(dtype=gc.complex64)
    with pytest.raises(UnimplementedError, match="complex numbers cannot be rounded, got complex64"):
        gc.Session(engine=engine).run(gc.apply_op(op, [x, x]), {x: [1j, 2]})
