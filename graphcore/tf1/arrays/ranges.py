"""Arrays of one number, of numbers in order, and of coordinates, under TensorFlow 1's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphcore.dtypes import DType, as_dtype, bool_, float32, int32
from graphcore.graph import Tensor
from graphcore.tf1.arrays.layout import concat, expand_dims, reshape, size, stack
from graphcore.tf1.calls import apply_one
from graphcore.tf1.framework import constant, convert_to_tensor, name_scope
from graphcore.tf1.math.elementwise import cast
from graphcore.tf1.math.reductions import reduction

_range = range


def fill(dims: Any, value: Any, name: str | None = None) -> Tensor:
    """A tensor of one value. dims: sizes -> y: [*dims]."""
    return apply_one("Fill", [np.zeros(0, np.int32) if isinstance(dims, list | tuple) and not dims else dims, value], name)


def range(start: Any, limit: Any = None, delta: Any = 1, dtype: object = None, name: str = "range") -> Tensor:  # noqa: A001 - TF1's name
    """The numbers from `start`, or 0, by steps of `delta` up to, but without, `limit`."""
    if limit is None:
        start, limit = 0, start
    if dtype is None:
        candidates = [
            convert_to_tensor(number).dtype.base if isinstance(number, Tensor) else _natural(number) for number in (start, limit, delta)
        ]
        wanted = max(candidates, key=_RANKS.index)
    else:
        wanted = as_dtype(dtype)
    ends = [cast(number, wanted) if isinstance(number, Tensor) else constant(number, wanted) for number in (start, limit, delta)]
    return apply_one("Range", ends, name)


_RANKS = tuple(as_dtype(name) for name in ("int32", "int64", "half", "bfloat16", "float", "double"))


def _natural(number: Any) -> DType:
    dtype = convert_to_tensor(number).dtype if hasattr(number, "as_tensor") else as_dtype(np.asarray(number).dtype)
    if isinstance(number, np.ndarray | np.generic) and dtype in _RANKS:
        return dtype
    return int32 if dtype.is_integer else float32


def linspace(start: Any, stop: Any, num: Any, name: str | None = None) -> Tensor:
    """`num` numbers from `start` to `stop`, both included."""
    return apply_one("LinSpace", [start, stop, num], name)


def sequence_mask(lengths: Any, maxlen: Any = None, dtype: object = bool_, name: str | None = None) -> Tensor:
    """True before the length of each row. lengths: [...] -> y: [..., maxlen]; the greatest length by default."""
    with name_scope(name or "SequenceMask"):
        lengths = convert_to_tensor(lengths)
        longest = reduction("Max", lengths) if maxlen is None else cast(maxlen, lengths.dtype.base)
        places = range(constant(0, lengths.dtype.base), longest, constant(1, lengths.dtype.base))
        result = apply_one("Less", [places, expand_dims(lengths, -1)], "Less")
        return cast(result, dtype)


def meshgrid(*args: Any, indexing: str = "xy", name: str = "meshgrid") -> list[Tensor]:
    """The coordinates of a grid: for each vector a tensor that varies along its own dimension only."""
    with name_scope(name):
        count = len(args)
        vectors = [convert_to_tensor(vector) for vector in args]
        shaped = [reshape(vector, [-1 if i == at else 1 for i in _range(count)]) for at, vector in enumerate(vectors)]
        sizes = [size(vector) for vector in vectors]
        if indexing == "xy" and count > 1:
            shaped[0], shaped[1] = (reshape(vectors[at], [-1 if i == 1 - at else 1 for i in _range(count)]) for at in (0, 1))
            sizes[0], sizes[1] = sizes[1], sizes[0]
        whole: Any = stack(sizes) if sizes else []
        return [apply_one("BroadcastTo", [vector, whole], None) for vector in shaped]


def eye(num_rows: Any, num_columns: Any = None, batch_shape: Any = None, dtype: object = float32, name: str | None = None) -> Tensor:
    """Identity matrices. -> y: [*batch_shape, num_rows, num_columns]."""
    with name_scope(name or "eye"):
        columns = num_rows if num_columns is None else num_columns
        rows = apply_one("Equal", [expand_dims(range(num_rows), 1), expand_dims(range(columns), 0)], "Equal")
        matrix = cast(rows, dtype)
        if batch_shape is None:
            return matrix
        whole = concat([convert_to_tensor(batch_shape, int32), stack([num_rows, columns])], 0)
        return apply_one("BroadcastTo", [matrix, whole], None)
