"""Random graphs against TensorFlow's importer: the same verdicts."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphcore as gc
from graphcore.definitions import GraphDef, OpDef, summarize_node_def
from graphcore.definitions.wire import graph_def_to_bytes
from graphcore.errors import GraphError
from graphcore.graph import import_graph_def
from tests.oracle.cases.graph_cases import case
from tests.oracle.conftest import Oracle

SIDE = "tests.oracle.sides.graph_side"
CASES = 3_000
# Intended differences of judgement: by a part of the refusal's text, with the reason. Each is counted and printed; an unexplained
# difference fails.
OURS_REFUSES = {
    "NodeDef mentions attr '": "TensorFlow 2.21 logs and ignores attrs that the op does not have; here they are refused, as its C++ builder does",
    "has an _output_shapes attribute inconsistent": "its Enter says nothing of shapes; here the shape goes on into the loop, and the attr is refused",
}
TENSORFLOW_REFUSES = {
    "Shape must be broadcasted with rank": "its softmax cross entropy cannot wait until an unknown rank is known",
    "pos and len shapes must match": "its Substr cannot wait until unknown sizes are known",
    "out of range for an int32": "it keeps this attr in an int32; here the size of a block may be any int64",
    "Shape must be rank -1 but is rank": "its EnsureShape takes an unknown shape for a rank of -1",
    "block_shape must have rank 1": "its BatchToSpaceND cannot wait until an unknown rank is known",
    "block_shape must have known size": "its BatchToSpaceND cannot wait until an unknown size is known",
}
FED_TWICE = "its importer counts every edge from a NextIteration to a Merge as one that closes a loop"


@pytest.fixture(scope="module")
def ops(oracle: Oracle) -> list[OpDef]:
    """The common ops without those on handles, as shapes behind handles are not compared."""
    plain = [entry.op_def for entry in gc.op_registry if not entry.op_def.name.startswith("_")]
    handles = {gc.resource, gc.variant}
    ours = {op_def.name: op_def for op_def in plain if not handles & {arg.type for arg in (*op_def.input_arg, *op_def.output_arg)}}
    for name in ("Enter", "RefEnter"):  # TensorFlow leaves the shapes entering a loop unknown
        ours.pop(name, None)
    return [ours[name] for name in oracle.call(f"{SIDE}:known_ops", sorted(ours))]


def refusal(graph_def: GraphDef) -> str:
    """The reason for which it cannot be imported here; "" if it can."""
    graph = gc.Graph()
    try:
        import_graph_def(graph_def, graph)
    except GraphError as error:
        assert not len(graph), "a failed import leaves the graph as it was"
        return error.message
    assert len(graph) == len(graph_def.node)
    return ""


def why(ours: str, theirs: str, graph_def: GraphDef) -> str | None:
    """The reason for an allowed difference, None if there is none."""
    reasons = OURS_REFUSES if ours else TENSORFLOW_REFUSES
    if theirs.endswith(" nodes in a cycle") and merges_of_iterations(graph_def):
        return FED_TWICE
    return next((reason for text, reason in reasons.items() if text in (ours or theirs)), None)


def merges_of_iterations(graph_def: GraphDef) -> bool:
    """True iff all inputs of a Merge are NextIterations, so that TensorFlow waits for no edge."""
    iterations = {node.name for node in graph_def.node if node.op in {"NextIteration", "RefNextIteration"}}
    merges = [node for node in graph_def.node if node.op in {"Merge", "RefMerge"}]
    return any({name.partition(":")[0] for name in node.input if not name.startswith("^")} <= iterations for node in merges)


def test_graphs_are_accepted_or_refused_alike(oracle: Oracle, ops: list[OpDef]) -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None)
    @given(st.integers(0, 2**64))
    def compare(number: int) -> None:
        graph_def = case(ops, random.Random(number))
        theirs = oracle.call(f"{SIDE}:judge_graph", graph_def_to_bytes(graph_def))
        ours = refusal(graph_def)
        if bool(ours) == bool(theirs):
            seen["refused" if ours else "accepted"] += 1
            return
        reason = why(ours, theirs, graph_def)
        nodes = "\n".join(map(summarize_node_def, graph_def.node))
        assert reason is not None, f"{nodes}\nours: {ours or 'accepted'}\nTensorFlow: {theirs or 'accepted'}"
        seen[reason] += 1

    compare()
    print(f"\ngraphs: {dict(seen)}")
    assert seen["accepted"] > CASES // 4
    assert seen["refused"] > CASES // 4
    assert seen.total() >= CASES
