"""Errors that say what was required and what came."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import InvalidArgumentError


@pytest.fixture(autouse=True)
def graph() -> Any:
    with gc.Graph().as_default() as made:
        yield made


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ([-1, 3], r"tensor with 7 values, but the requested shape \[-1,3\] requires a multiple of 3"),
        ([2, 3], r"tensor with 7 values, but the requested shape \[2,3\] has 6"),
        ([], r"tensor with 7 values, but the requested shape \[\] has 1"),
    ],
)
@pytest.mark.parametrize("engine", ["plan", "dataflow"])
def test_a_reshape_says_the_number_of_values_and_the_requested_shape(sizes: list[int], text: str, known: bool, engine: str) -> None:
    x, s = gc.placeholder(gc.float32, [None], name="x"), gc.placeholder(gc.int32, [len(sizes)], name="s")
    y = gc.reshape(x, sizes if known else s, name="rows")
    with pytest.raises(InvalidArgumentError, match=text) as raised:
        gc.Session(engine=engine).run(y, {x: np.zeros(7), s: sizes})
    assert raised.value.node == "rows"


@pytest.mark.parametrize("mapped", [gc.map_fn, lambda fn, elems, **_: gc.scan(lambda a, e: a + fn(e), elems, 0.0)])
def test_rows_of_different_number_are_refused_when_a_map_is_built(mapped: Any) -> None:
    elems = (gc.constant([1.0, 2.0, 3.0], name="a"), gc.constant([1.0, 2.0], name="b"))
    with pytest.raises(InvalidArgumentError, match="one number of rows, got 'a:0' of 3 and 'b:0' of 2"):
        mapped(lambda each: each[0] + each[1], elems, dtype=gc.float32)


@pytest.mark.parametrize("nest", [lambda x: [x], lambda x: {"a": x}, lambda x: (x, None), lambda x: x])
def test_none_in_fetches_is_refused(nest: Any) -> None:
    gc.constant(1.0)
    with pytest.raises(InvalidArgumentError, match=r"Cannot fetch None.*merge_all"):
        gc.Session().run(nest(None))
