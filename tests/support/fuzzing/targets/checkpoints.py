"""Checkpoints: damaged bytes, and indexes with right checksums that claim what cannot be."""

from __future__ import annotations

import contextlib
import random
import tempfile
from pathlib import Path
from typing import Final

import numpy as np

import graphcore as gc
from graphcore.checkpoints import CheckpointReader, merge_checkpoints, parse_slice_spec
from graphcore.checkpoints.bundles import Entry, header_bytes, strings_bytes
from graphcore.checkpoints.slices import slice_key
from graphcore.checkpoints.sorted_table import table_bytes
from graphcore.checkpoints.varints import varint
from graphcore.definitions.wire import schema
from graphcore.errors import GraphError
from graphcore.support.crc32c import crc32c, masked
from tests.support.fuzzing.target import Target, maybe_damaged, packed, unpacked

_SIZES: Final = (0, 1, 1, 2, 3, 16, 17, 2**31, 2**40, 2**62, 2**63 - 1)
_TYPES: Final = (gc.float32, gc.float32, gc.int64, gc.string, gc.bfloat16, gc.bool_, gc.complex128, gc.resource, gc.float32.ref, gc.qint8)
_NAMES: Final = (b"W", b"b", b"layer/W", b"\xff", b"\0", b"a" * 300, b"_CHECKPOINTABLE_OBJECT_GRAPH")
_SPECS: Final = (
    "4 6 0,1:-",
    "4 4 0,2:1,3",
    "- -",
    "",
    "9" * 5000 + " 0,1",
    "\u0663 0,1",
    "4 0,9",
    "4 6 -",
    "0 -",
    "9223372036854775807 9 -:0,1",
)
_MAGIC: Final = 0xDB4775248B80FB57


def _shape(rng: random.Random) -> tuple[int, ...]:
    if rng.random() < 0.03:
        return (rng.choice((0, 1)),) * rng.choice((64, 65, 200, 254))
    few = rng.random() < 0.7
    return tuple(rng.choice(_SIZES[:6] if few else _SIZES) for _ in range(rng.choice((0, 1, 1, 2, 2, 3))))


def _entry(data: bytes, rng: random.Random, slices: tuple[tuple[tuple[int, int], ...], ...] = ()) -> tuple[Entry, bytes]:
    """An entry, mostly a right one, and its bytes."""
    shape, dtype = _shape(rng), rng.choice(_TYPES)
    count = int(np.prod([min(size, 32) for size in shape], dtype=np.int64)) if len(shape) < 5 else 1
    if dtype is gc.string:
        held, checksum = strings_bytes([rng.choice(_NAMES) for _ in range(min(count, 100))])
    else:
        held = rng.randbytes(min(count, 100) * (dtype.as_numpy.itemsize if dtype.as_numpy is not None else 1))
        checksum = masked(crc32c(held))
    offset, size = len(data), len(held)
    if rng.random() < 0.1:
        offset, size = rng.choice(_SIZES), rng.choice((size, *_SIZES))
    return Entry(dtype, shape, rng.choice((0, 0, 0, 0, 1, -1, 2**31 - 1)), offset, size, checksum, slices), held


def _bytes(entry: Entry) -> bytes:
    """An entry as it is in an index, whatever its shape."""
    message = schema.BundleEntry(
        dtype=entry.dtype.number, shard_id=entry.shard, offset=entry.offset, size=entry.size, crc32c=entry.checksum
    )
    message.shape.SetInParent()
    for size in entry.shape:
        message.shape.dim.add(size=size)
    for extents in entry.slices:
        part = message.slices.add()
        for start, length in extents:
            part.extent.add(start=start, length=length) if length >= 0 else part.extent.add(start=start)
    data: bytes = message.SerializeToString()
    return data


def _entries(rng: random.Random) -> tuple[list[tuple[bytes, bytes]], bytes]:
    data = b""
    found: dict[bytes, bytes] = {}
    for _ in range(rng.choice((0, 1, 1, 2, 5))):
        name = rng.choice(_NAMES)
        slices = tuple(
            tuple((rng.choice((0, 1)), rng.choice((-1, 1, 2, 2**62))) for _ in range(rng.choice((1, 2))))
            for _ in range(rng.choice((0, 0, 1, 3)))
        )
        entry, held = _entry(data, rng, slices)
        found[name] = maybe_damaged(_bytes(entry), rng, 0.1)
        data += held
        for extents in slices:
            part, held = _entry(data, rng)
            with contextlib.suppress(GraphError, OverflowError):
                found[slice_key(name, extents)] = _bytes(part)
            data += held
    return sorted(found.items()), data


def _odd_table(rng: random.Random) -> bytes:
    """A table of blocks with right checksums, whose entries and places are random."""

    def framed(block: bytes) -> bytes:
        whole = block + bytes([rng.choice((0, 0, 0, 0, 0, 1, 7))])
        return whole + masked(crc32c(whole)).to_bytes(4, "little")

    def block(rows: bytes) -> bytes:
        return rows + (0).to_bytes(4, "little") + rng.choice((1, 1, 1, 2, 0, 2**31)).to_bytes(4, "little")

    rows = b""
    for i in range(rng.choice((0, 1, 3, 2000))):
        shared = rng.choice((0, i, i, 2**40))
        rows += varint(shared) + varint(rng.choice((1, 1, 0, 2**33))) + varint(rng.choice((0, 1, 2**63))) + rng.choice((b"k", b"", b"kk"))
    data = framed(block(rows))
    handle = varint(rng.choice((0, 0, 1, 2**63))) + varint(rng.choice((len(data) - 5, len(data), 0)))
    listing = framed(
        block(b"".join(varint(0) + varint(2) + varint(len(handle)) + b"%02d" % i + handle for i in range(rng.choice((1, 2, 90)))))
    )
    place = varint(len(data)) + varint(len(listing) - 5)
    return data + listing + (handle + place).ljust(40, b"\0")[:40] + _MAGIC.to_bytes(8, "little")


def make(rng: random.Random) -> bytes:
    """An index, a data file, and the number of files that the index claims."""
    entries, data = _entries(rng)
    header = maybe_damaged(header_bytes(rng.choice((1, 1, 1, 1, 2, 0, -1, 2**31 - 1))), rng, 0.05)
    index = _odd_table(rng) if rng.random() < 0.2 else table_bytes([(b"", header), *entries])
    return packed(maybe_damaged(index, rng, 0.3), maybe_damaged(data, rng, 0.2), rng.choice(_SPECS).encode())


def check(given: bytes) -> None:
    """Read all there is in a checkpoint, and merge it with itself."""
    index, data, spec = unpacked(given, 3)
    with tempfile.TemporaryDirectory() as name:
        path = f"{name}/model"
        Path(f"{path}.index").write_bytes(index)
        for shard, count in ((0, 1), (0, 2), (1, 2)):
            Path(f"{path}.data-{shard:05d}-of-{count:05d}").write_bytes(data)
        part = None
        with contextlib.suppress(GraphError):
            part = parse_slice_spec(spec)
        reader = CheckpointReader(path)
        reader.debug_string()
        for key in reader:
            with contextlib.suppress(GraphError):
                reader.get_tensor(key)
            with contextlib.suppress(GraphError):
                reader.get_part(key, part)
        with contextlib.suppress(GraphError):
            gc.train.list_variables(path)  # type: ignore[attr-defined]  # the namespace is made when it is asked for
        merge_checkpoints([path], f"{name}/merged")


CHECKPOINTS: Final = Target(make, check)
