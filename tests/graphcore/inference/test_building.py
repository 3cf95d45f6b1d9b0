"""Shapes built from shapes and from values."""

from __future__ import annotations

import numpy as np
import pytest

from graphcore.errors import InvalidArgumentError
from tests.support.shape_rows import assert_handle, context

# ---- building


def test_a_subshape_of_all_dimensions_is_the_handle_itself() -> None:
    c = context("?;[1,2,3,?,5]")
    unknown, five = c.inputs
    assert c.subshape(unknown, 0) is unknown
    assert_handle(c, c.subshape(unknown, 1), "?")
    assert_handle(c, c.subshape(unknown, 0, 3), "?")
    for end in (None, 5, 200):
        assert c.subshape(five, 0, end) is five


@pytest.mark.parametrize(
    ("start", "end", "stride", "expected"),
    [
        (1, None, 1, "[d0_1,d0_2,d0_3,d0_4]"),
        (0, -1, 1, "[d0_0,d0_1,d0_2,d0_3]"),
        (-2, None, 1, "[d0_3,d0_4]"),
        (-3, -1, 1, "[d0_2,d0_3]"),
        (5, None, 1, "[]"),
        (9, 200, 1, "[]"),
        (0, 5, 2, "[d0_0,d0_2,d0_4]"),
        (1, None, 2, "[d0_1,d0_3]"),
        (5, 0, -1, "[d0_4,d0_3,d0_2,d0_1]"),
        (3, 0, -2, "[d0_3,d0_1]"),
    ],
)
def test_a_part_of_a_shape_shares_its_dimensions(start: int, end: int | None, stride: int, expected: str) -> None:
    c = context("[1,2,3,?,5]")
    assert_handle(c, c.subshape(c.input(0), start, end, stride), expected)


@pytest.mark.parametrize(
    ("start", "end", "stride", "text"),
    [
        (
            6,
            -3,
            1,
            "Subshape must have computed start <= end, but is 5 and 2 (computed from start 6 and end -3 over shape with rank 5)",
        ),
        (-50, 100, 1, "Subshape start out of bounds: -50, for shape with rank 5"),
        (0, -50, 1, "Subshape end out of bounds: -50, for shape with rank 5"),
        (1, 3, -1, "Subshape must have computed start >= end since stride is negative, but is 1 and 3"),
    ],
)
def test_a_part_outside_the_shape_is_refused(start: int, end: int, stride: int, text: str) -> None:
    c = context("[1,2,3,?,5]")
    with pytest.raises(InvalidArgumentError) as caught:
        c.subshape(c.input(0), start, end, stride)
    assert caught.value.message.startswith(text)


def test_concatenated_shapes_share_their_dimensions() -> None:
    c = context("[1,?];[3];?")
    assert_handle(c, c.concatenate(c.input(0), c.input(1)), "[d0_0,d0_1,d1_0]")
    assert_handle(c, c.concatenate(c.input(0), c.input(2)), "?")
    assert_handle(c, c.concatenate(c.input(2), c.input(0)), "?")


def test_a_dimension_is_replaced_by_position() -> None:
    c = context("[1,2,3];?")
    assert_handle(c, c.replace_dim(c.input(0), 0, c.dim(c.input(0), 1)), "[d0_1,d0_1,d0_2]")
    assert_handle(c, c.replace_dim(c.input(0), -1, 7), "[d0_0,d0_1,7]")
    assert_handle(c, c.replace_dim(c.input(1), 0, 7), "?")
    for index in (3, -4):
        with pytest.raises(InvalidArgumentError, match=f"Out of range dim_index {index} for shape with 3 dimensions"):
            c.replace_dim(c.input(0), index, 7)


def test_made_shapes_have_fresh_dimensions() -> None:
    c = context("[1,2,?,3]")
    d0 = c.dim(c.input(0), 0)
    assert_handle(c, c.make_shape([d0, 7, None, -1]), "[d0_0,7,?,?]")
    assert_handle(c, c.unknown_shape(), "?")
    assert_handle(c, c.unknown_shape_of_rank(2), "[?,?]")
    assert_handle(c, c.unknown_shape_of_rank(-1), "?")
    assert_handle(c, c.scalar(), "[]")
    assert_handle(c, c.vector(-1), "[?]")
    assert_handle(c, c.vector(d0), "[d0_0]")
    assert_handle(c, c.matrix(d0, 5), "[d0_0,5]")
    assert c.make_dim(1) is not c.make_dim(1)
    assert c.make_dim(d0) is d0
    assert c.unknown_dim() is not c.unknown_dim()


