"""Blocks between space and batch: invalid blocks are refused at graph construction."""

from __future__ import annotations

import pytest

import graphcore as gc
from graphcore.errors import InvalidArgumentError

X = [4, 4, 4]


@pytest.mark.parametrize("op", ["SpaceToBatchND", "BatchToSpaceND"])
@pytest.mark.parametrize(
    ("sizes", "block", "pairs", "text"),
    [
        (None, [0], [[0, 0]], "block_shape must be positive"),
        (X, [-1], [[0, 0]], "block_shape must be positive"),
        (X, [2], [[0, 0], [0, 0]], "Dimension 0 in both shapes must be equal, but are 2 and 1. Shapes are [2,2] and [1,2]."),
        (X, [2, 2], [[0, 0]], "Dimension 0 in both shapes must be equal, but are 1 and 2. Shapes are [1,2] and [2,2]."),
        (X, [2], [[0, 0, 0]], "Dimension 1 in both shapes must be equal, but are 3 and 2. Shapes are [1,3] and [1,2]."),
        (None, [2], [[-2, 0]], "cannot be negative"),
        ([4], [2], [[0, 0]], "Shape must be at least rank 2 but is rank 1"),
    ],
    ids=str,
)
def test_blocks_that_cannot_be_are_refused(op: str, sizes: list[int] | None, block: list[int], pairs: list[list[int]], text: str) -> None:
    with gc.Graph().as_default(), pytest.raises(InvalidArgumentError) as caught:
        gc.apply_op(op, [gc.placeholder(gc.float32, sizes), gc.constant(block), gc.constant(pairs)])
    assert text in caught.value.message


@pytest.mark.parametrize(("op", "what"), [("SpaceToBatch", "paddings"), ("BatchToSpace", "crops")])
def test_pairs_of_square_blocks_are_two_and_not_negative(op: str, what: str) -> None:
    with gc.Graph().as_default() as graph:
        x = gc.placeholder(gc.float32, [4, 4, 4, 1])
        with pytest.raises(InvalidArgumentError, match=f"{what} cannot be negative"):
            gc.apply_op(op, [x, gc.constant([[0, -1], [0, 0]])], {"block_size": 2})
        with pytest.raises(InvalidArgumentError, match="Dimension 0 in both shapes must be equal, but are 1 and 2"):
            gc.apply_op(op, [x, gc.constant([[0, 0]])], {"block_size": 2})
        given = gc.placeholder(gc.int32, [None, 2])
        assert str(graph.apply_op(op, [x, given], {"block_size": 2}).outputs[0].shape) == (
            "[16,?,?,1]" if op == "SpaceToBatch" else "[1,?,?,1]"
        )
