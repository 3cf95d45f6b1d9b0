"""Words of frameworks in ours: data types, devices, names, and values of attrs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Final

from graphcore import dtypes
from graphcore.dtypes import INVALID, DType
from graphcore.errors import InvalidArgumentError
from graphcore.frontends.foreign import WeightRef

if TYPE_CHECKING:
    from graphcore.attrs import Array, AttrValue
    from graphcore.frontends.foreign import Attr

MAX_TEXT: Final = 2000
"""The most characters of an attr that are kept; the rest of a longer one is counted."""
MAX_ITEMS: Final = 200
"""The most items of a list in an attr that are kept."""
MAX_NAME: Final = 200
"""The most characters of a node's name within its scope."""

_SAME: Final = (
    *("int2", "int4", "int8", "int16", "int32", "int64", "uint2", "uint4", "uint8", "uint16", "uint32", "uint64"),
    *("bool", "string", "complex64", "complex128", "bfloat16", "half", "double", "float"),
    *("float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2fnuz", "float4_e2m1fn"),
)
_OTHERS: Final = {
    "float16": "half",
    "f16": "half",
    "fp16": "half",
    "float32": "float",
    "f32": "float",
    "fp32": "float",
    "float64": "double",
    "f64": "double",
    "fp64": "double",
    "bf16": "bfloat16",
    "long": "int64",
    "boolean": "bool",
    "i1": "bool",
    "pred": "bool",
    "str": "string",
    "c64": "complex64",
    "c128": "complex128",
    **{f"i{bits}": f"int{bits}" for bits in (2, 4, 8, 16, 32, 64)},
    **{f"si{bits}": f"int{bits}" for bits in (2, 4, 8, 16, 32, 64)},
    **{f"{letter}{bits}": f"uint{bits}" for bits in (2, 4, 8, 16, 32, 64) for letter in ("u", "ui")},
    **{f"f{name}": f"float{name[0]}_{name[1:]}" for name in ("8e5m2", "8e4m3fn", "8e4m3fnuz", "8e4m3b11fnuz", "8e5m2fnuz", "4e2m1fn")},
    "complex<f32>": "complex64",
    "complex<f64>": "complex128",
}
_PREFIX: Final = re.compile(r"^(torch\.|jnp\.|np\.|numpy\.|tensor\((?=[a-z0-9_]+\)$))")


def _table() -> dict[str, DType]:
    names = {**{name: name for name in _SAME}, **{name.replace("_", ""): name for name in _SAME}, **_OTHERS}
    by_word = {word: dtypes.dtype_by_name(name) for word, name in names.items()}
    return {word: dtype for word, dtype in by_word.items() if dtype is not None}


_KNOWN: Final = _table()


@lru_cache(maxsize=4096)
def dtype_of(word: str) -> DType:
    """The type for a framework's word: ours if there is one, else one that is only shown, by that word.

    `INVALID` stands for an unknown type, "".
    """
    if not word:
        return INVALID
    plain = _PREFIX.sub("", word.strip().lower()).removesuffix(")")
    return _KNOWN.get(plain) or DType(word[:MAX_NAME], INVALID.number, None)


def shaped(elements: Array, shape: Sequence[int], what: str) -> Array:
    """Elements in their shape.

    Raises:
        InvalidArgumentError: they do not fit, or no array of NumPy can have this shape.
    """
    try:
        return elements.reshape(tuple(shape))
    except (ValueError, OverflowError):
        raise InvalidArgumentError(f"{what} has shape {list(shape)[:9]} and {elements.size:,} elements") from None


SHARDED: Final = "sharded "
"""The start of the text of a tensor that is split over devices."""
REPLICATED: Final = "replicated"


def is_sharding(device: str) -> bool:
    """True for the text of a tensor that is on several devices."""
    return device == REPLICATED or device.startswith(SHARDED)


@lru_cache(maxsize=1024)
def device_of(text: str) -> str:
    """A device as graphs request it: `cuda:1` becomes `/device:GPU:1`; "" for what names no device."""
    match = re.fullmatch(r"(cpu|cuda|gpu|xpu|mps|tpu|meta)(?::(\d{1,6}))?", text.strip().lower(), re.ASCII)
    if match is None:
        return text if re.fullmatch(r"(/job:[a-z]+(/task:\d{1,6})?)?/device:[A-Za-z]+:\d{1,6}", text, re.ASCII) else ""
    kind = {"cpu": "CPU", "cuda": "GPU", "gpu": "GPU"}.get(match[1], match[1].upper())
    return f"/device:{kind}:{match[2] or 0}"


_INVALID: Final = re.compile(r"[^A-Za-z0-9_.\-]+")


@lru_cache(maxsize=1 << 16)
def valid_part(text: str) -> str:
    """A part of a node's name: its characters that names may have, at least one of them."""
    part = _INVALID.sub("_", text[:MAX_NAME]).strip("_-")
    if part in {"", ".", ".."}:
        return "node"
    return part


def attr_value(value: Attr) -> AttrValue:
    """The value of an attr in a NodeDef."""
    if isinstance(value, bool | int | float):
        return value if not isinstance(value, int) or -(2**63) <= value < 2**63 else str(value).encode()
    if isinstance(value, str):
        return _cut(value).encode(errors="backslashreplace")
    if isinstance(value, WeightRef):
        return weight_text(value).encode(errors="backslashreplace")
    if isinstance(value, Sequence):
        items = [attr_value(item) for item in value[:MAX_ITEMS]]
        if len(value) > MAX_ITEMS or len({type(item) for item in items}) > 1:
            return _list_text(value).encode(errors="backslashreplace")
        return tuple(items)
    return _cut(str(value)).encode(errors="backslashreplace")  # type: ignore[unreachable]  # values of readers of other packages


def plain_text(value: Attr) -> str:
    """The value of an attr as a text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _cut(value)
    if isinstance(value, WeightRef):
        return weight_text(value)
    return _list_text(value) if isinstance(value, Sequence) else str(value)


def weight_text(weight: WeightRef) -> str:
    """The type and shape of a tensor, as attrs show one."""
    return f"{dtype_of(weight.dtype).text} [{','.join(map(str, weight.shape))}]"


def weight_bytes(weight: WeightRef) -> int:
    """The bytes of a tensor, -1 if they are unknown."""
    if weight.nbytes >= 0:
        return weight.nbytes
    numpy = dtype_of(weight.dtype).as_numpy
    return -1 if numpy is None or weight.dtype == "string" else prod(weight.shape) * numpy.itemsize


def _list_text(value: Sequence[Attr]) -> str:
    items = [plain_text(item) for item in value[:MAX_ITEMS]]
    more = [f"and {len(value) - MAX_ITEMS:,} more"] if len(value) > MAX_ITEMS else []
    return _cut(f"[{', '.join([*items, *more])}]")


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}… ({len(text):,} characters)"
