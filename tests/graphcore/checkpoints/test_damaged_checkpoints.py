"""Checkpoints that claim more than they hold: each is refused before memory is taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.checkpoints import CheckpointReader, merge_checkpoints, write_checkpoint
from graphcore.checkpoints.bundles import Entry, entry_bytes, header_bytes
from graphcore.checkpoints.slices import slice_key
from graphcore.checkpoints.sorted_table import table_bytes
from graphcore.checkpoints.varints import varint
from graphcore.support.crc32c import crc32c, masked

HUGE = 2**63 - 1


def index(path: Path, *entries: tuple[bytes, bytes], header: bytes | None = None) -> str:
    """A checkpoint with this index and 64 bytes of elements."""
    Path(f"{path}.index").write_bytes(table_bytes([(b"", header_bytes(1) if header is None else header), *entries]))
    Path(f"{path}.data-00000-of-00001").write_bytes(bytes(64))
    return str(path)


def entry(shape: tuple[int, ...], size: int = 0, dtype: gc.DType = gc.float32, slices: Any = ()) -> bytes:
    return entry_bytes(Entry(dtype, shape, 0, 0, size, masked(crc32c(bytes(size))), slices))


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (entry((2**40, 2**20)), gc.errors.ResourceExhaustedError),
        (entry((2**40, 2**20), dtype=gc.string), gc.errors.ResourceExhaustedError),
        (entry((0, HUGE, HUGE)), gc.errors.ResourceExhaustedError),
        (entry((0, *[HUGE] * 40)), gc.errors.ResourceExhaustedError),
        (entry((1,) * 200, 4), gc.errors.UnimplementedError),
        (entry((2**10,), 2**12), gc.errors.InvalidArgumentError),
        (entry((2**40, 2**20), slices=(((0, 1), (0, 1)),)), gc.errors.InvalidArgumentError),
    ],
    ids=["4 EiB", "as many strings", "none of too many", "none of far too many", "200 dimensions", "beyond its file", "a part of 4 EiB"],
)
def test_a_tensor_that_claims_more_than_there_is_is_refused(made: bytes, kind: type[gc.GraphError], tmp_path: Path) -> None:
    with pytest.raises(kind) as refused:
        CheckpointReader(index(tmp_path / "c", (b"W", made))).get_tensor("W")
    if kind is gc.errors.ResourceExhaustedError:
        assert (refused.value.required, refused.value.came) != ("", "")


def test_parts_that_share_bytes_make_no_large_tensor(tmp_path: Path) -> None:
    parts = tuple(((i, 1), (0, -1)) for i in range(100))
    entries = [(b"W", entry((100, 16), slices=parts))] + [(slice_key(b"W", part), entry((1, 16), 64)) for part in parts]
    with pytest.raises(gc.errors.InvalidArgumentError, match="two of its parts share the bytes at 0"):
        CheckpointReader(index(tmp_path / "c", *sorted(entries))).get_tensor("W")


def growing_block(count: int) -> bytes:
    """A block of keys each of which is the one before and a letter."""
    rows = b"".join(varint(i) + varint(1) + varint(0) + b"k" for i in range(count))
    return rows + (0).to_bytes(4, "little") + (1).to_bytes(4, "little")


def table_of(block: bytes, times: int = 1) -> bytes:
    """A table whose index names one block several times."""
    framed = block + b"\0"
    data = framed + masked(crc32c(framed)).to_bytes(4, "little")
    handle = varint(0) + varint(len(block))
    rows = b"".join(varint(0) + varint(4) + varint(len(handle)) + b"%04d" % i + handle for i in range(times))
    listing = rows + (0).to_bytes(4, "little") + (1).to_bytes(4, "little") + b"\0"
    handles = (handle + varint(len(data)) + varint(len(listing) - 1)).ljust(40, b"\0")
    return data + listing + masked(crc32c(listing)).to_bytes(4, "little") + handles + (0xDB4775248B80FB57).to_bytes(8, "little")


def test_an_index_whose_keys_grow_out_of_a_few_bytes_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c.index").write_bytes(table_of(growing_block(100_000)))
    with pytest.raises(gc.errors.ResourceExhaustedError, match=r"more than 64 times as long as its \d+ bytes"):
        CheckpointReader(tmp_path / "c")


def test_an_index_that_names_one_block_again_and_again_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c.index").write_bytes(table_of(growing_block(100), times=1000))
    with pytest.raises(gc.errors.InvalidArgumentError, match="begins within another block"):
        CheckpointReader(tmp_path / "c")


@pytest.mark.parametrize("header", [b"\xff\xff", b"", header_bytes(1)[:1]])
def test_a_damaged_header_is_refused_when_checkpoints_are_read_and_merged(header: bytes, tmp_path: Path) -> None:
    path = index(tmp_path / "c", header=header)
    with pytest.raises(gc.errors.InvalidArgumentError, match="header"):
        CheckpointReader(path)
    with pytest.raises(gc.errors.InvalidArgumentError, match="header"):
        merge_checkpoints([path], str(tmp_path / "merged"))


def test_a_header_that_claims_many_files_is_refused_at_the_first_that_is_missing(tmp_path: Path) -> None:
    path = index(tmp_path / "c", header=header_bytes(2**31 - 1))
    with pytest.raises(gc.errors.NotFoundError, match=r"there is no file '.*data-00000-of-2147483647'"):
        merge_checkpoints([path], str(tmp_path / "merged"))


def test_a_merge_that_fails_leaves_the_checkpoints_that_it_was_to_merge(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_checkpoint(str(tmp_path / name), [("same", None, gc.float64, np.arange(3.0))])
    with pytest.raises(gc.errors.InvalidArgumentError, match="'same' is in two of them"):
        merge_checkpoints([str(tmp_path / "a"), str(tmp_path / "b")], str(tmp_path / "c"))
    assert CheckpointReader(tmp_path / "b").get_tensor("same").tolist() == [0, 1, 2]


@pytest.mark.parametrize("spec", [b"\xff", b"9" * 5000 + b" 0,1", b"\xd9\xa3 0,1", b"4 6 0,1"])
def test_a_file_whose_restore_node_names_no_part_is_refused(spec: bytes, tmp_path: Path) -> None:
    with gc.Graph().as_default() as graph:
        gc.ops.restore_v2(gc.constant("p"), gc.constant(["W"]), gc.placeholder(gc.string, [1]), dtypes=[gc.float32], name="r")
        part = gc.constant([spec], name="part")
    graph_def = graph.as_graph_def()
    nodes = [
        node if node.name != "r" else type(node)(node.name, node.op, (*node.input[:2], part.op.name), node.device, node.attr)
        for node in graph_def.node
    ]
    gc.save(type(graph_def)(node=tuple(nodes), versions=graph_def.versions), tmp_path / "g.pb")
    with pytest.raises(gc.errors.InvalidArgumentError, match="Required a part of a tensor"):
        gc.load(tmp_path / "g.pb")
