"""Casts of NumPy values that lose nothing but the last digits of floats."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from graphcore.dtypes import DType, as_dtype
from graphcore.errors import GraphError

Array = npt.NDArray[Any]


def cast_losslessly(array: Array, dtype: DType, *, round_integers: bool = False) -> Array | None:
    """`array` in the dtype, or None if values would be lost.

    Between floats of different widths values are rounded, which is no loss; a finite value that becomes infinite is one. Between floats,
    integers and bools every value must be kept: 0 and 1 are bools, 2.0 is an integer, 2.5 is none. Real numbers are complex, never the
    other way.

    Args:
        array: numbers or bools.
        dtype: a dtype of numbers or bools.
        round_integers: allow integers to be rounded to floats.
    """
    target = dtype.as_numpy
    assert target is not None  # a dtype of numbers
    if array.dtype == target:
        return array
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    try:
        source = as_dtype(array.dtype)
    except GraphError:
        return None
    if (source.is_complex and not dtype.is_complex) or source.as_numpy is None or source.as_numpy.kind == "O":
        return None
    if array.size == 0:
        return array.astype(target)
    if dtype.is_floating or dtype.is_complex:
        return _as_float(array, source, dtype, exact=source.is_integer and not round_integers)
    if source.is_integer and dtype.is_integer:
        limits = ml_dtypes.iinfo(target)  # type: ignore[no-untyped-call]  # its stub
        # Python numbers are compared: NumPy compares signed with unsigned arrays as floats.
        return array.astype(target) if limits.min <= int(array.min()) and int(array.max()) <= limits.max else None
    if not (dtype.is_integer or dtype.is_bool):
        return None  # quantised
    with np.errstate(invalid="ignore", over="ignore"):
        result = array.astype(target)
        return result if bool(np.all(result.astype(array.dtype) == array)) else None


def _as_float(array: Array, source: DType, dtype: DType, *, exact: bool) -> Array | None:
    with np.errstate(over="ignore", invalid="ignore"):
        result = array.astype(dtype.as_numpy)
    if exact:
        with np.errstate(invalid="ignore", over="ignore"):
            return result if bool(np.all(result.astype(array.dtype) == array)) and _all_finite(result) else None
    widens = source.is_bool or (source.size <= dtype.size and not source.is_integer)
    if widens or _all_finite(result):
        return result
    return result if bool(np.all(np.isfinite(result) == np.isfinite(array))) else None


def _all_finite(array: Array) -> bool:
    return bool(np.all(np.isfinite(array)))
