"""Recorded runs of models by runners, one of which is written here and needs no framework."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import FailedPreconditionError, InvalidArgumentError
from graphcore.frontends.foreign import ForeignFunction, ForeignGraph, ForeignNode, ModuleCall, Port
from graphcore.frontends.lowering import lower
from graphcore.frontends.runs import run_recorded
from graphcore.graph import Graph
from widgets.scene.time_lens import recorded_times
from widgets.scene.value_lens import recorded_values

SCOPE = (ModuleCall("block", "Block"),)
OPS: dict[str, Any] = {"exp": np.exp, "log": np.log, "fail": lambda _: 1 / 0, "halves": lambda x: (x[:1], x[1:])}


class ChainRunner:
    """Runs a chain of NumPy's functions."""

    def __init__(self, nodes: list[ForeignNode]) -> None:
        self.nodes = nodes

    def run(self, feeds: Mapping[str, object], watch: gc.Watch | None = None) -> list[object]:
        values: dict[str, Any] = {}
        for node in self.nodes:
            if node.kind == "input":
                values[node.name] = [feeds[node.name]]
                if watch is not None:
                    watch.give(node.name, values[node.name])
                continue
            if watch is not None:
                watch.begin(node.name)
            result = OPS[node.op](*[values[ref[0]][ref[1]] for ref in node.inputs if ref is not None])
            values[node.name] = list(result) if isinstance(result, tuple) else [result]
            if watch is not None:
                watch.end(node.name, values[node.name])
        return [values[self.nodes[-1].name][0]]


def chain(*ops: str) -> Graph:
    nodes = [ForeignNode("x", "chain.Input", outputs=(Port("x", "float32", (2,)),), kind="input")]
    for number, op in enumerate(ops):
        ports = (Port("", "float32", (2,)),) * (2 if op == "halves" else 1)
        nodes.append(ForeignNode(f"node{number}", op, ((nodes[-1].name, 0),), ports, modules=SCOPE))
    main = ForeignFunction("main", outputs=((nodes[-1].name, 0),), nodes=nodes)
    return lower(ForeignGraph("chain", main, runner=lambda: ChainRunner(nodes)))


def trace_of(graph: Graph) -> gc.Trace:
    trace = graph.trace
    assert isinstance(trace, gc.Trace)
    return trace


def values_of(graph: Graph) -> gc.ValueRecords:
    values = trace_of(graph).values
    assert values is not None
    return values


def test_a_run_gives_results_and_the_statistics_of_each_node() -> None:
    graph = chain("log", "exp")
    x = np.array([1.0, 4.0], np.float32)
    (result,) = run_recorded(graph, [x])
    np.testing.assert_array_equal(result, np.exp(np.log(x)))
    stats = values_of(graph)["block/node0"]
    assert (stats.min, stats.max, stats.shape) == (0.0, float(np.log(np.float32(4))), (2,))
    assert values_of(graph)["x"].max == 4.0
    assert trace_of(graph).node_runs() == {"block/node0": 1, "block/node1": 1}


def test_the_lenses_show_the_run() -> None:
    graph = chain("log", "halves")
    with np.errstate(divide="ignore"):
        run_recorded(graph, [np.array([0.0, 4.0], np.float32)])
    lens, times = recorded_values(graph), recorded_times(graph)
    assert lens is not None
    assert lens.values.health.first is not None
    assert lens.values.health.first.node == "block/node0"
    assert lens.values.details, "there are histograms for the inspector"
    assert times is not None
    assert sum(times.times.runs) == 2
    assert [one.output for one in values_of(graph).of_node("block/node1")] == [0, 1]


def test_a_node_that_fails_is_marked_and_the_values_before_it_are_kept() -> None:
    graph = chain("exp", "fail", "exp")
    with pytest.raises(ZeroDivisionError):
        run_recorded(graph, [np.zeros(2, np.float32)])
    assert [node.name for node in graph.nodes if node.error is not None] == ["block/node1"]
    assert {one.node for one in values_of(graph)} == {"x", "block/node0"}
    OPS["fail"], failing = np.exp, OPS["fail"]
    try:
        run_recorded(graph, [np.zeros(2, np.float32)])
    finally:
        OPS["fail"] = failing
    assert [node.name for node in graph.nodes if node.error is not None] == []


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16, ml_dtypes.float8_e4m3fn, np.complex64, np.int8, np.bool_])
@pytest.mark.parametrize("shape", [(), (0, 3), (2,)])
def test_values_of_all_types_and_shapes_are_recorded(dtype: Any, shape: tuple[int, ...]) -> None:
    record = gc.RunRecord()
    record.give("x", [np.ones(shape, dtype), None, "text"])
    trace = record.trace(chain(), {})
    assert trace.values is not None
    (stats,) = trace.values
    assert stats.shape == shape
    assert stats.mean == (1 if stats.size else None)


def test_feeds_that_do_not_fit_are_refused_with_the_names_of_the_inputs() -> None:
    graph = chain("exp")
    with pytest.raises(InvalidArgumentError, match="no input 'y'; the inputs are x"):
        run_recorded(graph, (), {"y": 1})
    with pytest.raises(InvalidArgumentError, match="'x' got two values"):
        run_recorded(graph, [1], {"x": 1})
    with pytest.raises(InvalidArgumentError, match="at most 1 inputs"):
        run_recorded(graph, [1, 2])


def test_graphs_without_a_runner_say_so() -> None:
    with pytest.raises(FailedPreconditionError, match=r"gc\.Session"):
        run_recorded(Graph())
    with pytest.raises(FailedPreconditionError, match="kind chain"):
        run_recorded(lower(ForeignGraph("chain", ForeignFunction("main"))))
