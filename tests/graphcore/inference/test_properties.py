"""Properties for all shapes: symmetric merging, NumPy's broadcasting, and sound partial knowledge."""

from __future__ import annotations

from string import ascii_lowercase
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcore.errors import InvalidArgumentError
from graphcore.inference import InferenceContext, ShapeHandle, handle_to_shape
from graphcore.inference.shape_fns import common_shape_fns as fns
from tests.support.shape_rows import ShapeFunction, context, infer, shape

sizes = st.integers(0, 3)
full_shapes = st.lists(sizes, max_size=4)
partial_shapes = st.none() | st.lists(st.none() | sizes, max_size=4)


def text(dims: list[int | None] | list[int] | None) -> str:
    return "?" if dims is None else "[" + ",".join(["?" if size is None else str(size) for size in dims]) + "]"


def values(handle: ShapeHandle) -> list[int] | None:
    return None if handle.dims is None else [dim.value for dim in handle.dims]


def merged(c: InferenceContext, first: ShapeHandle, second: ShapeHandle) -> list[int] | str | None:
    try:
        return values(c.merge(first, second))
    except InvalidArgumentError:
        return "refused"


@given(partial_shapes, partial_shapes)
def test_merging_is_symmetric(a: list[int | None] | None, b: list[int | None] | None) -> None:
    c = context(f"{text(a)};{text(b)}")
    assert merged(c, c.input(0), c.input(1)) == merged(c, c.input(1), c.input(0))


@given(partial_shapes, partial_shapes)
def test_relaxing_keeps_only_the_common_part(a: list[int | None] | None, b: list[int | None] | None) -> None:
    c = context(f"{text(a)};{text(b)}")
    relaxed = handle_to_shape(c.relax(c.input(0), c.input(1)))
    assert relaxed.is_compatible_with(handle_to_shape(c.input(0)))
    assert relaxed.is_compatible_with(handle_to_shape(c.input(1)))


@given(full_shapes, full_shapes)
def test_full_shapes_are_broadcast_as_numpy_does(a: list[int], b: list[int]) -> None:
    c = context(f"{text(a)};{text(b)}")
    try:
        expected: object = list(np.broadcast_shapes(tuple(a), tuple(b)))
    except ValueError:
        expected = "refused"
    try:
        c.run(fns.broadcast_binary_op_shape_fn)
        found: object = values(c.output(0))
    except InvalidArgumentError:
        found = "refused"
    assert found == expected


