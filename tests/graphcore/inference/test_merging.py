"""Required ranks and values, merging, relaxing."""

from __future__ import annotations

import pytest

from graphcore.errors import InvalidArgumentError
from graphcore.inference import (
    DimensionHandle,
)
from tests.support.shape_rows import assert_handle, context, shape


def dim(size: int | None = None) -> DimensionHandle:
    return DimensionHandle(-1 if size is None else size)


# ---- ranks and values


def test_unknown_ranks_and_sizes_are_minus_one() -> None:
    c = context("?;[1,?,3]")
    assert [c.rank(given) for given in c.inputs] == [-1, 3]
    assert [c.value(c.dim(c.input(1), i)) for i in range(3)] == [1, -1, 3]
    assert c.value(c.dim(c.input(0), 7)) == -1
    assert c.value(c.dim(c.input(1), -1)) == 3
    assert not c.rank_known(c.input(0))
    assert c.rank_known(c.input(1))
    assert (c.value_known(c.dim(c.input(1), 0)), c.value_known(c.dim(c.input(1), 1))) == (True, False)
    assert [c.fully_defined(shape(text)) for text in ("?", "[1,?]", "[1,2]", "[]")] == [False, False, True, True]


def test_a_dimension_that_is_not_there_is_refused() -> None:
    c = context("[1,2]")
    with pytest.raises(InvalidArgumentError, match="Out of range dim_index 2 for shape with 2 dimensions"):
        c.dim(c.input(0), 2)


def test_with_rank_makes_distinct_unknown_dimensions_of_an_unknown_shape() -> None:
    c = context("?;[1,?,3]")
    made = c.with_rank(c.input(0), 2)
    assert_handle(c, made, "[?,?]")
    assert made.dims is not None
    assert made.dims[0] is not made.dims[1]
    assert c.merged_shapes == ((c.input(0), made),)
    assert c.with_rank(c.input(1), 3) is c.input(1)
    with pytest.raises(InvalidArgumentError, match=r"^Shape must be rank 2 but is rank 3$"):
        c.with_rank(c.input(1), 2)


def test_bounds_on_the_rank_keep_the_handle() -> None:
    c = context("?;[1,?,3]")
    for given in c.inputs:
        assert c.with_rank_at_most(given, 3) is given
        assert c.with_rank_at_least(given, 3) is given
    with pytest.raises(InvalidArgumentError, match=r"^Shape must be at most rank 2 but is rank 3$"):
        c.with_rank_at_most(c.input(1), 2)
    with pytest.raises(InvalidArgumentError, match=r"^Shape must be at least rank 4 but is rank 3$"):
        c.with_rank_at_least(c.input(1), 4)


def test_with_value_makes_a_known_dimension_of_an_unknown_one() -> None:
    c = context("[1,?]")
    one, unknown = c.dim(c.input(0), 0), c.dim(c.input(0), 1)
    assert c.with_value(one, 1) is one
    made = c.with_value(unknown, 7)
    assert made.value == 7
    assert c.merged_dims == ((unknown, made),)
    with pytest.raises(InvalidArgumentError, match=r"^Dimension must be 0 but is 1$"):
        c.with_value(one, 0)


# ---- merging


def test_merged_dimensions_are_the_known_one_or_the_first() -> None:
    c = context("")
    d2, d2_too, d1, u, u_too = dim(2), dim(2), dim(1), dim(), dim()
    assert c.merge_dim(d2, u) is d2
    assert c.merge_dim(u, d2) is d2
    assert c.merge_dim(u, u_too) is u
    assert c.merge_dim(u, u) is u
    assert c.merge_dim(d2, d2_too) is d2
    assert c.merged_dims == ((d2, u), (u, d2), (u, u_too))
    with pytest.raises(InvalidArgumentError, match=r"^Dimensions must be equal, but are 2 and 1$"):
        c.merge_dim(d2, d1)
    c.forget_merges()
    assert not c.merged_dims


