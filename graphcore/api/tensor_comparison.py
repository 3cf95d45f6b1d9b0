"""Comparison of two tensors of runs in different frameworks."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator
from typing import Final, Literal

import msgspec
import numpy as np

from graphcore.attrs import Array
from graphcore.difference import GraphState, NodeState
from graphcore.difference.wiring import parse_input
from graphcore.op_names import plain_op

Measure = Literal["max_abs", "relative", "tolerance", "cosine", "sqnr"]
"""The statistics of two tensors."""
TOLERANCES: Final = {
    "float64": (1e-7, 1e-14),
    "complex128": (1e-7, 1e-14),
    "float32": (1e-4, 1e-8),
    "complex64": (1e-4, 1e-8),
    "float16": (1e-2, 1e-5),
    "bfloat16": (5e-2, 1e-4),
}
"""The relative and absolute tolerance by type; other types must agree exactly."""
QUANTIZED: Final = 0.1
"""The relative tolerance of values that were rounded to some bits."""
_QUANTIZING: Final = re.compile(r".*quanti[sz]e.*|qlinear.*|qgemm|(matmul|conv)integer")
_CHANNELS_LAST: Final = {3: (0, 2, 1), 4: (0, 2, 3, 1), 5: (0, 2, 3, 4, 1)}
_CHANNELS_FIRST: Final = {3: (0, 2, 1), 4: (0, 3, 1, 2), 5: (0, 4, 1, 2, 3)}


class TensorComparison(msgspec.Struct, frozen=True):
    """Two tensors that should be equal.

    Attributes:
        name, other: the nodes whose first outputs they are, in the first and in the second graph.
        op, other_op: their ops.
        max_abs: the greatest absolute difference; infinite where one is finite and the other is not, or shapes do not fit.
        largest: the greatest absolute value of the first tensor.
        tolerance: the greatest difference that counts as none: `atol + rtol * largest`.
        cosine: the cosine of the angle between them as vectors.
        sqnr: the ratio of the first tensor to the difference, in dB; infinite for equal ones.
        note: what was done to compare them, or why they cannot be, "" for nothing.
    """

    name: str
    other: str
    op: str
    other_op: str
    max_abs: float
    largest: float
    tolerance: float
    cosine: float
    sqnr: float
    note: str = ""

    @property
    def is_different(self) -> bool:
        """True iff they differ by more than the tolerance."""
        return self.max_abs > self.tolerance

    def measured(self, measure: Measure) -> float:
        """One of the statistics, as `RunComparison.numbers` names them."""
        if measure == "relative":
            return self.max_abs / (self.largest or 1.0)
        if measure == "tolerance":
            return self.max_abs / self.tolerance if self.tolerance else math.inf if self.max_abs else 0.0
        number: float = getattr(self, measure)
        return number

    def __str__(self) -> str:
        numbers = f"max abs difference {self.max_abs:.3g} of {self.largest:.3g} (tolerance {self.tolerance:.2g})"
        note = f"; {self.note}" if self.note else ""
        return f"{self.name} ({self.op} | {self.other_op}): {numbers}, cosine {self.cosine:.6f}, SQNR {self.sqnr:.1f} dB{note}"


def compare_tensors(
    names: tuple[str, str],
    ops: tuple[str, str],
    first: Array,
    second: Array,
    rtol: float | None,
    atol: float | None,
    coarse: float = 0.0,
) -> TensorComparison:
    """Compare two tensors, the second in the layout of the first if their shapes say that it has another.

    Args:
        names, ops: the nodes and their ops.
        first, second: the tensors.
        rtol, atol: the tolerances; None for those of the less precise of the two types.
        coarse: the relative tolerance that is given at least if `rtol` is None.
    """
    relative, absolute = max(TOLERANCES.get(str(array.dtype), (0.0, 0.0)) for array in (first, second))
    relative, absolute = max(relative, coarse) if rtol is None else rtol, absolute if atol is None else atol
    aligned, note = _in_layout_of(first, second)
    if aligned is None or not (_is_numeric(first) and _is_numeric(second)):
        return TensorComparison(*names, *ops, math.inf, 0.0, 0.0, math.nan, -math.inf, note or f"types {first.dtype} and {second.dtype}")
    wide = np.complex128 if first.dtype.kind == "c" or aligned.dtype.kind == "c" else np.float64
    a, b = first.astype(wide).ravel(), aligned.astype(wide).ravel()
    with np.errstate(all="ignore"):
        usual = np.isfinite(a) & np.isfinite(b)
        alike = usual | (a == b) | (np.isnan(a) & np.isnan(b))
        a, b = a[usual], b[usual]
        difference = np.abs(a - b)
        largest = float(np.abs(a).max(initial=0.0))
        max_abs = float(difference.max(initial=0.0)) if alike.all() else math.inf
        power, noise = float(np.vdot(a, a).real), float(np.vdot(difference, difference).real)
        length = math.sqrt(power * float(np.vdot(b, b).real))
        cosine = float(np.vdot(a, b).real) / length if length else float(not noise)
    sqnr = math.inf if not noise else 10 * math.log10(power / noise) if power else -math.inf
    if not alike.all():
        note = f"{note}; " * bool(note) + f"{int((~alike).sum()):,} elements are infinite or not a number in one of them only"
    return TensorComparison(*names, *ops, max_abs, largest, absolute + relative * largest, cosine, sqnr, note)


def coarseness(state: GraphState, quantized: Collection[str] = ()) -> dict[str, float]:
    """For each node the relative tolerance of the least precise type that its value has passed.

    Args:
        state: the graph.
        quantized: the nodes whose values stand for others by a scale.
    """
    tolerances: dict[str, float] = {}
    waiting = [(name, False) for name in reversed(state.nodes)]
    while waiting:
        name, is_ready = waiting.pop()
        node = state.nodes.get(name)
        if node is None or (name in tolerances and not is_ready):
            continue
        producers = [parse_input(text)[0] for text in node.node_def.input]
        if is_ready:
            own = QUANTIZED if name in quantized else _own_coarseness(node)
            tolerances[name] = max([own, *[tolerances.get(producer, 0.0) for producer in producers]])
            continue
        tolerances[name] = 0.0  # until its inputs are ready: a loop is cut there
        waiting.append((name, True))
        waiting.extend((producer, False) for producer in producers)
    return tolerances


def _own_coarseness(node: NodeState) -> float:
    if _QUANTIZING.fullmatch(plain_op(node.op).lower()):
        return QUANTIZED
    dtype = node.output_types[0] if node.output_types else None
    return 0.0 if dtype is None else TOLERANCES.get(dtype.name, (0.0, 0.0))[0]


def _is_numeric(array: Array) -> bool:
    return array.dtype.kind in "biufc" or str(array.dtype) in TOLERANCES


def _in_layout_of(first: Array, second: Array) -> tuple[Array | None, str]:
    """The second tensor in the shape of the first, and how it got it; None if it does not fit."""
    if first.shape == second.shape:
        return second, ""
    for order in _orders(first.ndim):
        if second.ndim == first.ndim and tuple([second.shape[axis] for axis in order]) == first.shape:
            return second.transpose(order), f"axes permuted by {list(order)}"
    if first.size == second.size:
        return second.reshape(first.shape), f"shape {list(second.shape)} read as {list(first.shape)}"
    return None, f"shapes {list(first.shape)} and {list(second.shape)}"


def _orders(rank: int) -> Iterator[tuple[int, ...]]:
    """Channels last to first, first to last, and the first two axes exchanged."""
    for table in (_CHANNELS_FIRST, _CHANNELS_LAST):
        if rank in table:
            yield table[rank]
    if rank >= 2:
        yield (1, 0, *range(2, rank))