WINDOW = {"padding": "VALID", "strides": [1, 2, 1, 1], "dilations": [1, 1, 1, 1]}
NCHW = {"data_format": "NCHW"}
# A letter in a template is one size, drawn for each example; repeated letters are equal sizes.
RULES: list[tuple[ShapeFunction, str, dict[str, Any]]] = [
    (fns.broadcast_binary_op_shape_fn, "[a,1,b];[c,b]", {}),
    (fns.broadcast_binary_op_shape_fn, "[a,b];[a,b]", {}),
    (fns.add_n_shape, "[a,b];[a,b];[a,b]", {}),
    (fns.merge_both_inputs, "[a,b];[a,b]", {}),
    (fns.select_shape, "[a];[a,b];[a,b]", {}),
    (fns.select_shape, "[a,b];[a,b];[a,b]", {}),
    (fns.select_v2_shape, "[a,1];[b];[a,b]", {}),
    (fns.matmul_shape, "[m,k];[n,k]", {"attrs": {"transpose_a": False, "transpose_b": True}}),
    (fns.batch_matmul_v2_shape, "[a,1,m,k];[b,k,n]", {"attrs": {"adj_x": False, "adj_y": False}}),
    (fns.batch_matmul_shape, "[a,k,m];[a,k,n]", {"attrs": {"adj_x": True, "adj_y": False}}),
    (fns.bias_add_shape, "[a,b,n];[n]", {"attrs": {"data_format": "NHWC"}}),
    (fns.bias_add_shape, "[a,n,b];[n]", {"attrs": NCHW}),
    (fns.bias_add_grad_shape, "[a,n,b]", {"attrs": NCHW}),
    (fns.reduction_shape, "[a,b,c];[2]", {"attrs": {"keep_dims": False}, "values": (None, [0, -1])}),
    (fns.reduction_shape, "[a,b,c];[2]", {"attrs": {"keep_dims": True}, "values": (None, [0, -1])}),
    (fns.arg_op_shape, "[a,b,c];[]", {"values": (None, 1)}),
    (fns.segment_reduction_shape, "[a,b,c];[a]", {}),
    (fns.segment_reduction_with_num_segments_shape, "[a,b,c];[a,b];[]", {"values": (None, None, 2)}),
    (fns.softmax_cross_entropy_shape, "[a,b];[a,b]", {"outputs": 2}),
    (fns.softmax_cross_entropy_shape, "[a,1];[a,b]", {"outputs": 2}),
    (fns.sparse_softmax_cross_entropy_shape, "[a,b];[a]", {"outputs": 2}),
    (fns.pack_shape, "[a,b];[a,b]", {"attrs": {"axis": -1}}),
    (fns.unpack_shape, "[a,2,b]", {"attrs": {"axis": 1}, "outputs": 2}),
    (fns.gather_shape, "[a,b,c];[d,e]", {}),
    (fns.gather_v2_shape, "[a,b,c];[d];[]", {"attrs": {"batch_dims": 0}, "values": (None, None, -1)}),
    (fns.gather_v2_shape, "[a,b,c];[a,d];[]", {"attrs": {"batch_dims": 1}, "values": (None, None, 1)}),
    (fns.gather_nd_shape, "[a,b,c];[d,2]", {}),
    (fns.reshape_shape, "[a,2,b];[2]", {"values": (None, [-1, 2])}),
    (fns.reshape_shape, "[4,3];[3]", {"values": (None, [2, 3, 2])}),
    (fns.transpose_shape, "[a,b,c];[3]", {"values": (None, [2, 0, 1])}),
    (fns.squeeze_shape, "[1,a,1,b]", {"attrs": {"squeeze_dims": []}}),
    (fns.squeeze_shape, "[1,a,1,b]", {"attrs": {"squeeze_dims": [0, -2]}}),
    (fns.expand_dims_shape, "[a,b];[]", {"values": (None, -2)}),
    (fns.concat_shape, "[];[a,b,c];[a,d,c]", {"values": (1,)}),
    (fns.concat_v2_shape, "[a,b];[a,c];[]", {"values": (None, None, -1)}),
    (fns.split_shape, "[];[a,4]", {"values": (1,), "outputs": 2}),
    (fns.split_v_shape, "[a,4];[2];[]", {"values": (None, [1, -1], 1), "outputs": 2}),
    (fns.pad_shape, "[a,b];[2,2]", {"values": (None, [[1, 0], [0, 2]])}),
    (fns.tile_shape, "[a,b];[2]", {"values": (None, [2, 0])}),
    (fns.slice_shape, "[2,3];[2];[2]", {"values": (None, [0, 1], [1, -1])}),
    (fns.broadcast_to_shape, "[1,3];[3]", {"values": (None, [2, 4, 3])}),
    (fns.one_hot_shape, "[a,b];[]", {"attrs": {"axis": 1}, "values": (None, 4)}),
    (fns.fill_shape, "[3];[]", {"values": ([2, 0, 3],)}),
    (fns.range_shape, "[];[];[]", {"values": (2, 100, 3)}),
    (fns.dynamic_stitch_shape, "[a];[2,b];[a,c];[2,b,c]", {}),
    (fns.dynamic_partition_shape, "[a,b,c];[a,b]", {"outputs": 2}),
    (fns.scatter_nd_shape, "[d,1];[d,3];[2]", {"values": (None, None, [4, 3])}),
    (fns.unique_shape, "[a]", {"outputs": 2}),
    (fns.shape_shape, "[a,b]", {}),
    (fns.einsum_shape, "[a,1,m,k];[b,k,n]", {"attrs": {"equation": "...ij,...jk->...ik"}}),
    (fns.top_k_shape, "[a,4];[]", {"values": (None, 1), "outputs": 2}),
    (fns.conv2d_shape, "[a,5,4,b];[2,3,b,c]", {"attrs": WINDOW}),
    (fns.conv2d_shape, "[a,b,5,4];[2,3,b,c]", {"attrs": {**WINDOW, **NCHW, "padding": "SAME"}}),
    (fns.depthwise_conv2d_native_shape, "[a,5,4,b];[2,3,b,c]", {"attrs": {**WINDOW, "dilations": [1, 2, 1, 1]}}),
    (fns.max_pool_shape, "[a,5,4,4]", {"attrs": {**WINDOW, "ksize": [1, 2, 1, 2]}}),
    (fns.fused_batch_norm_shape, "[a,b,c,d];[d];[d];[d];[d]", {"attrs": {"is_training": False}, "outputs": 6}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("function", "template", "rule"), [pytest.param(*rule, id=f"{rule[0].__name__} {rule[1]}") for rule in RULES])
@given(st.data())
def test_less_knowledge_never_gives_a_wrong_shape(
    function: ShapeFunction, template: str, rule: dict[str, Any], data: st.DataObject
) -> None:
    drawn = {letter: str(data.draw(st.integers(1, 5))) for letter in sorted(set(template) & set(ascii_lowercase))}
    full = "".join([drawn.get(letter, letter) for letter in template])
    whole = infer(function, full, **rule)
    hidden = [_partly(handle, data) for handle in context(full).inputs]
    known = [value if data.draw(st.booleans()) else None for value in rule.get("values", ())]
    part = infer(function, ";".join(map(text, hidden)), **{**rule, "values": known})
    for i in range(whole.num_outputs):
        assert handle_to_shape(part.output(i)).is_compatible_with(handle_to_shape(whole.output(i)))


def _partly(handle: ShapeHandle, data: st.DataObject) -> list[int | None] | None:
    """The sizes, some or all of them unknown."""
    if data.draw(st.integers(0, 3)) == 0 or handle.dims is None:
        return None
    return [None if data.draw(st.booleans()) else dim.value for dim in handle.dims]


@given(full_shapes, st.data())
def test_a_shape_taken_apart_and_put_together_is_the_same(dims: list[int], data: st.DataObject) -> None:
    c = context(text(dims))
    at = data.draw(st.integers(0, len(dims)))
    whole = c.concatenate(c.subshape(c.input(0), 0, at), c.subshape(c.input(0), at))
    assert whole.dims == c.input(0).dims


@given(partial_shapes)
def test_handles_print_as_they_are_read(dims: list[int | None] | None) -> None:
    assert str(shape(text(dims))) == text(dims)
