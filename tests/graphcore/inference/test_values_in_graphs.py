"""Shape functions of nodes read partially known values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import graphcore as gc
from graphcore.errors import InvalidArgumentError

ops: Any = gc.ops


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    graph = gc.Graph()
    with graph.as_default():
        yield graph


def const(value: object, dtype: Any = None) -> Any:
    return gc.constant(value, dtype or gc.int32)


def taken(shape: Any, i: int) -> Any:
    return ops.strided_slice(shape, const([i]), const([i + 1]), const([1]), shrink_axis_mask=1)


def test_flattening_all_but_the_batch_keeps_the_batch() -> None:
    x = gc.placeholder(gc.float32, [None, 28, 28, 1])
    flat = ops.reshape(x, ops.pack([taken(ops.shape(x), 0), const(784)]))
    assert str(flat.shape) == "[?,784]"
    made, given = flat.node.output_handles[0], x.node.output_handles[0]
    assert made.dims is not None
    assert given.dims is not None
    assert made.dims[0] is given.dims[0]
    assert str(ops.add(flat, ops.reshape(x, ops.pack([taken(ops.shape(x), 0), const(-1)]))).shape) == "[?,784]"


def test_filling_and_tiling_read_the_known_parts() -> None:
    x = gc.placeholder(gc.float32, [None, 3])
    assert str(ops.fill(ops.shape(x), gc.constant(0.0)).shape) == "[?,3]"
    assert str(ops.tile(gc.placeholder(gc.float32, [2, None]), ops.pack([const(4), taken(ops.shape(x), 0)])).shape) == "[8,?]"


@pytest.mark.parametrize(
    "size",
    [
        pytest.param(lambda: ops.size(gc.placeholder(gc.float32, [2**20, 2**20])), id="S7 Size"),
        pytest.param(lambda: taken(ops.shape(gc.placeholder(gc.float32, [2**33])), 0), id="S7 Shape"),
    ],
)
def test_a_size_that_does_not_fit_its_type_is_an_error_s7(size: Callable[[], Any]) -> None:
    with pytest.raises(InvalidArgumentError, match="Value is out of int32 range"):
        ops.fill(ops.pack([size(), const(1)]), gc.constant(0.0))


def test_a_size_that_fits_int64_is_fine_s7() -> None:
    size = ops.size(gc.placeholder(gc.float32, [2**20, 2**20]), out_type=gc.int64)
    packed = ops.pack([size, gc.placeholder(gc.int64, [])])
    assert str(ops.reshape(gc.placeholder(gc.float32), packed).shape) == f"[{2**40},?]"
