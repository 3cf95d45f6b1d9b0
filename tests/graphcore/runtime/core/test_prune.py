"""The nodes that a run needs."""

from __future__ import annotations

import graphcore as gc
from graphcore.runtime import needed_nodes
from tests.graphcore.runtime.loop_graphs import enter, op


def test_a_control_edge_back_to_a_merge_is_no_cycle() -> None:
    with gc.Graph().as_default() as graph:
        entered = enter(gc.constant(0), "loop")
        merge = graph.apply_op("Merge", [[entered, entered]])
        again = op("NextIteration", [merge.outputs[0]])
        graph.add_control_edge(again.node, merge)
        assert [node.op for node in needed_nodes([again], [], [])] == ["Const", "Enter", "Merge", "NextIteration"]
