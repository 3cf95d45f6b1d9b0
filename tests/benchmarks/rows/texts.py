"""Reading GraphDefs in text form: a long list, and a typical graph."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.benchmarks.work import Budget, Row, Work

NUMBERS = 200_000
TRANSFORMER = Path(__file__).parents[2] / "data" / "transformer.pb"


def long_list() -> str:
    """A node with a list of ints, as protobuf prints it."""
    return "node {\n  attr {\n    key: 'a'\n    value {\n      list {\n" + "        i: 12345\n" * NUMBERS + "      }\n    }\n  }\n}\n"


def graph_text() -> str:
    """A graph that TensorFlow made."""
    from graphcore.definitions.wire import graph_def_from_bytes, graph_def_to_text

    return graph_def_to_text(graph_def_from_bytes(TRANSFORMER.read_bytes()))


def tensorflow_graph_text() -> str:
    """The same, printed there."""
    import tensorflow as tf

    return str(tf.compat.v1.GraphDef.FromString(TRANSFORMER.read_bytes()))


def our_reading(make: Callable[[], str]) -> Work:
    """From bytes to a GraphDef value."""
    from graphcore.definitions.wire import graph_def_from_bytes

    data = make().encode()
    return Work(run=lambda: graph_def_from_bytes(data))


def tensorflow_reading(make: Callable[[], str]) -> Work:
    """From text to a GraphDef message, by protobuf."""
    import tensorflow as tf
    from google.protobuf import text_format

    text = make()

    def run() -> Any:
        return text_format.Parse(text, tf.compat.v1.GraphDef())

    return Work(run=run)


LIST = Row(
    order=3.8,
    title=f"read a list of {NUMBERS:,} ints in text",
    unit="ms",
    budgets=(Budget(0.2, "tensorflow"),),
    ours=lambda: our_reading(long_list),
    tensorflow=lambda: tensorflow_reading(long_list),
)
GRAPH = Row(
    order=3.9,
    title="read a transformer's graph in text",
    unit="ms",
    budgets=(Budget(0.7, "tensorflow"),),
    ours=lambda: our_reading(graph_text),
    tensorflow=lambda: tensorflow_reading(tensorflow_graph_text),
)
