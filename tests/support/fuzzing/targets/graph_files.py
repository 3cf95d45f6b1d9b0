"""DOT text and event files, with damage. The first byte of an input says which of them it is."""

from __future__ import annotations

import functools
import random
import tempfile
from pathlib import Path
from typing import Final

import graphcore as gc
from graphcore.definitions.wire import graph_def_to_bytes, schema
from graphcore.support.records import record_bytes
from tests.support.fuzzing.fuzz_inputs import damaged
from tests.support.fuzzing.target import Target
from widgets import to_outline

_ENDINGS: Final = (".dot", ".tfevents")
_DOT: Final = rb"""// comment
strict digraph "G x" {
    rankdir=LR; node [shape=box]; edge [color="red", style=dashed]
    a:p:n -> b -> {c d} [label="next\nline"] /* more */
    subgraph cluster_one { label="First part"; d [label=<<b>bold</b> D>]; subgraph { e f } -> g; }
    "x \"y" -> a; -1.5 -> a; b + c; c -> a
}
"""
_PIECES: Final = (
    b"{",
    b"}",
    b"[",
    b"]",
    b"->",
    b"--",
    b"<",
    b">",
    b'"',
    b"subgraph ",
    b"cluster_",
    b"=",
    b"label=",
    b":",
    b"+",
    b"\\",
    b"/*",
    b"{a b} -> ",
)


@functools.cache
def _graph() -> bytes:
    graph = gc.Graph()
    with graph.as_default():
        _ = gc.constant(1.0, name="x") + 2.0
    return graph_def_to_bytes(graph.as_graph_def())


def _text(rng: random.Random) -> bytes:
    """DOT text with damage, or pieces of it many times over."""
    if rng.random() < 0.1:
        count = rng.choice((10, 1000, 50_000))
        return b"digraph {" + b"".join([rng.choice(_PIECES) for _ in range(rng.randrange(4))]) * count
    data = bytearray(_DOT)
    for _ in range(rng.randrange(4)):
        place = rng.randrange(20, len(data))
        data[place:place] = rng.choice(_PIECES)
    return damaged(bytes(data), _DOT, rng) if rng.random() < 0.5 else bytes(data)


def _events(rng: random.Random) -> bytes:
    """An event file; its records are right, or damaged after they are written, too."""
    records = []
    for step in range(rng.randrange(1, 4)):
        event = schema.Event(wall_time=1.0, step=step)
        if step == 0:
            event.file_version = "brain.Event:2"
        elif rng.random() < 0.5:
            event.graph_def = damaged(_graph(), _graph(), rng) if rng.random() < 0.5 else _graph()
        else:
            value = event.summary.value.add(tag="f")
            value.metadata.plugin_data.plugin_name = "graph_run_metadata_graph"
            function = b"\x12" + bytes([len(_graph()) & 127]) + _graph()
            value.tensor.string_val.append(damaged(b"\x22" + bytes([len(function) & 127]) + function, function, rng))
        record = event.SerializeToString()
        records.append(record_bytes(damaged(record, record, rng) if rng.random() < 0.3 else record))
    data = b"".join(records)
    return damaged(data, data, rng) if rng.random() < 0.3 else data


def make(rng: random.Random) -> bytes:
    """A file with damage."""
    number = rng.randrange(len(_ENDINGS))
    return bytes([number]) + (_text, _events)[number](rng)


def check(data: bytes) -> None:
    """Open the file and show it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"x{_ENDINGS[data[0] % len(_ENDINGS)] if data else ''}"
        path.write_bytes(data[1:])
        to_outline(gc.load(path, allow_unknown_ops=True))


GRAPH_FILES: Final = Target(make, check)
