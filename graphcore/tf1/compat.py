"""Conversions between texts and bytes, under the names of `tf.compat`."""

from __future__ import annotations

import numbers
import os
from typing import Any, Final

import numpy as np

from graphcore.errors import InvalidArgumentError

__all__ = [
    "as_bytes",
    "as_str",
    "as_str_any",
    "as_text",
    "bytes_or_text_types",
    "complex_types",
    "integral_types",
    "path_to_str",
    "real_types",
]

integral_types: Final = (numbers.Integral, np.integer)
real_types: Final = (numbers.Real, np.integer, np.floating)
complex_types: Final = (numbers.Complex, np.number)
bytes_or_text_types: Final = (bytes, str)


def as_bytes(bytes_or_text: str | bytes, encoding: str = "utf-8") -> bytes:
    """The bytes of a text; bytes as they are.

    Raises:
        InvalidArgumentError: it is neither.
    """
    if isinstance(bytes_or_text, str):
        return bytes_or_text.encode(encoding)
    if isinstance(bytes_or_text, bytes | bytearray):
        return bytes(bytes_or_text)
    raise InvalidArgumentError(f"Expected binary or unicode string, got {bytes_or_text!r}")


def as_text(bytes_or_text: str | bytes, encoding: str = "utf-8") -> str:
    """The text in bytes; a text as it is.

    Raises:
        InvalidArgumentError: it is neither.
    """
    return bytes_or_text if isinstance(bytes_or_text, str) else as_bytes(bytes_or_text).decode(encoding)


as_str = as_text


def as_str_any(value: Any) -> str:
    """`str(value)`, and the text in bytes."""
    return as_text(value) if isinstance(value, bytes) else str(value)


def path_to_str(path: Any) -> Any:
    """A path as a text; anything else as it is."""
    return as_text(os.fspath(path)) if hasattr(path, "__fspath__") else path
