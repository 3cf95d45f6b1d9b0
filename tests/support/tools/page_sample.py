"""Writes `tests/data/saved_picture.json`, a saved picture whose graph the tests of the viewer damage.

python -m tests.support.tools.page_sample
"""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Final

import msgspec

import graphcore as gc
from widgets import GraphView
from widgets.render.messages import plain

TARGET: Final = Path(__file__).parents[2] / "data" / "saved_picture.json"


def sample() -> gc.Graph:
    """A graph with scopes, repeats, calls, a branch, a loop, gradients, and sizes that are not known."""

    @gc.function
    def half(x: gc.Tensor) -> gc.Tensor:
        return gc.tanh(x) * 0.5

    with gc.Graph().as_default() as graph:
        x = gc.placeholder(gc.float32, [None, 3], name="x")
        y = x
        for i in range(3):
            with gc.name_scope(f"layer_{i}"):
                w = gc.Variable(gc.ones([3, 3]), name="w")
                y = gc.tanh(gc.matmul(y, w))
        y = half(half(y))
        y = gc.cond(gc.reduce_sum(y) > 0.0, lambda: y * 2.0, lambda: y - 1.0)
        _, y = gc.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, v * 0.5), [gc.constant(0), y])
        with gc.control_dependencies([y]):
            loss = gc.reduce_sum(gc.square(y), name="loss")
        gc.gradients(loss, x)
    return graph


def written() -> str:
    """The text of the file, without the place of this one."""
    picture = GraphView(sample()).take_still(with_graph=True).picture
    lines = gzip.decompress(base64.b64decode(picture.graph_gzip_base64)).splitlines()
    lines[3] = json.dumps([{**row, "file": "sample.py"} for row in json.loads(lines[3])]).encode()
    graph = base64.b64encode(gzip.compress(b"\n".join(lines), mtime=0)).decode("ascii")
    return json.dumps(plain(msgspec.structs.replace(picture, model="", graph_gzip_base64=graph)), separators=(",", ":")) + "\n"


if __name__ == "__main__":
    TARGET.write_text(written(), "utf-8")
