"""Lists of tensors, and lists of such lists."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import graphcore as gc


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def empty(dtype: gc.DType) -> gc.Tensor:
    handle: gc.Tensor = gc.ops.empty_tensor_list(gc.constant(-1), gc.constant(-1), dtype)
    return handle


def list_of_lists(*values: list[gc.Tensor]) -> gc.Tensor:
    outer = empty(gc.variant)
    for items in values:
        inner = empty(gc.float64)
        for item in items:
            inner = gc.ops.tensor_list_push_back(inner, item)
        outer = gc.ops.tensor_list_push_back(outer, inner)
    return outer


def first_of_last(outer: gc.Tensor) -> gc.Tensor:
    _, inner = gc.ops.tensor_list_pop_back(outer, gc.constant(-1), gc.variant)
    item: gc.Tensor = gc.ops.tensor_list_get_item(inner, gc.constant(0), gc.constant(-1), gc.float64)
    return item


def test_zeros_like_a_list_of_lists_are_lists_of_zeros() -> None:
    one = gc.constant(np.ones(2))
    with gc.Session() as session:
        zeros = session.run(first_of_last(gc.zeros_like(list_of_lists([one], [one, one]))))
    np.testing.assert_array_equal(zeros, [0.0, 0.0])


def test_lists_of_lists_are_added_element_by_element() -> None:
    one, two = gc.constant(np.ones(2)), gc.constant(np.full(2, 2.0))
    both = gc.ops.add_n([list_of_lists([one], [two]), list_of_lists([two], [two])])
    with gc.Session() as session:
        np.testing.assert_array_equal(session.run(first_of_last(both)), [4.0, 4.0])


def test_a_list_that_was_made_longer_twice_holds_in_each_case_what_was_added() -> None:
    one, two = gc.constant(1.0, gc.float64), gc.constant(2.0, gc.float64)
    start = gc.ops.tensor_list_push_back(empty(gc.float64), one)
    ends = [gc.ops.tensor_list_push_back(start, item) for item in (one, two, one)]
    lasts = [gc.ops.tensor_list_pop_back(end, gc.constant(-1), gc.float64)[1] for end in ends]
    with gc.Session() as session:
        assert session.run(lasts) == [1.0, 2.0, 1.0]