def test_a_merged_shape_is_the_more_specific_one_or_new() -> None:
    c = context("?;?;[1,?];[?,2];[1,2];[?,2]")
    u, u_too, s1u, su2, s12, su2_too = c.inputs
    assert c.merge(u, u_too) is u
    assert c.merge(u, s12) is s12
    assert c.merge(s12, u) is s12
    assert c.merge(s12, s12) is s12
    assert c.merge(su2, s12) is s12
    assert c.merge(s12, su2) is s12
    assert c.merge(su2, su2_too) is su2
    assert len(c.merged_shapes) == 6
    c.forget_merges()
    made = c.merge(su2, s1u)
    assert_handle(c, made, "[d2_0,d3_1|d5_1]")
    assert list(c.merged_shapes) == [(su2, s1u), (su2, made)]
    assert c.merged_dims == ((c.dim(su2, 0), c.dim(s1u, 0)), (c.dim(su2, 1), c.dim(s1u, 1)))


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        ("[?,2]", "[1,3]", "Dimension 1 in both shapes must be equal, but are 2 and 3. Shapes are [?,2] and [1,3]."),
        ("[1]", "[1,3]", "Shapes must be equal rank, but are 1 and 2"),
    ],
)
def test_shapes_that_differ_do_not_merge(first: str, second: str, text: str) -> None:
    c = context(f"{first};{second}")
    with pytest.raises(InvalidArgumentError) as caught:
        c.merge(*c.inputs)
    assert caught.value.message == text
    assert c.merged_shapes == ()


def test_merge_prefix_refines_both() -> None:
    c = context("?;[1,?,3];[?,2];[1,?]")
    unknown, s, prefix, short = c.inputs
    for pair in ((unknown, prefix), (s, unknown)):
        assert c.merge_prefix(*pair) == pair
    refined, refined_prefix = c.merge_prefix(s, prefix)
    assert_handle(c, refined, "[d1_0,d2_1,d1_2]")
    assert_handle(c, refined_prefix, "[d1_0,d2_1]")
    with pytest.raises(InvalidArgumentError, match=r"^Shape must be at least rank 3 but is rank 2$"):
        c.merge_prefix(short, s)


# ---- relaxing


def test_relaxed_dimensions_keep_the_common_part() -> None:
    c = context("")
    d2, d2_too, d1, u, u_too = dim(2), dim(2), dim(1), dim(), dim()
    assert c.relax_dim(d2, u) is u
    made = c.relax_dim(u, d2)
    assert made.value == -1
    assert made is not u
    assert c.relax_dim(u, u_too) is u_too
    assert c.relax_dim(u, u) is u
    assert c.relax_dim(d2, d2_too) is d2
    made = c.relax_dim(d2, d1)
    assert made.value == -1


def test_relaxed_shapes_keep_the_common_part() -> None:
    c = context("?;[1,2];[?,2];[1];[1,2];?")
    unknown, s12, su2, s1, s12_too, unknown_too = c.inputs
    assert c.relax(s12, s12) is s12
    assert c.relax(s12, s12_too) is s12
    assert c.relax(s12, unknown) is unknown
    assert c.relax(unknown, unknown_too) is unknown_too
    assert_handle(c, c.relax(unknown, s12), "?")
    assert_handle(c, c.relax(s12, s1), "?")
    assert_handle(c, c.relax(s12, su2), "[d2_0,d1_1]")
    assert_handle(c, c.relax(su2, s12), "[?,d2_1]")


def test_relaxing_forgets_the_merges() -> None:
    c = context("[?];[1];[2]")
    c.merge(c.input(0), c.input(1))
    c.relax(c.input(1), c.input(2))
    assert c.merged_shapes == ()


def test_inputs_are_merged_and_relaxed_in_place() -> None:
    c = context("[?,2]")
    assert c.merge_input(0, shape("[1,?]"))
    assert str(c.input(0)) == "[1,2]"
    assert not c.merge_input(0, shape("[1,2]"))
    assert not c.merge_input(0, shape("[3]"))
    assert c.relax_input(0, shape("[4,2]"))
    assert str(c.input(0)) == "[?,2]"
    assert not c.relax_input(0, c.input(0))
    other = shape("[7]")
    c.set_input(0, other)
    assert c.input(0) is other
