"""Arrays of the tensors of frameworks, none of which is imported here."""

from __future__ import annotations

import sys
from typing import Any, Final

import numpy as np

from graphcore.attrs import Array
from graphcore.dtypes import dtype_by_name

_BITS: Final = {1: "uint8", 2: "int16"}
"""Types of PyTorch with the sizes of those that NumPy lacks."""


def array_of(value: object) -> Array | None:
    """The elements of a tensor, in its own memory where that is possible.

    The array is to be read at once, and not to be changed.

    None for what is no tensor, and for tensors without readable elements, such as sparse ones and those without memory.
    """
    if isinstance(value, np.ndarray):
        return value
    if value is None or isinstance(value, str | bytes):
        return None
    if isinstance(value, bool | int | float | complex | np.generic):
        return np.asarray(value)
    try:
        if is_torch_tensor(value):
            return _of_torch(value)
        if hasattr(value, "numpy"):
            value = value.numpy()
        return np.asarray(value) if hasattr(value, "__array__") else None
    except (AttributeError, NotImplementedError, RuntimeError, TypeError, ValueError):
        return None  # a layout without elements of its own; the run must not end by that


def wait_for(value: object) -> None:
    """Wait until a value is computed. Devices that work on their own return values before that."""
    if is_torch_tensor(value):
        if getattr(value, "is_cuda", False):
            sys.modules["torch"].cuda.synchronize(value.device)  # type: ignore[attr-defined]  # of a tensor
    elif hasattr(value, "block_until_ready"):
        value.block_until_ready()


def bytes_of(value: object) -> int:
    """The bytes of the elements of a value, 0 where it does not say."""
    try:
        return int(getattr(value, "nbytes", 0))
    except (RuntimeError, TypeError, ValueError):
        return 0  # such as a sparse tensor


def device_of(value: object) -> str:
    """The full name of the device that holds a value, "" for this CPU."""
    device = getattr(value, "device", None)
    if getattr(device, "type", "") == "cuda" or getattr(device, "platform", "") in {"gpu", "cuda"}:
        number = getattr(device, "index", None)
        return f"/job:localhost/replica:0/task:0/device:GPU:{getattr(device, 'id', 0) if number is None else number}"
    return ""


def is_torch_tensor(value: object) -> bool:
    """True for a tensor of PyTorch, by the names of its class and module."""
    return any(kind.__name__ == "Tensor" and kind.__module__ == "torch" for kind in type(value).__mro__)


def _of_torch(value: Any) -> Array | None:
    if str(value.layout) != "torch.strided" or value.is_quantized or value.device.type == "meta":
        return None
    plain = value.detach().cpu().resolve_conj().resolve_neg()
    word = str(plain.dtype).removeprefix("torch.")
    if word in {"bfloat16", "complex32"} or word.startswith("float8"):
        dtype = dtype_by_name(word)
        if dtype is None or dtype.as_numpy is None:
            return None
        bits = getattr(sys.modules["torch"], _BITS[plain.element_size()])
        array: Array = plain.contiguous().view(bits).numpy().view(dtype.as_numpy)
        return array
    return np.asarray(plain.numpy())
