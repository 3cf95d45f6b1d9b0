"""Full and partial shapes as values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcore.errors import InvalidArgumentError
from graphcore.shapes import Shape, as_shape, is_valid_shape, validate_sizes

sizes = st.none() | st.integers(0, 5)
shapes = st.none() | st.lists(sizes, max_size=4)

A, B, C, D = Shape([-1, 0, 1]), Shape([1, 0, 1]), Shape([-1, -1, 1]), Shape([1, 0])


def test_a_scalar_has_no_dimensions_and_one_element_s1() -> None:
    scalar = Shape([])
    assert (scalar.rank, scalar.num_elements) == (0, 1)


def test_the_default_has_an_unknown_rank_s2() -> None:
    assert Shape().rank is None
    assert Shape().num_elements == -1


@pytest.mark.parametrize(
    ("begin", "end", "expected"),
    [(0, 3, [7]), (0, -2, [7]), (1, 1, [2, 3, 5, 7]), (2, 1, [2, 3, 5, 7]), (0, -1, []), (-2, -1, [2, 3, 5]), (1, 3, [2, 7])],
)
def test_negative_positions_count_as_index_plus_dims_plus_one_s1(begin: int, end: int, expected: list[int]) -> None:
    assert Shape([2, 3, 5, 7]).remove_dim_range(begin, end) == Shape(expected)


@pytest.mark.parametrize(("begin", "end"), [(0, 5), (-6, 1), (5, 5)])
def test_removing_beyond_the_shape_is_refused_s1(begin: int, end: int) -> None:
    with pytest.raises(InvalidArgumentError, match="Out of range"):
        Shape([2, 3, 5, 7]).remove_dim_range(begin, end)


def test_set_dim_gives_a_copy_s1() -> None:
    shape = Shape([10, 5])
    assert shape.set_dim(0, 20).num_elements == 100
    assert shape.set_dim(-1, None) == Shape([10, None])
    assert shape == Shape([10, 5])


@pytest.mark.parametrize("index", [2, -3])
def test_set_dim_beyond_the_shape_is_refused_s1(index: int) -> None:
    with pytest.raises(InvalidArgumentError, match="Out of range dimension"):
        Shape([10, 5]).set_dim(index, 1)


@pytest.mark.parametrize(
    ("dims", "unknown_rank", "full", "text"),
    [
        pytest.param([2**35, 2**35 + 1], False, True, "more elements than an int64", id="S1 overflow"),
        pytest.param([1] * 255, False, False, "too many dimensions", id="S1 254 dims"),
        pytest.param([1, -1], False, True, r"Shape \[1,\?\] is not fully defined", id="S1 full"),
        pytest.param([], True, True, r"Shape \? is not fully defined", id="S1 full rank"),
        pytest.param([1, 2, 3, 4, -1], False, True, r"Shape \[1,2,3,4,\?\] is not fully defined", id="S6 Const"),
        pytest.param([0, -1, 1000, -2], False, False, r"Shape \[0,\?,1000,-2\] has dimensions with values below -1", id="S2 below -1"),
        pytest.param([1], True, False, r"An unknown shape must not have any dimensions set\.", id="S2 unknown rank"),
    ],
)
def test_what_is_no_shape_is_refused(dims: list[int], unknown_rank: bool, full: bool, text: str) -> None:
    assert not is_valid_shape(dims, unknown_rank, full=full)
    with pytest.raises(InvalidArgumentError, match=text):
        validate_sizes(dims, unknown_rank, full=full)


@pytest.mark.parametrize(
    ("dims", "unknown_rank", "full"), [([], False, True), ([2, 0], False, True), ([7, -1, 2], False, False), ([], True, False)]
)
def test_what_is_a_shape_is_valid(dims: list[int], unknown_rank: bool, full: bool) -> None:
    assert is_valid_shape(dims, unknown_rank, full=full)


@pytest.mark.parametrize("dims", [[2**35, 2**35 + 1], [-2], [1] * 255, ["a"], [1.5j]])
def test_no_value_is_made_of_what_is_no_shape_s1(dims: list[int]) -> None:
    with pytest.raises(InvalidArgumentError):
        Shape(dims)


def test_concatenating_follows_the_rows_s2() -> None:
    shape = Shape([10, 5])
    assert shape.concatenate(shape) == Shape([10, 5, 10, 5])
    assert shape.concatenate(Shape(None)).dims is None
    assert Shape(None).concatenate(shape).dims is None
    assert shape.concatenate(-1) == Shape([10, 5, None])
    assert shape.concatenate(4) == Shape([10, 5, 4])


def test_only_a_full_shape_is_a_tensor_shape_s2() -> None:
    assert Shape([2, 3]).as_tensor_shape() == Shape([2, 3])
    for partial in (Shape(None), Shape([None, 3])):
        assert not partial.is_fully_defined
        with pytest.raises(InvalidArgumentError, match="is not fully defined"):
            partial.as_tensor_shape()


def test_identical_shapes_are_unknown_in_the_same_places_s2() -> None:
    assert Shape([None, 1]).is_identical_to(Shape([-1, 1]))
    assert not Shape([None, 1]).is_identical_to(Shape([2, 1]))
    assert not Shape(None).is_identical_to(Shape([None]))
    assert Shape(None).is_identical_to(Shape(None))


@pytest.mark.parametrize(("other", "expected"), [(B, True), (C, True), (Shape(None), True), (D, False), (Shape([1, 2, 1]), False)])
def test_shapes_are_compatible_unless_known_parts_differ_s2(other: Shape, expected: bool) -> None:
    assert A.is_compatible_with(other) is expected
    assert other.is_compatible_with(A) is expected


def test_merging_fills_in_the_unknown_s2() -> None:
    assert A.merge_with(B) == Shape([1, 0, 1])
    assert A.merge_with(Shape(None)) == A
    assert Shape(None).merge_with(A) == A
    with pytest.raises(InvalidArgumentError, match=r"Incompatible shapes during merge: \[\?,0,1\] and \[1,0\]"):
        A.merge_with(D)


def test_unknown_sizes_are_kept_s2() -> None:
    assert str(Shape([7, -1, 2])) == "[7,?,2]"
    assert str(Shape(None)) == "?"
    assert repr(Shape([7, None])) == "Shape([7, None])"


def test_as_shape_takes_what_people_write() -> None:
    assert as_shape([None, 3]) == as_shape((-1, 3)) == as_shape(Shape([None, 3]))
    assert as_shape(3) == Shape([3])
    assert as_shape(None).dims is None
    with pytest.raises(InvalidArgumentError, match="A shape must be a list of sizes"):
        as_shape(object())


@given(shapes, shapes)
def test_merging_is_symmetric_and_identical_to_either_side_when_known(a: list[int | None] | None, b: list[int | None] | None) -> None:
    first, second = Shape(a), Shape(b)
    if not first.is_compatible_with(second):
        return
    merged = first.merge_with(second)
    assert merged == second.merge_with(first)
    assert merged.is_compatible_with(first)
    assert merged.merge_with(first) == merged


@given(st.lists(st.integers(0, 5), max_size=5), st.integers(-6, 5), st.integers(-6, 5))
def test_removing_a_range_is_cutting_a_list(dims: list[int], begin: int, end: int) -> None:
    rank = len(dims)
    first, last = (i + rank + 1 if i < 0 else i for i in (begin, end))
    if not (0 <= first <= rank and 0 <= last <= rank):
        return
    assert Shape(dims).remove_dim_range(begin, end) == Shape(dims[:first] + dims[max(first, last) :])


def test_names_of_dimensions_are_kept_beside_the_sizes_and_do_not_make_shapes_differ() -> None:
    named = Shape([None, 3]).with_names(("batch", ""))
    assert named.names == ("batch", "")
    assert named == Shape([None, 3])
    assert hash(named) == hash(Shape([None, 3]))
    assert Shape([None, 3]).names == ()
    with pytest.raises(InvalidArgumentError, match=r"Shape \[\?,3\] has 2 dimensions, got 1 names for them: batch"):
        Shape([None, 3]).with_names(("batch",))
