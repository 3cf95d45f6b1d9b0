"""Files of records: events, TFRecords, lines, in each compression."""

from __future__ import annotations

import contextlib
import functools
import gzip
import random
import struct
import tempfile
import zlib
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

from graphcore.definitions.wire import schema
from graphcore.errors import GraphError
from graphcore.opset.numerics.file_records import fixed_records, lines
from graphcore.support.crc32c import crc32c, masked
from graphcore.support.records import COMPRESSIONS, read_records, record_bytes
from graphcore.tf1.summary.messages import Event, summary_iterator
from tests.support.fuzzing.messages import fill
from tests.support.fuzzing.target import Target, maybe_damaged

_MOST: Final = 1000
_PACKED: Final[tuple[Callable[[bytes], bytes], ...]] = (
    bytes,
    zlib.compress,
    functools.partial(gzip.compress, mtime=0),  # the same input for the same number
)


def _claim(rng: random.Random) -> bytes:
    length = struct.pack("<Q", rng.choice((0, 1, 2**20, 2**31, 2**40, 2**63, 2**64 - 1)))
    return length + struct.pack("<I", masked(crc32c(length)))


def make(rng: random.Random) -> bytes:
    """Records of events, with right checksums for the most part."""
    data = b""
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        record = (
            fill(Event(), rng).SerializeToString()
            if rng.random() < 0.8
            else schema.BundleEntry(size=rng.getrandbits(60)).SerializeToString()
        )
        data += _claim(rng) if rng.random() < 0.1 else record_bytes(maybe_damaged(record, rng, 0.4))
    data = maybe_damaged(data, rng, 0.3)
    if rng.random() < 0.03:
        data += bytes(rng.choice((1 << 20, 1 << 24)))
    return maybe_damaged(rng.choice(_PACKED)(data), rng, 0.2)


def check(data: bytes) -> None:
    """Read the file in each way."""
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(data)
        reads: list[Iterator[Any]] = [summary_iterator(file.name)]
        for kind in COMPRESSIONS:
            reads += [read_records(file.name, kind), lines(file.name, kind), fixed_records(file.name, 1, 3, 1, 2, compression=kind)]
        for read in reads:
            with contextlib.suppress(GraphError):
                list(islice(read, _MOST))


RECORDS: Final = Target(make, check)
