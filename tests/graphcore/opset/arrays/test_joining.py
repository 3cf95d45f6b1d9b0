"""Splitting into a single piece."""

from __future__ import annotations

import pytest

import graphcore as gc


@pytest.mark.parametrize("simplify", [True, False])
@pytest.mark.parametrize("op", ["Split", "SplitV"])
def test_a_split_into_one_piece_passes_its_gradient_on(op: str, simplify: bool) -> None:
    with gc.Graph().as_default() as graph:
        x = gc.constant([[1.0, 2.0], [3.0, 4.0]])
        inputs = [gc.constant(0), x] if op == "Split" else [x, gc.constant([2]), gc.constant(0)]
        (piece,) = graph.apply_op(op, inputs, {"num_split": 1}).outputs
        (gradient,) = gc.gradients(piece * piece, [x], simplify=simplify)
        assert gc.Session().run(gradient).tolist() == [[2.0, 4.0], [6.0, 8.0]]


@pytest.mark.parametrize("size", [-1, 1, 3])
def test_the_size_of_the_only_piece_of_a_split_must_be_given_as_it_is(size: int) -> None:
    with gc.Graph().as_default() as graph:
        x = gc.placeholder(gc.float32)
        (piece,) = graph.apply_op("SplitV", [x, gc.constant([size]), gc.constant(0)], {"num_split": 1}).outputs
        with pytest.raises(gc.errors.InvalidArgumentError, match=f"Input size: 2 output size: {size}"):
            gc.Session().run(piece, {x: [1.0, 2.0]})
