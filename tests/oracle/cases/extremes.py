"""Ops on the extremes of each type: ends of ranges, NaN, infinities, no elements at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

import graphcore as gc
from graphcore.inference.shape_fns.common_shape_fns import broadcast_binary_op_shape_fn, reduction_shape, unchanged_shape
from graphcore.registry import OpRegistration
from tests.oracle.cases.draws import TYPES
from tests.oracle.cases.op_examples import OpExample

Array = npt.NDArray[Any]
DIVISIONS = {"Div", "FloorDiv", "FloorMod", "Mod", "RealDiv", "TruncateDiv", "TruncateMod"}
ALONG_AN_AXIS = {"ArgMax", "ArgMin", "Cumprod", "Cumsum", "CumulativeLogsumexp"}
ALONE = {"L2Loss", "Unique", "UniqueWithCounts", "Where", "LogSoftmax", "Softmax", "ZerosLike", "OnesLike", "InvertPermutation", "Softplus"}


def gamma_pairs(x: Array) -> list[tuple[Any, ...]]:
    """Pairs of a shape of the gamma distribution and a number.

    Without huge numbers beside themselves, where TensorFlow gives 0.
    """
    shapes, at = (each.reshape(-1) for each in np.meshgrid(x, x))
    with np.errstate(invalid="ignore"):
        kept = (at != shapes) | (at < 1e4)
    return [(shapes[kept], at[kept])]


def lower_gamma_pairs(x: Array) -> list[tuple[Any, ...]]:
    """As `gamma_pairs`, without 0 beside a shape that is not positive, where TensorFlow gives 0, too."""
    ((shapes, at),) = gamma_pairs(x)
    with np.errstate(invalid="ignore"):
        kept = (at != 0) | (shapes > 0)
    return [(shapes[kept], at[kept])]


OTHERS: dict[str, Callable[[Array], list[tuple[Any, ...]]]] = {
    "TopKV2": lambda x: [(x, np.int32(len(x))), (x[:1], np.int32(1))],
    "NthElement": lambda x: [(x, np.int32(i)) for i in range(len(x))],
    "AddN": lambda x: [([x, x],), ([x, x, x[::-1]],)],
    "ClipByValue": lambda x: [(x, x[1], x[-2])],
    "ListDiff": lambda x: [(x, x[:3])],
    "LowerBound": lambda x: [(np.sort(x)[None], x[None])],
    "UpperBound": lambda x: [(np.sort(x)[None], x[None])],
    "MatMul": lambda x: [(x[None], x[:, None])],
    "SegmentSum": lambda x: [(x, np.arange(len(x), dtype=np.int32) // 2)],
    "SegmentMean": lambda x: [(x, np.arange(len(x), dtype=np.int32) // 2)],
    "SegmentMax": lambda x: [(x, np.arange(len(x), dtype=np.int32) // 2)],
    "SegmentProd": lambda x: [(x, np.arange(len(x), dtype=np.int32) // 2)],
    "UnsortedSegmentSum": lambda x: [(x, np.arange(len(x), dtype=np.int32) // 3, np.int32(5))],
    "UnsortedSegmentMax": lambda x: [(x, np.arange(len(x), dtype=np.int32) // 3, np.int32(5))],
    "UnsortedSegmentMin": lambda x: [(x, np.arange(len(x), dtype=np.int32) // 3, np.int32(5))],
    "UnsortedSegmentProd": lambda x: [(x, np.arange(len(x), dtype=np.int32) // 3, np.int32(5))],
    "Igammac": gamma_pairs,
    **dict.fromkeys(("Igamma", "IgammaGradA", "RandomGammaGrad"), lower_gamma_pairs),
    "HistogramFixedWidth": lambda x: [(np.array([0, 1, 2, 3, 9], x.dtype), np.array([0, 5], x.dtype), np.int32(3))],
}


def extremes(dtype: gc.DType) -> Array:
    """A vector of the values of a type that are special in arithmetic."""
    kind: Any = dtype.as_numpy
    if dtype is gc.bool_:
        return np.array([True, False, True])
    if dtype.is_integer:
        limits = np.iinfo(kind)
        small = [2, 1, 0, 3] if limits.min == 0 else [2, -1, 0, 1, -3]
        return np.array([*small, limits.max, limits.min, limits.max - 1, limits.min + 1], kind)
    if dtype.is_complex:
        return np.array([0, 1, -1, 1j, -1j, 3 - 4j, -0.5 + 2j, 1e10 + 1e-3j], kind)
    largest = float(gc.as_dtype(dtype).max)
    return np.array([1.5, -0.0, 0.0, np.nan, -2.5, np.inf, -np.inf, largest, -largest, 0.5, 2.5]).astype(kind)


def inputs_of(entry: OpRegistration, dtype: gc.DType) -> Iterator[tuple[Any, ...]]:
    """Inputs of the op, with extremes of the type."""
    name, args, x = entry.op_def.name, entry.op_def.input_arg, extremes(dtype)
    if name in OTHERS:
        yield from OTHERS[name](x)
    elif name in ALONG_AN_AXIS:
        yield from ((x, np.int32(0)), (x[::-1].copy(), np.int32(-1)), (np.stack([x, x[::-1]]), np.int32(0)))
    elif len(args) == 1 and (entry.shape_fn is unchanged_shape or name in ALONE):
        yield (x,)
        yield (x[:0],)
    elif len(args) == 2 and entry.shape_fn is reduction_shape:
        yield from reduced(x)
    elif len(args) == 2 and entry.shape_fn is broadcast_binary_op_shape_fn and args[0].type_attr == args[1].type_attr:
        yield from pairs(name, x, dtype)


def reduced(x: Array) -> Iterator[tuple[Any, ...]]:
    """Inputs of reductions: of all, of rows and columns, of none."""
    zero, empty = np.zeros([3, 0], x.dtype), np.zeros(0, np.int32)
    yield from ((x[i : i + 3], np.int32(0)) for i in range(len(x) - 2))
    yield from ((x[i : i + 2], np.int32(0)) for i in range(len(x) - 1))
    yield (np.full(300, x[-1]), np.int32(0))
    yield (np.stack([x, x]), np.int32(1))
    yield (np.stack([x, x]), empty)
    yield from ((zero, np.int32(1)), (zero, np.int32(0)), (zero, np.array([0, 1], np.int32)))


def pairs(name: str, x: Array, dtype: gc.DType) -> Iterator[tuple[Any, ...]]:
    """All pairs of extremes; without those on which an integer division ends the process."""
    left, right = x, x
    if name in DIVISIONS and dtype.is_integer:
        right = np.array([each for each in x.tolist() if each not in (0, -1)], x.dtype)
    if name in {"LeftShift", "RightShift"}:
        right = np.array([0, 1, 3], x.dtype)
    if name == "Pow" and dtype.is_integer:
        right = np.array([0, 1, 2, 5], x.dtype)
    yield left[:, None], right[None]


def cases() -> Iterator[tuple[str, OpExample]]:
    """Each op of these kinds with each of its types."""
    for entry in gc.op_registry:
        attr = next(
            (
                attr
                for attr in entry.op_def.attr
                if attr.type == "type" and entry.op_def.input_arg and attr.name == entry.op_def.input_arg[0].type_attr
            ),
            None,
        )
        if attr is None or entry.op_def.is_stateful or entry.op_def.name.startswith("_"):
            continue
        for dtype in TYPES:
            if attr.allowed_values is not None and dtype not in attr.allowed_values:
                continue
            for number, inputs in enumerate(inputs_of(entry, dtype)):
                parts = {"Tout": "double"} if dtype is gc.complex128 and entry.op_def.find_attr("Tout") else {}
                yield (
                    f"{entry.op_def.name}-{dtype.text}-{number}",
                    OpExample(entry, number, inputs, {attr.name: dtype.text, **parts}, differentiable=False),
                )
