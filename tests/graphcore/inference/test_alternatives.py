"""Shapes common to several alternatives."""

from __future__ import annotations

from typing import Any

import pytest

import graphcore as gc
from graphcore.inference.alternatives import common_shape, relaxed_shape
from tests.support.shape_rows import assert_handle, assert_row, context, infer

ops: Any = gc.ops
apply: Any = gc.apply_op


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ("[1,?]", "in0"),
        ("[1,2];[1,2]", "in0"),
        ("[1,2];[1,3]", "[d0_0,?]"),
        ("[?];[?]", "[?]"),
        ("[2,?];[2,3];[2,4]", "[d0_0,?]"),
        ("[1];[1,2]", "?"),
        ("?;[1]", "?"),
        ("[1];?", "?"),
    ],
)
def test_only_common_parts_of_alternatives_are_known(inputs: str, expected: str) -> None:
    c = context(inputs)
    assert_handle(c, common_shape(c.inputs), expected)
    merge = gc.op_registry.look_up("Merge").shape_fn
    assert merge is not None
    assert_row(infer(merge, inputs, outputs=2), f"{expected};[]")


def test_unknown_sizes_of_two_branches_are_not_taken_for_the_same() -> None:
    with gc.Graph().as_default():
        x, y = gc.placeholder(gc.float32, [None]), gc.placeholder(gc.float32, [None])
        merged = apply("Merge", [[x, y]])
        merged = merged.outputs[0] if isinstance(merged, gc.Node) else merged[0]
        (dim,) = merged.node.output_handles[0].dims or ()
        assert dim is not (x.node.output_handles[0].dims or ())[0]
        assert dim is not (y.node.output_handles[0].dims or ())[0]


def test_a_later_value_relaxes_the_parts_it_contradicts() -> None:
    c = context("[2,?];[2,?];[3,?];[2];?;[2,7]")
    known, alike, other, shorter, unknown, partly = c.inputs
    assert relaxed_shape(known, known, [known]) is known
    assert relaxed_shape(known, partly, []) is known
    assert_handle(c, relaxed_shape(known, alike, [known]), "[d0_0,?]")
    assert_handle(c, relaxed_shape(known, other, [known]), "[?,?]")
    assert_handle(c, relaxed_shape(known, shorter, [known]), "?")
    assert_handle(c, relaxed_shape(known, unknown, [known]), "?")
    assert relaxed_shape(unknown, known, [known]) is unknown
