"""Handle data."""

from __future__ import annotations

import pytest

from graphcore.dtypes import DType, float32, float64
from graphcore.inference import (
    ShapeAndType,
)
from tests.support.shape_rows import context, shape


def entry(text: str, dtype: DType | None = float32) -> ShapeAndType:
    return ShapeAndType(shape(text), dtype)


@pytest.mark.parametrize("side", ["input", "output"])
def test_handle_data_is_merged_bit_by_bit(side: str) -> None:
    c = context("[]")
    merge = getattr(c, f"merge_{side}_handle_shapes_and_types")

    def known() -> list[str]:
        data = getattr(c, f"{side}_handle_shapes_and_types")(0)
        return [f"{item.dtype} {item.shape}" for item in data]

    assert getattr(c, f"{side}_handle_shapes_and_types")(0) is None
    assert merge(0, [entry("[?,2]", None), entry("?")])
    assert known() == ["None [?,2]", "float ?"]
    assert not merge(0, [entry("[1,2]")])
    assert merge(0, [entry("[1,?]"), entry("?")])
    assert known() == ["float [1,2]", "float ?"]
    assert not merge(0, [entry("[5,2]"), entry("?")])
    assert known() == ["float [1,2]", "float ?"]
    assert not merge(0, [entry("[1,2]", float64), entry("[7]")])
    assert merge(0, [entry("[5,2]"), entry("[7]")])
    assert known() == ["float [1,2]", "float [7]"]


@pytest.mark.parametrize("side", ["input", "output"])
def test_handle_data_is_relaxed(side: str) -> None:
    c = context("[]")
    relax = getattr(c, f"relax_{side}_handle_shapes_and_merge_types")
    assert relax(0, [entry("[1,2]", None)])
    assert relax(0, [entry("[5,2]")])
    (found,) = getattr(c, f"{side}_handle_shapes_and_types")(0)
    assert (str(found.shape), found.dtype) == ("[?,2]", float32)
    assert not relax(0, [entry("[?,2]", float64)])
    assert not relax(0, [entry("[?,2]"), entry("[]")])
