"""CuPy for the kernels of sessions, with products of matrices that can be captured.

CuPy refuses to call cuBLAS while a stream is captured. cuBLAS itself may be called then, with memory of its own for intermediate results.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, NamedTuple

import numpy as np

from graphcore.errors import InternalError

_WORKSPACE: Final = 32 << 20
"""The bytes that NVIDIA recommends for the largest GPUs."""
_TYPES: Final = {"f": (0, 68), "d": (1, 70), "F": (4, 68), "D": (5, 70)}
"""`cudaDataType` and `cublasComputeType_t` by type code."""
_DEFAULT_ALGORITHM: Final = -1


class _Matrices(NamedTuple):
    """An operand as cuBLAS reads it, column by column.

    Attributes:
        array: keeps the memory.
        transposed: 1 for a matrix that is stored column by column, else 0.
        leading: the elements from a row to the next, or from a column to the next.
        step: the elements from a matrix to the next, 0 for a single one.
    """

    array: Any
    transposed: int
    leading: int
    step: int


def load_cublas() -> Any:
    """The library that CuPy uses."""
    loaded = import_module("cuda.pathfinder").load_nvidia_dynamic_lib("cublas")
    return ctypes.CDLL(loaded.abs_path)


class DeviceModule:
    """CuPy for the kernels of one GPU, with products that can be captured.

    Args:
        cupy: the module.
        stream: the stream of the kernels.
        is_capturing: true while this thread captures a run.
    """

    def __init__(self, cupy: Any, stream: Any, is_capturing: Callable[[], bool]) -> None:
        self._cupy = cupy
        self._stream = stream
        self._is_capturing = is_capturing
        self._cublas: Any = None
        self._workspace: Any = None

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._cupy, name)
        setattr(self, name, member)
        return member

    def prepare_capture(self) -> None:
        """Load cuBLAS and allocate its memory, which a capture could not do."""
        if self._cublas is None:
            self._cupy.cuda.device.get_cublas_handle()
            self._workspace = self._cupy.empty(_WORKSPACE, np.uint8)
            self._cublas = load_cublas()

    def dot(self, a: Any, b: Any, out: Any = None) -> Any:
        """The product of two matrices, as `cupy.dot`."""
        if not self._is_capturing() or a.dtype.char not in _TYPES or a.ndim != 2 or b.ndim != 2:
            return self._cupy.dot(a, b, out)
        return self._product(a, b, out)

    def matmul(self, a: Any, b: Any) -> Any:
        """The products of batches of matrices, as `cupy.matmul`."""
        if not self._is_capturing() or a.dtype.char not in _TYPES or min(a.ndim, b.ndim) < 2:
            return self._cupy.matmul(a, b)
        return self._product(a, b)

    def _product(self, a: Any, b: Any, out: Any = None) -> Any:
        """The product, in `out` or a new array.

        cuBLAS reads and writes column by column, so it is given the transposed matrices in the other order.
        """
        (rows, inner), columns = a.shape[-2:], b.shape[-1]
        if a.dtype != b.dtype or b.shape[-2] != inner:
            return self._cupy.matmul(a, b, out)
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        made = self._cupy.empty((*batch, rows, columns), a.dtype) if out is None else out
        if made.dtype != a.dtype or not made.flags.c_contiguous:
            made[...] = self._product(a, b)
            return made
        if not made.size or not inner:
            made[...] = 0
            return made
        first, second = self._matrices(b, batch), self._matrices(a, batch)
        one, zero = np.ones(1, a.dtype), np.zeros(1, a.dtype)
        kind, computed = _TYPES[a.dtype.char]
        long = ctypes.c_longlong
        handle = ctypes.c_void_p(self._cupy.cuda.device.get_cublas_handle())
        workspace = ctypes.c_void_p(self._workspace.data.ptr)
        _check(self._cublas.cublasSetStream_v2(handle, ctypes.c_void_p(self._stream.ptr)))
        _check(self._cublas.cublasSetWorkspace_v2(handle, workspace, ctypes.c_size_t(_WORKSPACE)))
        _check(
            self._cublas.cublasGemmStridedBatchedEx(
                *(handle, first.transposed, second.transposed, columns, rows, inner, ctypes.c_void_p(one.ctypes.data)),
                *(ctypes.c_void_p(first.array.data.ptr), kind, first.leading, long(first.step)),
                *(ctypes.c_void_p(second.array.data.ptr), kind, second.leading, long(second.step)),
                ctypes.c_void_p(zero.ctypes.data),
                *(ctypes.c_void_p(made.data.ptr), kind, columns, long(rows * columns)),
                *(math.prod(batch), computed, _DEFAULT_ALGORITHM),
            )
        )
        return made

    def _matrices(self, x: Any, batch: tuple[int, ...]) -> _Matrices:
        """An operand that is copied unless cuBLAS can read it where it is."""
        rows, columns = x.shape[-2:]
        by_row, by_column = [stride // x.itemsize for stride in x.strides[-2:]]
        if x.ndim == 2 and (columns == 1 or by_column == 1) and by_row >= columns:
            return _Matrices(x, 0, by_row, 0)
        if x.ndim == 2 and (rows == 1 or by_row == 1) and by_column >= rows:
            return _Matrices(x, 1, by_column, 0)
        whole = x if x.ndim == 2 else self._cupy.broadcast_to(x, (*batch, rows, columns))
        return _Matrices(self._cupy.ascontiguousarray(whole), 0, columns, 0 if x.ndim == 2 else rows * columns)


def _check(status: int) -> None:
    if status:
        raise InternalError(f"cuBLAS reports status {status}")
