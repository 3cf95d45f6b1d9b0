"""`x[1:, ..., 0]` of a tensor: a StridedSlice."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, Final

import numpy as np

from graphcore.brief import brief
from graphcore.errors import InvalidArgumentError
from graphcore.graph.building.apply import apply_op
from graphcore.graph.model.node import Tensor
from graphcore.graph.model.plain_graph import PlainGraph

_NAME: Final = "strided_slice"
_INT32: Final = np.iinfo(np.int32)
_INT64: Final = np.iinfo(np.int64)
Place = tuple[Any, Any, Any]


def sliced(graph: PlainGraph, tensor: Tensor, key: Any) -> Tensor:
    """The part of `tensor` selected by `key`, with NumPy's rules: ints, slices, `...`, None, or a tuple.

    Ints may be scalar tensors of int32 or int64. The node is made in `graph`; if `key` is refused, nothing is made.

    Raises:
        InvalidArgumentError: an entry of another kind; more entries than dimensions; an int outside of its dimension; a step of 0.
    """
    entries = key if isinstance(key, tuple) else (key,)
    numbers = [number for entry in entries for number in ((entry.start, entry.stop, entry.step) if isinstance(entry, slice) else (entry,))]
    several = any(_is_tensor(number) for number in numbers)
    with graph.transaction() if several else nullcontext():  # a single node is rolled back by itself
        places, masks = _read(tensor, entries)
        wide = _is_wide(places)
        bounds = [_vector(graph, [place[which] for place in places], wide) for which in range(3)]
        return apply_op(graph, "StridedSlice", [tensor, *bounds], masks, _NAME).outputs[0]


def _read(tensor: Tensor, entries: Sequence[Any]) -> tuple[list[Place], dict[str, int]]:
    """Begin, end and stride of each entry, and the masks."""
    masks = {"begin_mask": 0, "end_mask": 0, "ellipsis_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 0}
    places: list[Place] = []
    for i, entry in enumerate(entries):
        begin: Any = 0
        end: Any = 0
        stride: Any = 1
        if entry is Ellipsis:
            if masks["ellipsis_mask"]:
                raise _refused(tensor, i, "a second '...'")
            masks["ellipsis_mask"] = 1 << i
        elif entry is None:
            masks["new_axis_mask"] |= 1 << i
        elif isinstance(entry, slice):
            masks["begin_mask"] |= (entry.start is None) << i
            masks["end_mask"] |= (entry.stop is None) << i
            begin = 0 if entry.start is None else _index(tensor, i, entry.start)
            end = 0 if entry.stop is None else _index(tensor, i, entry.stop)
            stride = 1 if entry.step is None else _index(tensor, i, entry.step)
        else:
            masks["shrink_axis_mask"] |= 1 << i
            begin = _index(tensor, i, entry)
            end = begin + 1
        places.append((begin, end, stride))
    return places, masks


def _index(tensor: Tensor, at: int, entry: Any) -> Any:
    """Convert an int or a scalar tensor of ints to an index."""
    if _is_tensor(entry):
        if entry.dtype.base.name not in {"int32", "int64"} or entry.shape.rank not in {0, None}:
            raise _refused(tensor, at, f"the {entry.dtype.text} tensor '{entry.name}' of shape {entry.shape}")
        return entry
    if isinstance(entry, bool | np.bool_):
        raise _refused(tensor, at, f"{brief(entry)}")
    try:
        number = operator.index(entry)
    except TypeError:
        raise _refused(tensor, at, f"{brief(entry)} ({type(entry).__name__})") from None
    if not _INT64.min <= number < _INT64.max:
        raise _refused(tensor, at, f"{number}, which has more than 64 bits")
    return number


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor)


def _is_wide(places: Sequence[Place]) -> bool:
    """True iff a number needs 64 bits."""
    numbers = [number for place in places for number in place]
    return any(
        not _INT32.min <= number <= _INT32.max if isinstance(number, int) else number.dtype.base.name == "int64" for number in numbers
    )


def _vector(graph: PlainGraph, numbers: Sequence[Any], wide: bool) -> Any:
    """The numbers as a value or, with tensors among them, packed."""
    dtype = np.int64 if wide else np.int32
    if all(isinstance(number, int) for number in numbers):
        return np.asarray(numbers, dtype)
    parts = [dtype(number) if isinstance(number, int) else _as_type(graph, number, dtype) for number in numbers]
    return apply_op(graph, "Pack", [parts], None, f"{_NAME}/stack").outputs[0]


def _as_type(graph: PlainGraph, number: Tensor, dtype: Any) -> Tensor:
    if number.dtype.base.as_numpy == dtype:
        return number
    return apply_op(graph, "Cast", [number], {"DstT": dtype}, f"{_NAME}/cast").outputs[0]


def _refused(tensor: Tensor, at: int, what: str) -> InvalidArgumentError:
    return InvalidArgumentError.at(
        tensor.node,
        f"An index of '{tensor.name}' takes ints, slices, '...', None and scalar tensors of ints; entry {at} is {what}. "
        "Rows by a list or tensor of ints are taken by gc.ops.gather_v2, elements where a condition holds by gc.ops.where and gather_nd",
    )
