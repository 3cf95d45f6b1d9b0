"""Importing the GraphDef of the mix with shape inference, and the memory of a graph's node."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.benchmarks.rows.mix import our_graph, tensorflow_graph
from tests.benchmarks.work import Budget, Row, Work

SIZES = {1_000: 12, 10_000: 12, 100_000: 20}
HELD = 100_000
HELD_LIMIT = 3
ROOT = Path(__file__).parents[3]

# A new process, since memory freed by an earlier measurement would be reused and not show.
PROGRAM = """
import gc
from tests.benchmarks.rows.interchange import resident
from tests.benchmarks.rows import mix
mix.{graph}(1_000)
gc.collect()
before = resident()
held = mix.{graph}({nodes})
{look}
print(resident() - before)
"""


def resident() -> int:
    """The resident bytes of this process."""
    try:
        fields = Path("/proc/self/status").read_text().split()
        return int(fields[fields.index("VmRSS:") + 1]) * 1024
    except OSError:
        done = subprocess.run(["ps", "-o", "rss=", "-p", str(os.getpid())], capture_output=True, text=True, check=True)
        return int(done.stdout) * 1024


def our_import(nodes: int) -> Work:
    """Import a GraphDef value, without parsing."""
    import graphcore as gc

    graph_def = our_graph(nodes)[0].as_graph_def()

    def run(graph: gc.Graph) -> None:
        gc.import_graph_def(graph_def, graph, prefix="")
        assert len(graph.nodes) == nodes + 3

    return Work(run=run, prepare=gc.Graph, fewest=1, per=nodes)


def tensorflow_import(nodes: int) -> Work:
    """The same in TensorFlow."""
    import tensorflow as tf

    graph_def = tensorflow_graph(nodes)[0].as_graph_def()

    def run(graph: Any) -> None:
        with graph.as_default():
            tf.import_graph_def(graph_def, name="")

    return Work(run=run, prepare=tf.Graph, fewest=1, per=nodes)


def import_row(place: int, nodes: int, limit: float) -> Row:
    """The row of one size."""
    return Row(
        order=3.0 + place / 10,
        title=f"import_graph_def of {nodes:,} nodes with shapes, a node",
        unit="us",
        budgets=(Budget(limit),),
        ours=lambda: our_import(nodes),
        tensorflow=lambda: tensorflow_import(nodes),
        most_rounds=3,
    )


def held_by(graph: str, look: str = "") -> Callable[[], Work]:
    """The memory that a graph adds to a process, by node."""
    program = PROGRAM.format(graph=graph, nodes=HELD, look=look)

    def figure() -> float:
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
        return float(done.stdout.split()[-1])

    return lambda: Work(figure=figure, per=HELD)


def memory_row(place: int, title: str, look: str) -> Row:
    """The row of a graph that was only built, or also accessed through networkx."""
    return Row(
        order=3.5 + place / 10,
        title=title,
        unit="KB",
        budgets=(Budget(HELD_LIMIT),),
        ours=held_by("our_graph", look),
        tensorflow=held_by("tensorflow_graph"),
        most_rounds=1,
    )


IMPORT_1K, IMPORT_10K, IMPORT_100K = (import_row(place, nodes, limit) for place, (nodes, limit) in enumerate(SIZES.items()))
HELD_BUILT = memory_row(0, "memory of a graph of 100,000 nodes, a node", "")
HELD_SEEN = memory_row(1, "the same with graph.nx asked for, a node", "held[0].nx")
