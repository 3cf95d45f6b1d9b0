"""`x[...]` of tensors and variables accepts NumPy's indices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphcore as gc
from graphcore.errors import InvalidArgumentError


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


X = np.arange(2 * 3 * 4, dtype=np.float32).reshape(2, 3, 4)


def entries(size: int) -> st.SearchStrategy[Any]:
    bound = st.none() | st.integers(-size - 2, size + 2)
    return st.integers(-size, size - 1) | st.builds(slice, bound, bound, st.none() | st.integers(-3, 3).filter(bool))


@st.composite
def keys(draw: st.DrawFn) -> tuple[Any, ...]:
    """Entries for the first dimensions and, after `...`, for the last; new axes anywhere."""
    first = draw(st.integers(0, 3))
    last = draw(st.integers(0, 3 - first))
    sizes = X.shape
    key = [draw(entries(sizes[i])) for i in range(first)]
    if last or draw(st.booleans()):
        key += [..., *[draw(entries(sizes[i])) for i in range(3 - last, 3)]]
    for _ in range(draw(st.integers(0, 2))):
        key.insert(draw(st.integers(0, len(key))), None)
    return tuple(key)


@given(keys(), st.booleans())
def test_a_part_is_what_numpy_takes(key: tuple[Any, ...], known: bool) -> None:
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, X.shape if known else None)
        part = x[key]
    want = X[key]
    assert part.shape.rank is None or part.shape.as_list() == list(want.shape)
    np.testing.assert_array_equal(gc.Session(graph=graph).run(part, {x: X}), want)


@pytest.mark.parametrize("key", [1, slice(1, None), ..., None, np.int64(-1), slice(np.int32(0), 2)])
def test_one_entry_needs_no_tuple(key: Any) -> None:
    part = gc.constant(X)[key]
    assert part.op.op == "StridedSlice"
    assert part.op.name == "strided_slice"
    np.testing.assert_array_equal(gc.Session().run(part), X[key])


@pytest.mark.parametrize("dtype", [gc.int32, gc.int64])
def test_scalar_tensors_are_entries(dtype: Any) -> None:
    x = gc.constant(X)
    i, j = gc.placeholder(dtype, []), gc.placeholder(gc.int32, [])
    parts = [x[i], x[:, i:, j], x[..., j], x[i, ::j], x[j : i + 1] if dtype is gc.int32 else x[j:i]]
    values = gc.Session().run(parts, {i: 1, j: 2})
    wanted = [X[1], X[:, 1:, 2], X[..., 2], X[1, ::2], X[2:2] if dtype is gc.int32 else X[2:1]]
    for value, want in zip(values, wanted, strict=True):
        np.testing.assert_array_equal(value, want)
    assert parts[0].shape.as_list() == [3, 4]


def test_a_variable_is_sliced_by_its_value() -> None:
    v = gc.Variable(X, name="v")
    session = gc.Session()
    session.run(v.initializer)
    np.testing.assert_array_equal(session.run(v[1, :, ::-1]), X[1, :, ::-1])
    with pytest.raises(InvalidArgumentError, match="cannot be iterated"):
        iter(v)


def test_the_gradient_by_a_part_is_zero_elsewhere() -> None:
    x = gc.placeholder(gc.float32, X.shape)
    (dx,) = gc.gradients(gc.reduce_sum(gc.square(x[1, :2])), [x])
    want = np.zeros_like(X)
    want[1, :2] = 2 * X[1, :2]
    np.testing.assert_array_equal(gc.Session().run(dx, {x: X}), want)


def test_a_part_within_a_function_is_in_its_body() -> None:
    @gc.function
    def last(x: gc.Tensor) -> gc.Tensor:
        return x[..., -1]

    part = last(gc.constant(X))
    assert [node.op for node in gc.get_default_graph().nodes] == ["Const", "last"]
    np.testing.assert_array_equal(gc.Session().run(part), X[..., -1])


@pytest.mark.parametrize(
    ("key", "what"),
    [
        ("a", r"entry 0 is 'a' \(str\)"),
        ((0, 1.5), r"entry 1 is 1.5 \(float\)"),
        (True, "entry 0 is True"),
        ([0, 1], r"entry 0 is \[0, 1\] \(list\).*gather_v2"),
        ((..., 0, ...), r"entry 2 is a second '\.\.\.'"),
        (1 << 63, "more than 64 bits"),
        (2, "slice index 2 of dimension 0 out of bounds"),
        ((0, 0, 0, 0), "input has only 3 dims"),
        (slice(None, None, 0), "must be non-zero"),
    ],
)
def test_what_is_no_index_is_refused_and_leaves_nothing(key: Any, what: str) -> None:
    x = gc.constant(X, name="x")
    before = [node.name for node in gc.get_default_graph().op_nodes()]
    with pytest.raises(InvalidArgumentError, match=what):
        x[key]
    assert [node.name for node in gc.get_default_graph().op_nodes()] == before


def test_a_tensor_that_is_no_index_is_refused_and_leaves_nothing() -> None:
    x, i = gc.constant(X, name="x"), gc.placeholder(gc.int32, [], name="i")
    before = [node.name for node in gc.get_default_graph().op_nodes()]
    for key in (x, (i, gc.get_default_graph().get_tensor_by_name("x:0")), (i, i, i, i)):
        with pytest.raises(InvalidArgumentError):
            x[key]
    assert [node.name for node in gc.get_default_graph().op_nodes()] == before
