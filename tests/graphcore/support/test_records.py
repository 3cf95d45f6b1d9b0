"""Files of records, lines and events: damage and claims."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import graphcore as gc
from graphcore.opset.numerics.file_records import fixed_records, lines
from graphcore.support.crc32c import crc32c, masked
from graphcore.support.reading_limits import reading_limits
from graphcore.support.records import read_records, record_bytes
from graphcore.tf1.summary.messages import Event, summary_iterator

PACKED: dict[str, Any] = {"": bytes, "ZLIB": zlib.compress, "GZIP": gzip.compress}


def claiming(size: int) -> bytes:
    """The head of a record of this size, with the right checksum, and some data."""
    length = struct.pack("<Q", size)
    return length + struct.pack("<I", masked(crc32c(length))) + b"data"


@pytest.mark.parametrize("size", [2**31, 2**40, 2**63, 2**64 - 1])
@pytest.mark.parametrize("compression", ["", "ZLIB", "GZIP"])
def test_a_record_that_claims_more_than_there_is_is_cut_off(size: int, compression: str, tmp_path: Path) -> None:
    (tmp_path / "r").write_bytes(PACKED[compression](claiming(size)))
    with pytest.raises(gc.errors.InvalidArgumentError, match="truncated record at 0"):
        list(read_records(tmp_path / "r", compression))


@pytest.mark.parametrize("compression", ["ZLIB", "GZIP"])
def test_what_inflates_beyond_the_limit_is_refused(compression: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading_limits, "inflated_bytes", 1 << 20)
    path = str(tmp_path / "r")
    Path(path).write_bytes(PACKED[compression](claiming(1 << 24) + bytes(1 << 24)))
    reads: list[Iterator[bytes]] = [
        read_records(path, compression),
        lines(path, compression),
        fixed_records(path, 0, 8, 0, compression=compression),
    ]
    for read in reads:
        with pytest.raises(gc.errors.ResourceExhaustedError, match="have more than 1048576 bytes in one piece") as refused:
            list(read)
        assert "reading_limits.inflated_bytes = " in refused.value.suggestion


def test_long_and_short_lines_are_read_whole(tmp_path: Path) -> None:
    wanted = [b"a" * 300_000, b"", b"b" * 65_536, b"c\r", b"d" * 65_535, b"\r", b"e"]
    (tmp_path / "t").write_bytes(b"\n".join(wanted))
    told = [line.removesuffix(b"\r") for line in wanted]
    assert list(lines(str(tmp_path / "t"))) == told
    assert list(lines(str(tmp_path / "t"), skipped=3)) == told[3:]


def test_a_record_that_is_no_event_is_refused(tmp_path: Path) -> None:
    (tmp_path / "e").write_bytes(record_bytes(Event(step=3).SerializeToString()) + record_bytes(b"\xff\xff"))
    events = summary_iterator(str(tmp_path / "e"))
    assert next(events).step == 3
    with pytest.raises(gc.errors.InvalidArgumentError, match=r"Record 1 of '.*e' is no Event"):
        next(events)
