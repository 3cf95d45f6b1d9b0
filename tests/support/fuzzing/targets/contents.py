"""The ops that read files: images, examples, tensors, texts. They run, as in a program that reads the data of others."""

from __future__ import annotations

import base64
import contextlib
import functools
import io
import random
import zlib
from typing import Any, Final

import numpy as np

import graphcore as gc
from graphcore.definitions.wire.tensors import tensor_to_bytes
from graphcore.errors import GraphError
from tests.support.fuzzing.fuzz_inputs import VALUES
from tests.support.fuzzing.target import Target, maybe_damaged

_EXAMPLE: Final = bytes.fromhex("0a2d0a0c0a016e12071a050a030304050a0a0a017712050a030a01610a110a0178120c120a0a080000c03f000000c0")


@functools.cache
def _images() -> list[bytes]:
    try:
        from PIL import Image
    except ImportError:
        return []
    found = []
    for kind in ("PNG", "JPEG", "GIF", "BMP"):
        file = io.BytesIO()
        Image.fromarray(np.arange(48, dtype=np.uint8).reshape(4, 4, 3)).save(file, kind)
        found.append(file.getvalue())
    return found


@functools.cache
def _sources() -> list[bytes]:
    tensors = [tensor_to_bytes(value) for value in VALUES["tensor"] if isinstance(value, gc.TensorValue)]
    texts = [
        b"1,2.5,a",
        b"1",
        b"-1e999",
        b'"a","b"',
        base64.urlsafe_b64encode(b"abcd"),
        zlib.compress(b"a" * 50),
        bytes(16),
        b"9" * 5000,
        b"0x1p4",
        b"nan",
    ]
    return [*_images(), *tensors, *texts, _EXAMPLE]


def make(rng: random.Random) -> bytes:
    """The contents of a small file, mostly damaged."""
    return maybe_damaged(rng.choice(_sources()), rng, 0.9)


@functools.cache
def _readers() -> tuple[gc.Session, Any, list[Any]]:
    with gc.Graph().as_default() as graph:
        given = gc.placeholder(gc.string, [])
        row = gc.reshape(given, [1])
        o: Any = gc.ops
        made = [
            o.decode_raw(given, out_type=gc.int16),
            *[o.string_to_number(given, out_type=dtype) for dtype in (gc.float32, gc.int32, gc.int64, gc.float64)],
            o.decode_base64(given),
            o.decode_csv(row, [[1], [1.0], ["a"]]),
            o.decode_png(given), o.decode_jpeg(given), o.decode_gif(given), o.decode_bmp(given), o.extract_jpeg_shape(given),
            o.parse_example(row, [], [], ["n", "x"], [np.array([], np.int64), np.zeros(2, np.float32)], sparse_types=[], dense_shapes=[gc.Shape([None]), gc.Shape([2])]),
        ]  # fmt: skip
        return gc.Session(graph), given, made


def check(data: bytes) -> None:
    """Read the contents by every op."""
    session, given, made = _readers()
    for fetched in made:
        with contextlib.suppress(GraphError):
            session.run(fetched, {given: data})


CONTENTS: Final = Target(make, check)
