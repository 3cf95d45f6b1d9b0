"""Random reductions, scans and sorts over all dtypes, against TensorFlow."""

from __future__ import annotations

import random
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pytest

import graphcore as gc
from tests.oracle.conftest import Oracle
from tests.oracle.test_dtypes import close

Case = tuple[str, npt.NDArray[Any], dict[str, Any]]
INTEGERS: Final = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
REALS: Final = ["bfloat16", "float16", "float32", "float64"]
COMPLEX: Final = ["complex64", "complex128"]
NUMBERS: Final = [*INTEGERS, *REALS, *COMPLEX]
FLOATING: Final = [*REALS, *COMPLEX]
BOOL: Final = ["bool"]
ORDERED: Final = [*INTEGERS, *REALS]
REDUCTIONS: Final = {
    **dict.fromkeys(("reduce_sum", "reduce_mean", "reduce_prod", "math.count_nonzero", "cumsum", "cumprod"), NUMBERS),
    **dict.fromkeys(("reduce_max", "reduce_min", "argmax", "argmin", "sort", "argsort", "segments"), ORDERED),
    **dict.fromkeys(("math.reduce_variance", "math.reduce_std"), FLOATING),
    **dict.fromkeys(("reduce_all", "reduce_any"), BOOL),
}
SEGMENTS: Final = (
    *("segment_sum", "segment_mean", "segment_prod", "segment_max", "segment_min"),
    *(
        "unsorted_segment_sum",
        "unsorted_segment_mean",
        "unsorted_segment_sqrt_n",
        "unsorted_segment_prod",
        "unsorted_segment_max",
        "unsorted_segment_min",
    ),
)
# In 16 bits the order of additions and the width of the sum show; TensorFlow's differ by op and by shape.
ROUNDED: Final = {"bfloat16": 0.06, "half": 0.01}


def values(draw: random.Random, dtype: str, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Numbers of a dtype: of integers small ones, or any, whose sums overflow."""
    numbers: Any = gc.as_dtype(dtype).as_numpy
    size = int(np.prod(shape))
    if dtype == "bool":
        return np.array([draw.random() < 0.7 for _ in range(size)]).reshape(shape)
    if dtype in INTEGERS:
        least, most = int(np.iinfo(numbers).min), int(np.iinfo(numbers).max)
        low, high = (max(least, -5), 5) if draw.random() < 0.4 else (least, most)
        return np.array([draw.randint(low, high) for _ in range(size)], numbers).reshape(shape)
    real = np.array([draw.randint(-8, 8) / 4 for _ in range(size)])
    if dtype in COMPLEX:
        return (real + 1j * np.array([draw.randint(-8, 8) / 4 for _ in range(size)])).astype(numbers).reshape(shape)
    return real.astype(numbers).reshape(shape)


def case(seed: int) -> Case:
    """A function, its array and its further arguments."""
    draw = random.Random(seed)
    name = draw.choice(list(REDUCTIONS))
    rank = draw.randint(1, 3)
    x = values(draw, draw.choice(REDUCTIONS[name]), tuple([draw.randint(1, 5) for _ in range(rank)]))
    axis = draw.randrange(-rank, rank)
    if name in {"cumsum", "cumprod"}:
        return name, x, {"axis": axis, "exclusive": draw.random() < 0.4, "reverse": draw.random() < 0.4}
    if name in {"argmax", "argmin"}:
        return name, x, {"axis": axis, "output_type": draw.choice(["int32", "int64"])}
    if name in {"sort", "argsort"}:
        return (
            name,
            x,
            {"axis": axis, "direction": draw.choice(["ASCENDING", "DESCENDING"]), **({"stable": True} if name == "argsort" else {})},
        )
    if name == "segments":
        kind = draw.choice(SEGMENTS)
        sizes = x.shape[: draw.randint(1, rank) if kind.startswith("unsorted") else 1]
        ids = np.array([draw.randrange(3) for _ in range(int(np.prod(sizes)))], np.int32).reshape(sizes)
        given: dict[str, Any] = {"segment_ids": ids if kind.startswith("unsorted") else np.sort(ids)}
        return f"math.{kind}", x, given | ({"num_segments": 4} if kind.startswith("unsorted") else {})
    axes: Any = draw.choice([None, axis, draw.sample(range(rank), draw.randint(0, rank))])
    return name, x, {"axis": axes, "keepdims": draw.random() < 0.5}


@pytest.mark.parametrize("first", range(0, 1000, 100))
def test_a_random_reduction_gives_what_it_gives_in_tensorflow(first: int, oracle: Oracle) -> None:
    snippet = """
answer = []
for name, x, given in arguments["cases"]:
    function = tf.compat.v1
    for part in name.split("."):
        function = getattr(function, part)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        try:
            answer.append(session.run(function(tf.constant(x), **given)))
        except (tf.errors.OpError, TypeError, ValueError, NotImplementedError) as error:
            answer.append(str(error))
"""
    cases = [case(seed) for seed in range(first, first + 100)]
    compared = 0
    for (name, x, given), theirs in zip(cases, oracle.run(snippet, cases=cases).answer, strict=True):
        if isinstance(theirs, str):
            continue  # no kernel for this type, or an argument that only gc takes
        function: Any = gc
        for part in name.split("."):
            function = getattr(function, part)
        with gc.Graph().as_default(), np.errstate(all="ignore"):
            ours = np.asarray(gc.Session().run(function(gc.constant(x), **given)))
        told = f"{name}({x.dtype}{x.tolist()}, {given})"
        tolerance = ROUNDED.get(gc.as_dtype(ours.dtype).text)
        if tolerance is None:
            difference = close(ours, np.asarray(theirs))
            assert difference is None, f"{told}: {difference}"
        else:
            assert ours.dtype == theirs.dtype, told
            wide = ours.astype(np.float64), theirs.astype(np.float64)
            np.testing.assert_allclose(*wide, rtol=tolerance, atol=tolerance, err_msg=told)
        compared += 1
    assert compared > 50
