"""Differences of graphs: nodes added, removed, changed, renamed and rewired between two states."""

from graphcore.difference.changes import Change, NodeChange
from graphcore.difference.comparable import tensors_to_compare, unmatched_before
from graphcore.difference.compare import compare
from graphcore.difference.diff import FunctionsDiff, GraphDiff
from graphcore.difference.marks import Marks
from graphcore.difference.regrouping import Correspondence, Regrouping
from graphcore.difference.state import GraphState, NodeState, state_of_function, state_of_graph
from graphcore.difference.steps import DiffSteps
from graphcore.difference.twins import twins
from graphcore.difference.union import difference_graph, difference_of, state_graphs

__all__ = [
    "Change",
    "Correspondence",
    "DiffSteps",
    "FunctionsDiff",
    "GraphDiff",
    "GraphState",
    "Marks",
    "NodeChange",
    "NodeState",
    "Regrouping",
    "compare",
    "difference_graph",
    "difference_of",
    "state_graphs",
    "state_of_function",
    "state_of_graph",
    "tensors_to_compare",
    "twins",
    "unmatched_before",
]
