"""Sorting along any dimension, and searches in what is sorted."""

from __future__ import annotations

from typing import Any, NamedTuple

from graphcore.dtypes import as_dtype, int32
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor, get_default_graph
from graphcore.tf1.arrays.layout import reshape
from graphcore.tf1.calls import apply_one
from graphcore.tf1.framework import constant, convert_to_tensor, name_scope
from graphcore.tf1.math.elementwise import where


def argsort(values: Any, axis: int = -1, direction: str = "ASCENDING", stable: bool = False, name: str | None = None) -> Tensor:
    """The indices that sort along `axis`, int32. Equal elements keep their order; NaN counts as the largest."""
    del stable  # it always is
    return _sorted(values, axis, direction, name or "argsort").indices


def sort(values: Any, axis: int = -1, direction: str = "ASCENDING", name: str | None = None) -> Tensor:
    """The values in order along `axis`. NaN counts as the largest."""
    return _sorted(values, axis, direction, name or "sort").values


class _Order(NamedTuple):
    values: Tensor
    indices: Tensor


def _sorted(values: Any, axis: int, direction: str, name: str) -> _Order:
    tensor = convert_to_tensor(values)
    rank = tensor.shape.rank
    if rank is not None and not -rank <= axis < rank:
        raise InvalidArgumentError(f"{name}: required an axis in [{-rank}, {rank}) for {tensor.shape}, got {axis}")
    if direction not in {"ASCENDING", "DESCENDING"}:
        raise InvalidArgumentError(f"{name}: required the direction ASCENDING or DESCENDING, got {direction!r}")
    with name_scope(name):
        swap = None if axis == -1 or (rank is not None and axis == rank - 1) else _swap_with_last(tensor, axis)
        order = _sorted_rows(tensor if swap is None else apply_one("Transpose", [tensor, swap], None), direction)
        return order if swap is None else _Order(*[apply_one("Transpose", [part, swap], None) for part in order])


def _swap_with_last(tensor: Tensor, axis: int) -> Tensor:
    """The permutation that exchanges `axis` and the last axis."""
    rank = apply_one("Rank", [tensor], None)
    axes = apply_one("Range", [0, rank, 1], None)
    last = apply_one("Sub", [rank, 1], None)
    first = apply_one("FloorMod", [apply_one("AddV2", [constant(axis), rank], None), rank], None)
    moved = where(apply_one("Equal", [axes, first], None), last + apply_one("ZerosLike", [axes], None), axes)
    return where(apply_one("Equal", [axes, last], None), first + apply_one("ZerosLike", [axes], None), moved)


def _sorted_rows(tensor: Tensor, direction: str) -> _Order:
    """The last dimension in order.

    Ascending, it is reversed before and after: a negation would turn over for the least integer, and put NaN first.
    """
    graph = get_default_graph()
    ascending = direction == "ASCENDING"
    count = apply_one("Shape", [tensor], None)[-1]
    source = apply_one("ReverseV2", [tensor, [-1]], None) if ascending else tensor
    outputs = graph.apply_op("TopKV2", [source, count], {"sorted": True}, None).outputs
    if not ascending:
        return _Order(*outputs)
    values, places = (apply_one("ReverseV2", [part, [-1]], None) for part in outputs)
    return _Order(values, apply_one("Sub", [count - 1, places], None))


def searchsorted(sorted_sequence: Any, values: Any, side: str = "left", out_type: object = int32, name: str | None = None) -> Tensor:
    """The place of each value in the sorted last dimension: the number of elements before it.

    Args:
        sorted_sequence: [..., n], each row sorted.
        values: [..., m], with the same first dimensions.
        side: of equal elements, "left" counts none and "right" all.
        out_type: the dtype of the places, int32 or int64.
        name: the name scope.
    """
    if side not in {"left", "right"}:
        raise InvalidArgumentError(f"searchsorted: required the side 'left' or 'right', got {side!r}")
    with name_scope(name or "SearchSorted"):
        rows, wanted = convert_to_tensor(sorted_sequence), convert_to_tensor(values)
        flat = [reshape(part, apply_one("Pack", [[-1, apply_one("Shape", [part], None)[-1]]], None)) for part in (rows, wanted)]
        places = apply_one("LowerBound" if side == "left" else "UpperBound", flat, None, {"out_type": as_dtype(out_type)})
        return reshape(places, apply_one("Shape", [wanted], None))
