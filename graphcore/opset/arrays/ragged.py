"""Tensors with rows of different lengths: their values, and the partition of these into rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from graphcore.errors import InvalidArgumentError
from graphcore.inference import InferenceContext, ShapeHandle
from graphcore.opset.framework.block import Example, Kernel, KernelContext, no_registered_gradient, op
from graphcore.opset.framework.kernels import ints, invalid, on_host
from graphcore.support.memory_limits import check_allocation

_SIZE, _IDS, _SPLITS, _LENGTHS = "FIRST_DIM_SIZE", "VALUE_ROWIDS", "ROW_SPLITS", "ROW_LENGTHS"
_TYPES: Final = (_SIZE, _IDS, _SPLITS, _LENGTHS)
_VALUES: Final = [1.0, 2.0, 3.0, 4.0, 5.0]


@op
class RaggedTensorToTensor:
    """A tensor of rows of different lengths, cut or filled up with a default value to equal ones.

    shape: the sizes, -1 for the largest; a scalar -1 for all
    values: the elements of all rows, [n, ...]
    default_value: what rows are filled up with; broadcast to an element
    row_partition_tensors: for each ragged dimension the beginning of each row and the end (ROW_SPLITS), the row of each element
        (VALUE_ROWIDS, after the number of rows, FIRST_DIM_SIZE) or the number of elements of each row (ROW_LENGTHS)
    row_partition_types: the kind of each.
    """

    signature = (
        "RaggedTensorToTensor[T:type, Tindex:{int64, int32}, Tshape:{int64, int32}, num_row_partition_tensors:int >= 1, row_partition_types:list(string)]"
        "(shape:Tshape, values:T, default_value:T, row_partition_tensors:num_row_partition_tensors*Tindex) -> (result:T)"
    )
    device_types = ("CPU",)
    gradient = no_registered_gradient("the gradient of ragged tensors is not available; TensorFlow's is built of ops on ragged tensors")
    examples = (
        Example([[-1, -1], _VALUES, 0.0, [np.array([0, 2, 2, 5])]], {"row_partition_types": [_SPLITS]}),
        Example([[4, 2], _VALUES, -1.0, [np.array(3), np.array([0, 0, 2, 2, 2])]], {"row_partition_types": [_SIZE, _IDS]}),
        Example([-1, _VALUES, 9.0, [np.array([0, 2, 3]), np.array([0, 2, 2, 5])]], {"row_partition_types": [_SPLITS, _SPLITS]}),
    )
    failures = (Example([[-1, -1], _VALUES, 0.0, [np.array([0, 2, 2, 9])]], {"row_partition_types": [_SPLITS]}),)

    def shape(c: InferenceContext) -> None:
        kinds = _kinds(c.attr("row_partition_types"))
        if any(kind not in _TYPES for kind in kinds):
            raise InvalidArgumentError(f"row_partition_types must be some of {', '.join(_TYPES)}, got {kinds}")
        if not kinds:
            raise InvalidArgumentError("Partition info types should not be empty")
        wanted, values = c.input_tensor(0), c.input(1)
        _check_default(c.input(2), values)
        ragged = len(kinds) - (kinds[:1] == [_SIZE]) + 1
        natural = None if values.dims is None else [None] * ragged + [*values.dims[1:]]
        if wanted is None or wanted.ndim == 0:
            count = c.dim(c.input(0), 0).value if wanted is None and c.rank(c.input(0)) == 1 else -1
            _check_rank(natural, count)
            rest = natural if count < 0 or natural is not None else [None] * count
            c.set_output(0, c.unknown_shape() if rest is None else c.make_shape([dim or c.unknown_dim() for dim in rest]))
            return
        sizes = [int(size) for size in wanted.reshape(-1)]
        _check_rank(natural, len(sizes))
        rest = [None] * len(sizes) if natural is None else natural
        dims = [c.make_dim(size) if size >= 0 else dim or c.unknown_dim() for size, dim in zip(sizes, rest, strict=True)]
        c.set_output(
            0, c.make_shape([dim if rest_dim is None else c.merge_dim(rest_dim, dim) for dim, rest_dim in zip(dims, rest, strict=True)])
        )

    def kernel(k: KernelContext) -> Kernel:
        kinds = _kinds(k.attr("row_partition_types"))
        dtype = k.output_types[0].as_numpy
        if not kinds or any(kind not in _TYPES for kind in kinds):
            raise invalid(k, f"row_partition_types must be some of {', '.join(_TYPES)}, got {kinds}")

        def fill(shape: Any, values: Any, default: Any, *partitions: Any) -> Any:
            elements = on_host(values)
            rows = [_lengths(k, kind, on_host(part), first) for kind, part, first in _levels(k, kinds, partitions)]
            counted = [len(elements) if i + 1 == len(rows) else len(rows[i + 1]) for i in range(len(rows))]
            for lengths, count in zip(rows, counted, strict=True):
                if int(lengths.sum()) != count:
                    raise invalid(k, f"the rows hold {int(lengths.sum())} elements, but there are {count}")
            natural = [len(rows[0]), *[int(lengths.max(initial=0)) for lengths in rows], *elements.shape[1:]]
            wanted_sizes = ints(shape)
            sizes = (
                natural
                if not shape.ndim and wanted_sizes[0] < 0
                else [n if size < 0 else size for n, size in zip(natural, wanted_sizes, strict=False)]
            )
            if len(sizes) != len(natural) or (shape.ndim and len(wanted_sizes) != len(natural)):
                raise invalid(k, f"shape must have {len(natural)} sizes, got {list(wanted_sizes)}")
            if sizes[len(rows) + 1 :] != list(elements.shape[1:]):
                raise invalid(k, f"the last sizes must be those of an element, {list(elements.shape[1:])}, got {list(wanted_sizes)}")
            check_allocation(sizes, elements.dtype)
            result = np.empty(sizes, elements.dtype if dtype is None else dtype)
            result[...] = np.broadcast_to(on_host(default), sizes[len(rows) + 1 :])
            places = _places(rows)
            inside = np.all([place < size for place, size in zip(places, sizes, strict=False)], axis=0)
            result[tuple([place[inside] for place in places])] = elements[inside]
            return result

        return fill


def _check_default(default: ShapeHandle, values: ShapeHandle) -> None:
    """Check that the default value can be broadcast to an element of the values.

    Raises:
        InvalidArgumentError: it has as many dimensions as the values, or a size that differs.
    """
    if default.dims is None or values.dims is None:
        return
    text = f"default_value.shape={default} and rt_input.flat_values.shape={values} are incompatible"
    if len(default.dims) >= len(values.dims):
        raise InvalidArgumentError(
            f"{text}: default_value.rank = {len(default.dims)}  must be less than rt_input.flat_values.rank = {len(values.dims)}"
        )
    for mine, other in zip(default.dims, values.dims[1:], strict=False):
        if mine.value >= 0 and other.value >= 0 and mine.value not in (1, other.value):
            raise InvalidArgumentError(f"{text}: a size of the default value is {mine.value}, that of an element {other.value}")


def _check_rank(natural: Sequence[Any] | None, rank: int) -> None:
    if natural is not None and rank >= 0 and rank != len(natural):
        raise InvalidArgumentError(f"rt_input.shape and shape are incompatible: rt_input.rank = {len(natural)} but shape.rank = {rank}")


def _kinds(value: Any) -> list[str]:
    """The names of the kinds; bytes that are no UTF-8 are written as escapes, which name none."""
    return [part.decode(errors="backslashreplace") if isinstance(part, bytes) else str(part) for part in value]


def _levels(k: KernelContext, kinds: Sequence[str], partitions: Sequence[Any]) -> list[tuple[str, Any, int | None]]:
    """Kind and tensor of each ragged dimension; with the number of rows where it is given on its own."""
    if kinds[0] != _SIZE:
        return [(kind, part, None) for kind, part in zip(kinds, partitions, strict=True)]
    if len(kinds) < 2:
        raise invalid(k, "FIRST_DIM_SIZE requires VALUE_ROWIDS after it")
    first = int(on_host(partitions[0]).reshape(-1)[0])
    return [(kind, part, first if i == 0 else None) for i, (kind, part) in enumerate(zip(kinds[1:], partitions[1:], strict=True))]


def _lengths(k: KernelContext, kind: str, part: Any, rows: int | None) -> Any:
    """The number of elements of each row."""
    if kind == _LENGTHS:
        return part
    if kind == _SPLITS:
        if part.size < 1 or part[0] != 0 or (np.diff(part) < 0).any():
            raise invalid(k, "row splits must begin with 0 and not fall")
        return np.diff(part)
    if part.size and ((np.diff(part) < 0).any() or part[0] < 0):
        raise invalid(k, "the rows of values must not fall from 0 on")
    count = rows if rows is not None else (int(part[-1]) + 1 if part.size else 0)
    if part.size and part[-1] >= count:
        raise invalid(k, f"a value is in row {int(part[-1])} of {count}")
    return np.bincount(part, minlength=count)


def _places(rows: Sequence[Any]) -> list[Any]:
    """The coordinates of each element in the dimensions from the first to the last ragged one."""
    places: list[Any] = [np.arange(len(rows[0]))]
    for lengths in rows:
        ends = np.cumsum(lengths)
        within = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - lengths, lengths)
        places = [*[np.repeat(place, lengths) for place in places], within]
    return places
