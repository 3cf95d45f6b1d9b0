"""The limits of reading files, which keep small files from taking all memory. Programs may raise them."""

from __future__ import annotations

import msgspec


class ReadingLimits(msgspec.Struct):
    """Limits of reading.

    Attributes:
        inflated_bytes: the most bytes that one record, line or file may have after decompression.
    """

    inflated_bytes: int = 1 << 28


reading_limits = ReadingLimits()
"""The limits in use: `reading_limits.inflated_bytes = 1 << 32` admits larger records."""
