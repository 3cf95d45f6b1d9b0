"""CRC-32C: known values, and long data in lanes against short data."""

from __future__ import annotations

import pytest

from graphcore.support.crc32c import crc32c, masked, unmasked


def test_known_checksums() -> None:
    assert crc32c(b"") == 0
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert unmasked(masked(0xE3069283)) == 0xE3069283


@pytest.mark.parametrize("length", [1023, 1024, 1025, 4096, 70_001])
def test_long_data_have_the_checksum_of_their_pieces(length: int) -> None:
    data = (bytes(range(256)) * (length // 256 + 1))[:length]
    by_pieces = 0
    for start in range(0, length, 1000):
        by_pieces = crc32c(data[start : start + 1000], by_pieces)
    assert crc32c(data) == by_pieces == crc32c(data[7:], crc32c(data[:7]))
