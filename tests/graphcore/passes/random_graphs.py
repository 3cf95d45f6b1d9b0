"""Random graphs for passes: constants, equal nodes, identities, list converters, calls, state."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

import graphcore as gc
from tests.graphcore.passes.function_examples import X_TIMES_16, X_TIMES_FOUR, X_TIMES_TWO, arg, library

FLOAT = gc.float32
KINDS = (
    *("Add", "Mul", "Sub", "Neg", "Identity", "XTimesTwo", "XTimes16", "AddTwice", "_ListToArray", "PartitionedCall", "Shaped", "Draw"),
    *("StatefulPartitionedCall", "Const", "Const", "PlaceholderWithDefault", "Add", "Neg", "Draw"),
)
ADD_TWICE = """AddTwice(x:float, y:float) -> (s:float, t:float) {
  s = Add[T=float](x, y)
  t = Add[T=float](s:z:0, y) @ s
  @return done = t
  return s = s:z:0
  return t = t:z:0
}"""
FEEDS = {"a": np.array([1.0, 2.0], np.float32), "b": np.array([-3.0, 0.5], np.float32)}
Line = tuple[str, int, int, int]
"""The kind of a node, two numbers that choose its inputs, and one that chooses its control input (0: none)."""


def functions() -> gc.FunctionLibraryDefinition:
    """The functions called by the graphs."""
    return library(X_TIMES_TWO, X_TIMES_FOUR, X_TIMES_16, ADD_TWICE)


# Few distinct numbers, so that equal nodes are frequent.
numbers = st.integers(0, 4)
lines = st.lists(st.tuples(st.sampled_from(KINDS), numbers, numbers, st.sampled_from([0, 0, 0, 1, 2, 3])), min_size=6, max_size=18)


def build(some: Sequence[Line]) -> gc.Graph:
    """Build the graph described by the lines; four returns take its last tensors."""
    graph = gc.Graph()
    graph.library.add_library(functions())
    tensors = [arg(graph, "a", 0), arg(graph, "b", 1)]
    for tensor in tensors:
        tensor.set_shape([2])
    for kind, first, second, wait in some:
        x, y = tensors[first % len(tensors)], tensors[second % len(tensors)]
        waits_for = [tensors[-1 - (wait - 1) % len(tensors)].node] if wait else []
        with graph.control_dependencies(waits_for):
            tensors += _add(graph, kind, x, y, first).outputs
    for index, tensor in enumerate(tensors[-4:]):
        graph.apply_op("_Retval", [tensor], {"index": index}, name=f"ret{index}")
    return graph


def _add(graph: gc.Graph, kind: str, x: gc.Tensor, y: gc.Tensor, number: int) -> gc.Node:
    if kind in {"Add", "Mul", "Sub", "AddTwice"}:
        return graph.apply_op(kind, [x, y])
    if kind == "Const":
        return graph.apply_op(kind, attrs={"dtype": FLOAT, "value": gc.TensorValue(np.full(2, number % 3, np.float32))})
    if kind == "_ListToArray":
        return graph.apply_op(kind, [[x, y]], {"T": FLOAT, "N": 2})
    if kind.endswith("PartitionedCall"):
        return graph.apply_op(kind, [[x]], {"Tout": [FLOAT], "f": gc.Func("XTimesFour", {"T": FLOAT})})
    if kind == "PlaceholderWithDefault":
        return graph.apply_op(kind, [x], {"shape": gc.Shape([2])})
    if kind == "Shaped":
        shape = graph.apply_op("Shape", [x]).outputs[0]
        return graph.apply_op("Reshape", [y, shape])
    if kind == "Draw":
        shape = graph.apply_op("Shape", [x]).outputs[0]
        return graph.apply_op("RandomUniform", [shape], {"dtype": FLOAT, "seed": 1 + number % 2, "seed2": 2})
    return graph.apply_op(kind, [x])


def results(graph: gc.Graph) -> list[list[float]]:
    """The values of the returns, in a new session so that random numbers start again."""
    rets = [node.inputs[0] for node in graph.nodes if node.op == "_Retval"]
    feeds = {graph.get_tensor_by_name(f"{name}:0"): value for name, value in FEEDS.items()}
    with np.errstate(all="ignore"):
        return [np.asarray(value).tolist() for value in gc.Session(graph).run(rets, feeds)]