def test_the_number_of_elements_is_known_of_full_and_of_empty_shapes() -> None:
    c = context("?;[2,?];[2,0,?];[2,3];[]")
    counts = [c.num_elements(given) for given in c.inputs]
    assert [count.value for count in counts] == [-1, -1, 0, 6, 1]
    assert counts[2] is c.dim(c.input(2), 1)


# ---- values


@pytest.mark.parametrize(
    ("inputs", "value", "expected"),
    [
        ("?", None, "?"),
        ("[?]", None, "?"),
        ("[2]", None, "[?,?]"),
        ("[3]", np.array([3, -1, 1], np.int64), "[3,?,1]"),
        ("[3]", [3, -1, 1], "[3,?,1]"),
        ("[0]", [], "[]"),
    ],
)
def test_a_vector_of_sizes_is_read_as_a_shape(inputs: str, value: object, expected: str) -> None:
    c = context(inputs, values=(value,))
    assert_handle(c, c.make_shape_from_shape_tensor(0), expected)


@pytest.mark.parametrize(
    ("inputs", "value", "text"),
    [
        ("?", np.array([1.0], np.float32), "Input tensor must be int32 or int64, but was float"),
        ("?", 3, "Input tensor must be rank 1, but was rank 0"),
        ("[1,2]", None, "Shape must be rank 1 but is rank 2"),
        ("[2]", [1, -2], "Invalid value in tensor used for shape: -2"),
    ],
)
def test_values_other_than_vectors_of_sizes_are_refused(inputs: str, value: object, text: str) -> None:
    c = context(inputs, values=(value,))
    with pytest.raises(InvalidArgumentError) as caught:
        c.make_shape_from_shape_tensor(0)
    assert caught.value.message == text


def test_a_partly_known_value_is_preferred() -> None:
    c = context("[3]", partial={0: "[3,?,1]"})
    assert_handle(c, c.make_shape_from_shape_tensor(0), "[3,?,1]")


def test_a_scalar_of_minus_one_may_stand_for_an_unknown_shape() -> None:
    c = context("[];[];[];[2]", values=(-1, 3, None, [1, 2]))
    assert_handle(c, c.make_shape_from_shape_tensor_treat_scalar_as_unknown_shape(0), "?")
    assert_handle(c, c.make_shape_from_shape_tensor_treat_scalar_as_unknown_shape(2), "?")
    assert_handle(c, c.make_shape_from_shape_tensor_treat_scalar_as_unknown_shape(3), "[1,2]")
    with pytest.raises(InvalidArgumentError, match=r"it must have value -1 \(representing an unknown shape\)\.  Saw value: 3"):
        c.make_shape_from_shape_tensor_treat_scalar_as_unknown_shape(1)


def test_the_contents_of_a_shape_proto_become_a_handle() -> None:
    c = context("")
    assert_handle(c, c.make_shape_from_shape_proto([0, -1, 1000]), "[0,?,1000]")
    assert_handle(c, c.make_shape_from_shape_proto([], unknown_rank=True), "?")
    with pytest.raises(InvalidArgumentError, match=r"^An unknown shape must not have any dimensions set\.$"):
        c.make_shape_from_shape_proto([0], unknown_rank=True)
    text = r"^Shape \[0,\?,1000,-2\] has dimensions with values below -1 \(where -1 means unknown\)$"
    with pytest.raises(InvalidArgumentError, match=text):
        c.make_shape_from_shape_proto([0, -1, 1000, -2])


def test_a_scalar_input_gives_a_dimension() -> None:
    c = context("[];[];[];[];[1]", values=(20, -1, None, np.float32(3), [1]))
    assert c.make_dim_for_scalar_input(0).value == 20
    assert c.make_dim_for_scalar_input(2).value == -1
    text = "^Dimension size, given by scalar input 1, must be non-negative but is -1$"
    with pytest.raises(InvalidArgumentError, match=text):
        c.make_dim_for_scalar_input(1)
    with pytest.raises(InvalidArgumentError, match=r"^Scalar input must be int32 or int64\.$"):
        c.make_dim_for_scalar_input(3)
    with pytest.raises(InvalidArgumentError, match=r"^Input must be scalar but has rank 1$"):
        c.make_dim_for_scalar_input(4)


@pytest.mark.parametrize(("value", "rank", "expected"), [(1, 3, 1), (-1, 3, 2), (None, 3, -1), (-2, -1, -1), (7, -1, 7)])
def test_a_scalar_input_gives_a_position(value: int | None, rank: int, expected: int) -> None:
    assert context("[]", values=(value,)).make_dim_for_scalar_input_with_negative_indexing(0, rank).value == expected
