"""Strided slices: TensorFlow's answers as rows, NumPy's as a property."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcore.dtypes import float32
from graphcore.inference import ShapeAndType
from graphcore.inference.shape_fns.common_shape_fns import SliceSpec, strided_slice, strided_slice_grad_shape, strided_slice_shape
from tests.support.shape_rows import assert_row, context, infer, refusal, shape

MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def masks(**given: int) -> dict[str, object]:
    return {name: given.get(name.removesuffix("_mask"), 0) for name in MASKS}


def row(given: str, expected: str, start: list[int] | None, stop: list[int] | None, strides: list[int] | None, **bits: int) -> Any:
    count = len(strides or start or [0])
    inputs = f"{given};[{count}];[{count}];[{count}]"
    return pytest.param(inputs, expected, (None, start, stop, strides), masks(**bits), id=f"S6 {given} {start}:{stop}:{strides} {bits}")


@pytest.mark.parametrize(
    ("inputs", "expected", "values", "attrs"),
    [
        row("[5,6]", "[2,6]", [1], [3], [1]),
        row("[?]", "[?]", [2], [4], [1]),
        row("[?,3]", "[3]", [4], [0], [1], shrink_axis=1),
        row("[2,3]", "[3]", [-1], [0], [2], shrink_axis=1),
        row("[2,3]", "[3]", None, None, [1], shrink_axis=1),
        row("[2,3]", "[?,3]", None, [1], [1]),
        row("[2,3]", "[?,3]", [1], None, [1]),
        row("[2,3]", "[2,3]", None, None, [1], begin=1, end=1),
        row("[2,3]", "?", [0], [1], None),
        row("?", "?", [0], [1], [1]),
        row("[2,3,4,5]", "[2,3,4,2]", [0, 1], [0, 3], [1, 1], ellipsis=1),
        row("[2,3,4,5]", "[1,3,4,2]", [0, 0, 1], [1, 0, 3], [1, 1, 1], ellipsis=2),
        row("[2,3,4,5]", "[2,3,4,1,2]", [0, 0, 1], [1, 0, 3], [1, 1, 1], ellipsis=1, new_axis=2),
        row("[2,3]", "[1,1,3]", [0, 0], [0, 1], [1, 1], new_axis=1),
        row("[2,3]", "[1,1,3]", [0, 0], [0, 1], [1, 1], new_axis=1, shrink_axis=1),
        row("[]", "[1]", [0], [1], [1], new_axis=1),
        row("[5]", "[4]", [10], [0], [-1]),
        row("[5]", "[3]", [10], [0], [-2], begin=1, end=1),
        row("[5]", "[0]", [3], [1], [1]),
    ],
)
def test_the_output_has_the_expected_shape(inputs: str, expected: str, values: tuple[object, ...], attrs: dict[str, object]) -> None:
    assert_row(infer(strided_slice_shape, inputs, values=values, attrs=attrs), expected)


@pytest.mark.parametrize(
    ("inputs", "text", "values", "attrs"),
    [
        row("[2,3]", "slice index 4 of dimension 0 out of bounds.", [4], [0], [1], shrink_axis=1),
        row("[2,3]", "slice index -3 of dimension 0 out of bounds.", [-3], [0], [1], shrink_axis=1),
        row("[2,3]", "only stride 1 allowed on non-range indexing.", None, None, [-1], shrink_axis=1),
        row("[2,3]", "Index out of range using input dim 2; input has only 2 dims", [0, 0, 0], [1, 1, 1], [1, 1, 1]),
        row("[2,3]", "strides[0] must be non-zero", [0], [1], [0]),
        row("[2,3]", "Multiple ellipses in slice spec not allowed", [0, 0], [1, 1], [1, 1], ellipsis=3),
        row("[]", "Attempting to slice scalar input.", [0], [1], [1]),
    ],
)
def test_misfits_are_refused(inputs: str, text: str, values: tuple[object, ...], attrs: dict[str, object]) -> None:
    assert text in refusal(strided_slice_shape, inputs, values=values, attrs=attrs)


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        ("[2,3];[2];[1];[2]", "Dimension 0 in both shapes must be equal, but are 2 and 1"),
        ("[2,3];[2];[2];[2,1]", "Shape must be rank 1 but is rank 2"),
    ],
)
def test_begin_end_and_strides_are_vectors_of_one_length(inputs: str, text: str) -> None:
    assert text in refusal(strided_slice_shape, inputs, attrs=masks())


def test_vectors_of_unknown_length_leave_the_shape_unknown() -> None:
    assert_row(infer(strided_slice_shape, "[2,3];[?];?;[?]", attrs=masks()), "?")


def test_the_gradient_has_the_shape_in_its_first_input() -> None:
    assert_row(infer(strided_slice_grad_shape, "[2];[1];[1];[1];?", values=([4, 5],)), "[4,5]")


def test_slices_of_handles_keep_the_handle_data() -> None:
    c = context("[3];[1];[1];[1]", values=(None, [0], [1], [1]), attrs=masks())
    data = [ShapeAndType(shape("[2]"), float32)]
    c.set_input_handle_shapes_and_types(0, data)
    c.run(strided_slice_shape)
    assert c.output_handle_shapes_and_types(0) == data


@st.composite
def specs(draw: st.DrawFn) -> tuple[tuple[int, ...], SliceSpec, tuple[object, ...]]:
    """A shape, a specification, and the equivalent NumPy index."""
    dims = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    ellipsis_at = draw(st.none() | st.integers(0, len(dims)))
    taken = draw(st.integers(0, len(dims)))
    index: list[object] = []
    entries: list[tuple[int, int, int]] = []
    bits = dict.fromkeys(("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0)
    kinds = ["take"] * taken + ["new"] * draw(st.integers(0, 2))
    kinds = draw(st.permutations(kinds))
    position = 0
    for at, kind in enumerate([*kinds, "stop"]):
        bit = 1 << len(entries)
        if ellipsis_at is not None and at == min(ellipsis_at, len(kinds)):
            bits["ellipsis_mask"] |= bit
            entries.append((0, 0, 1))
            index.append(...)
            position = len(dims) - kinds[at:].count("take")
            bit <<= 1
        if kind == "new":
            bits["new_axis_mask"] |= bit
            entries.append((0, 0, 1))
            index.append(None)
        elif kind == "take":
            size = dims[position]
            position += 1
            if draw(st.booleans()):
                single = draw(st.integers(-size, size - 1))
                bits["shrink_axis_mask"] |= bit
                entries.append((single, single + 1, 1))
                index.append(single)
                continue
            begin, end = draw(st.none() | st.integers(-6, 6)), draw(st.none() | st.integers(-6, 6))
            stride = draw(st.sampled_from([1, 2, -1, -3]))
            bits["begin_mask"] |= bit if begin is None else 0
            bits["end_mask"] |= bit if end is None else 0
            entries.append((begin or 0, end or 0, stride))
            index.append(slice(begin, end, stride))
    columns = [[entry[i] for entry in entries] for i in range(3)]
    return dims, SliceSpec(columns[0], columns[1], columns[2], **bits), tuple(index)


@given(specs())
def test_a_slice_has_the_shape_that_numpy_gives(drawn: tuple[tuple[int, ...], SliceSpec, tuple[Any, ...]]) -> None:
    dims, spec, index = drawn
    array = np.arange(np.prod(dims)).reshape(dims)
    found = strided_slice(dims, spec)
    assert found.final_shape == array[index].shape
    plain = zip(found.begin, found.end, found.strides, strict=True)
    places = np.ix_(*[np.arange(b, e, s) for b, e, s in plain if b is not None and e is not None])
    np.testing.assert_array_equal(array[places].reshape(found.final_shape), array[index])


@given(specs(), st.data())
def test_the_shape_for_a_partly_known_array_holds_for_the_known_one(
    drawn: tuple[tuple[int, ...], SliceSpec, tuple[Any, ...]], data: st.DataObject
) -> None:
    dims, spec, index = drawn
    partly = [size if data.draw(st.booleans()) else -1 for size in dims]
    told = strided_slice(partly, spec).final_shape
    full = np.zeros(dims)[index].shape
    assert len(told) == len(full)
    assert all(a in {-1, b} for a, b in zip(told, full, strict=True))
