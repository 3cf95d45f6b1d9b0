"""Values of several tensors, and variables, in branches and loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import graphcore
from graphcore.errors import InvalidArgumentError

gc: Any = graphcore  # its namespaces are found on demand


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def test_a_branch_returns_a_tensor_array_with_its_gradient() -> None:
    x, p = gc.constant([1.0, 2.0]), gc.placeholder(gc.bool_, [])
    array = gc.TensorArray(gc.float32, 2).write(0, x[0] * 2.0)
    y = gc.cond(p, lambda: array.write(1, x[1] * 3.0), lambda: array.write(1, x[0])).stack()
    dx = gc.gradients(y, x)[0]
    with gc.Session() as session:
        assert [value.tolist() for value in session.run([y, dx], {p: True})] == [[2.0, 6.0], [2.0, 3.0]]
        assert [value.tolist() for value in session.run([y, dx], {p: False})] == [[2.0, 1.0], [3.0, 0.0]]


def test_a_loop_writes_to_a_tensor_array_in_branches() -> None:
    def body(i: Any, array: Any) -> Any:
        return i + 1, gc.cond(gc.equal(i % 2, 0), lambda: array.write(i, gc.cast(i, gc.float32)), lambda: array)

    _, array = gc.while_loop(lambda i, _: i < 4, body, [0, gc.TensorArray(gc.float32, 4, element_shape=[])])
    with gc.Session() as session:
        assert session.run(array.stack()).tolist() == [0.0, 0.0, 2.0, 0.0]


def test_the_elements_of_an_array_from_branches_have_the_shape_that_both_allow() -> None:
    p = gc.placeholder(gc.bool_, [])
    array = gc.cond(
        p,
        lambda: gc.TensorArray(gc.float32, 1).write(0, [1.0, 2.0]),
        lambda: gc.TensorArray(gc.float32, 1).write(0, [1.0, 2.0, 3.0]),
    )
    assert str(array.element_shape) == "[?]"
    with gc.Session() as session:
        assert session.run(array.read(0), {p: False}).tolist() == [1.0, 2.0, 3.0]


def test_branches_with_arrays_of_other_dtypes_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"TensorArray of float32.*TensorArray of int32"):
        gc.cond(gc.placeholder(gc.bool_, []), lambda: gc.TensorArray(gc.float32, 1), lambda: gc.TensorArray(gc.int32, 1))


def test_branches_and_loops_take_and_return_sparse_tensors() -> None:
    sparse, p = gc.SparseTensor([[0, 0], [1, 1]], [1.0, 2.0], [2, 2]), gc.placeholder(gc.bool_, [])
    chosen = gc.cond(p, lambda: sparse, lambda: gc.SparseTensor(sparse.indices, sparse.values * 2.0, sparse.dense_shape))
    _, looped = gc.while_loop(
        lambda i, _: i < 3, lambda i, s: (i + 1, gc.SparseTensor(s.indices, s.values * 2.0, s.dense_shape)), [0, sparse]
    )
    assert isinstance(chosen, gc.SparseTensor)
    with gc.Session() as session:
        assert session.run(chosen, {p: False}).values.tolist() == [2.0, 4.0]
        assert session.run(looped).values.tolist() == [8.0, 16.0]


def test_the_number_of_values_of_a_sparse_loop_variable_may_change_with_an_invariant() -> None:
    sparse = gc.SparseTensor([[0, 0]], [1.0], [2, 2])

    def body(i: Any, s: Any) -> Any:
        twice = gc.concat([s.values, s.values], 0)
        return i + 1, gc.SparseTensor(gc.concat([s.indices, s.indices], 0), twice, s.dense_shape)

    shapes = [gc.TensorShape([]), gc.TensorShape([None, None])]
    _, looped = gc.while_loop(lambda i, _: i < 2, body, [0, sparse], shape_invariants=shapes)
    with gc.Session() as session:
        assert session.run(looped).values.tolist() == [1.0] * 4


def test_branches_and_loops_take_and_return_slices() -> None:
    slices, p = gc.IndexedSlices(gc.constant([[1.0, 2.0]]), gc.constant([1]), gc.constant([3, 2])), gc.placeholder(gc.bool_, [])
    chosen = gc.cond(p, lambda: slices, lambda: gc.IndexedSlices(slices.values * 2.0, slices.indices, slices.dense_shape))
    _, looped = gc.while_loop(
        lambda i, _: i < 3, lambda i, s: (i + 1, gc.IndexedSlices(s.values * 2.0, s.indices, s.dense_shape)), [0, slices]
    )
    with gc.Session() as session:
        assert session.run(chosen, {p: False}).values.tolist() == [[2.0, 4.0]]
        assert session.run(looped).values.tolist() == [[8.0, 16.0]]


def test_a_variable_made_in_a_body_is_initialised_with_the_others() -> None:
    y = gc.while_loop(lambda i: i < 5, lambda i: i + gc.Variable(lambda: gc.constant(2), use_resource=True), [0])
    z = gc.cond(gc.placeholder_with_default(True, []), lambda: gc.Variable(3.0) * 2.0, lambda: gc.constant(1.0))
    assert [variable.op.name for variable in gc.global_variables()] == ["while/Variable", "cond/Variable"]
    with gc.Session() as session:
        session.run(gc.global_variables_initializer())
        assert session.run([y, z]) == [6, 6.0]


def test_a_metric_in_a_branch_counts_only_what_comes_there() -> None:
    p, x = gc.placeholder(gc.bool_, []), gc.placeholder(gc.float32, [])
    y = gc.cond(p, lambda: gc.metrics.mean(x)[1], lambda: gc.constant(-1.0))
    with gc.Session() as session:
        session.run(gc.local_variables_initializer())
        assert [session.run(y, {p: a, x: b}) for a, b in ((True, 2.0), (False, 9.0), (True, 4.0))] == [2.0, -1.0, 3.0]


def test_an_initial_value_from_inside_a_body_is_refused_with_the_way_out() -> None:
    with pytest.raises(InvalidArgumentError, match=r"Initializer for variable 'while/Variable' is from inside the body of loop 'while'"):
        gc.while_loop(lambda i: i < 5, lambda i: i + gc.Variable(gc.constant(1)), [0])
    assert gc.global_variables() == []


def test_the_variables_of_the_graph_are_there_within_a_body() -> None:
    variable, seen = gc.Variable(1.0), []

    def branch() -> Any:
        seen.extend(gc.trainable_variables())
        return gc.constant(1.0)

    gc.cond(gc.placeholder(gc.bool_, []), branch, lambda: gc.constant(0.0))
    assert seen == [variable]


@pytest.mark.parametrize(("shape", "fed"), [([None], [False]), (None, [False]), ([2], [True, False])])
def test_a_condition_that_is_no_scalar_is_refused(shape: Any, fed: list[bool]) -> None:
    p = gc.placeholder(gc.bool_, shape)

    def choose() -> Any:
        with gc.Session() as session:
            return session.run(gc.cond(p, lambda: gc.constant(1), lambda: gc.constant(2)), {p: fed})

    with pytest.raises(InvalidArgumentError, match=r"rank 0 but is rank 1|not compatible with expected shape \[\]"):
        choose()


def test_a_condition_of_unknown_rank_may_be_fed_a_scalar() -> None:
    p = gc.placeholder(gc.bool_)
    y = gc.cond(p, lambda: gc.constant(1), lambda: gc.constant(2))
    with gc.Session() as session:
        assert [session.run(y, {p: value}) for value in (True, False)] == [1, 2]


def test_the_condition_of_a_loop_must_be_a_scalar_at_run_time() -> None:
    sizes = gc.placeholder(gc.int32)
    y = gc.while_loop(lambda i: gc.reshape(i < 3, sizes), lambda i: i + 1, [0])
    with gc.Session() as session:
        assert session.run(y, {sizes: np.zeros([0], np.int32)}) == 3
        with pytest.raises(InvalidArgumentError, match=r"not compatible with expected shape \[\]"):
            session.run(y, {sizes: [1]})


def test_a_tensor_of_a_body_is_refused_outside_with_the_place_where_it_is() -> None:
    kept: list[Any] = []

    def body(i: Any) -> Any:
        kept.append(i * 2)
        return i + 1

    r = gc.while_loop(lambda i: i < 3, body, [0])

    def branch() -> Any:
        kept.append(gc.constant(1.0) * 2.0)
        return kept[1]

    gc.cond(gc.placeholder(gc.bool_, []), branch, lambda: gc.constant(0.0))
    with gc.Session() as session, pytest.raises(InvalidArgumentError, match="is inside the body of loop 'while', and has no value outside"):
        session.run(kept[0])
    uses: list[Callable[[], Any]] = [lambda: kept[0] + r, lambda: r + kept[0], lambda: -kept[0], lambda: gc.add(r, kept[0])]
    for use in uses:
        with pytest.raises(InvalidArgumentError, match="is inside the body of loop 'while'"):
            use()
    with pytest.raises(InvalidArgumentError, match="is inside branch 'true' of 'cond'"):
        gc.identity(kept[1])
