"""Strided slices: reduction of begin, end, strides and five masks to one range for each dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from graphcore.errors import InvalidArgumentError
from graphcore.inference.handles import UNKNOWN

_NEW_AXIS: Final = -2
_DROPPED: Final = -1
Range = tuple[int | None, int | None, int]
"""Begin, end and size, as far as they are known: None, or -1 for the size."""


class SliceSpec(msgspec.Struct, frozen=True):
    """The specification of `x[begin:end:strides]`; begin or end is None if its value is unknown.

    Bit i of a mask refers to entry i.
    """

    begin: Sequence[int] | None
    end: Sequence[int] | None
    strides: Sequence[int]
    begin_mask: int = 0
    end_mask: int = 0
    ellipsis_mask: int = 0
    new_axis_mask: int = 0
    shrink_axis_mask: int = 0


class StridedSlice(msgspec.Struct, frozen=True):
    """A slice of every dimension of the input.

    Attributes:
        begin, end, strides: one plain range an input dimension, None if unknown. An end of -1 is before the first element.
        processing_shape: the sizes of these ranges, -1 where not known.
        final_shape: the sizes of the result, dimensions dropped and added.
    """

    begin: tuple[int | None, ...]
    end: tuple[int | None, ...]
    strides: tuple[int, ...]
    processing_shape: tuple[int, ...]
    final_shape: tuple[int, ...]


class _Entry(msgspec.Struct):
    """The specification of one input dimension."""

    begin: int | None = None
    end: int | None = None
    stride: int = 1
    begin_masked: bool = True
    end_masked: bool = True
    shrink: bool = False


def strided_slice(shape: Sequence[int], spec: SliceSpec) -> StridedSlice:
    """Compute a slice of an array of `shape` (-1: unknown size).

    Raises:
        InvalidArgumentError: a stride of 0, two ellipses, too many indices, an index out of bounds.
    """
    entries, sources = _spread(len(shape), spec)
    ranges = [_range(i, size, entry) for i, (size, entry) in enumerate(zip(shape, entries, strict=True))]
    return StridedSlice(
        tuple([first for first, _, _ in ranges]),
        tuple([last for _, last, _ in ranges]),
        tuple([entry.stride for entry in entries]),
        tuple([size for _, _, size in ranges]),
        tuple([1 if source == _NEW_AXIS else ranges[source][2] for source in sources if source != _DROPPED]),
    )


def _spread(rank: int, spec: SliceSpec) -> tuple[list[_Entry], list[int]]:
    """Map each input dimension to its entry, and each result dimension to its input dimension."""
    count = len(spec.strides)
    if any(bound is not None and len(bound) != count for bound in (spec.begin, spec.end)):
        raise InvalidArgumentError("Expected begin, end, and strides to be 1D equal size tensors")
    ellipses = [i for i in range(count) if spec.ellipsis_mask >> i & 1]
    if spec.ellipsis_mask & (spec.ellipsis_mask - 1):  # more than one bit is set, possibly beyond the entries
        raise InvalidArgumentError("Multiple ellipses in slice spec not allowed")
    ellipsis = ellipses[0] if ellipses else count
    new_axes_after = sum([spec.new_axis_mask >> i & 1 for i in range(ellipsis + 1, count)])
    entries: list[_Entry] = []
    sources: list[int] = []
    for i in range(count):
        if i == ellipsis:
            _take_all(entries, sources, rank - (count - i - 1 - new_axes_after))
        elif spec.new_axis_mask >> i & 1:
            sources.append(_NEW_AXIS)
        else:
            _check_rank(len(entries), rank)
            entry = _entry(i, spec)
            sources.append(_DROPPED if entry.shrink else len(entries))
            entries.append(entry)
    _take_all(entries, sources, rank)
    return entries, sources


def _take_all(entries: list[_Entry], sources: list[int], up_to: int) -> None:
    while len(entries) < up_to:
        sources.append(len(entries))
        entries.append(_Entry())


def _check_rank(position: int, rank: int) -> None:
    if rank == 0:
        raise InvalidArgumentError("Attempting to slice scalar input.")
    if position == rank:
        raise InvalidArgumentError(f"Index out of range using input dim {position}; input has only {rank} dims")


def _entry(i: int, spec: SliceSpec) -> _Entry:
    return _Entry(
        None if spec.begin is None else spec.begin[i],
        None if spec.end is None else spec.end[i],
        spec.strides[i],
        bool(spec.begin_mask >> i & 1),
        bool(spec.end_mask >> i & 1),
        bool(spec.shrink_axis_mask >> i & 1),
    )


def _range(i: int, size: int, entry: _Entry) -> Range:
    stride = entry.stride
    if stride == 0:
        raise InvalidArgumentError(f"strides[{i}] must be non-zero")
    if entry.shrink:
        if stride < 0:
            raise InvalidArgumentError("only stride 1 allowed on non-range indexing.")
        return _single(i, size, entry.begin)
    if size == UNKNOWN:
        # With an unknown size, negative positions and clamping cannot be resolved.
        return (0 if entry.begin_masked and stride > 0 else None), None, UNKNOWN
    low, high = (0, size) if stride > 0 else (-1, size - 1)
    first, last = _clamped(entry.begin, size, low, high), _clamped(entry.end, size, low, high)
    if entry.begin_masked:
        first = low if stride > 0 else high
    if entry.end_masked:
        last = high if stride > 0 else low
    return first, last, UNKNOWN if first is None or last is None else len(range(first, last, stride))


def _clamped(position: int | None, size: int, low: int, high: int) -> int | None:
    if position is None:
        return None
    return min(max(position + size if position < 0 else position, low), high)


def _single(i: int, size: int, index: int | None) -> Range:
    if index is None:
        return None, None, 1
    if size == UNKNOWN:
        return (None, None, 1) if index < 0 else (index, index + 1, 1)
    wrapped = index + size if index < 0 else index
    if not 0 <= wrapped < size:
        raise InvalidArgumentError(f"slice index {index} of dimension {i} out of bounds.").advise(
            f"Choose an index from 0 to {size - 1}, since counting begins at 0; -1 is the last one."
            if size
            else "Choose another dimension: this one is empty.",
            required=f"an index from 0 to {size - 1}",
            came=str(index),
        )
    return wrapped, wrapped + 1, 1
