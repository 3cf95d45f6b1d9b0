"""The limits of reading files, which keep small files from taking all memory. Programs may raise them."""

from __future__ import annotations

import os
from typing import Final

import msgspec

_INFLATED: Final = "GRAPHLOUPE_INFLATED_BYTES"
"""The environment variable with the limit of decompressed data."""
_USUAL: Final = 1 << 28
_GIVEN: Final = os.environ.get(_INFLATED, "")


class ReadingLimits(msgspec.Struct):
    """Limits of reading.

    Attributes:
        inflated_bytes: the most bytes that one record, line or file may have after decompression; 256 MiB unless the environment variable
            GRAPHLOUPE_INFLATED_BYTES gives another number.
    """

    inflated_bytes: int = int(_GIVEN) if _GIVEN.isdecimal() and len(_GIVEN) < 20 else _USUAL


reading_limits = ReadingLimits()
"""The limits in use: `reading_limits.inflated_bytes = 1 << 32` admits larger records."""
