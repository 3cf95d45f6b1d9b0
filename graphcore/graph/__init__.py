"""Graphs: nodes, tensors, edges, scopes, cell ownership, shape inference over them."""

from graphcore.graph.apply import apply_op, as_constant_array, as_held_tensor, constant_node, convert_to_tensor
from graphcore.graph.changes import Change
from graphcore.graph.constant_values import constant_value
from graphcore.graph.copying import copy_graph
from graphcore.graph.default_graph import get_default_graph, reset_default_graph
from graphcore.graph.default_stack import default_graph
from graphcore.graph.edges import CONTROL_KEY, CONTROL_SLOT, Edge
from graphcore.graph.from_nodes import copy_sharing_library, graph_from_nodes, graph_with_library
from graphcore.graph.graph import Graph
from graphcore.graph.graph_text import debug_string, to_graph_def
from graphcore.graph.import_options import ImportOptions, ImportResults
from graphcore.graph.importer import import_graph_def
from graphcore.graph.live import live_graphs
from graphcore.graph.node import Node, Tensor
from graphcore.graph.records import GradientRecord, ScopeStack
from graphcore.graph.shape_refiner import ShapeRefiner
from graphcore.graph.tensor_id import TensorId, parse_tensor_name

__all__ = [
    "CONTROL_KEY",
    "CONTROL_SLOT",
    "Change",
    "Edge",
    "GradientRecord",
    "Graph",
    "ImportOptions",
    "ImportResults",
    "Node",
    "ScopeStack",
    "ShapeRefiner",
    "Tensor",
    "TensorId",
    "apply_op",
    "as_constant_array",
    "as_held_tensor",
    "constant_node",
    "constant_value",
    "convert_to_tensor",
    "copy_graph",
    "copy_sharing_library",
    "debug_string",
    "default_graph",
    "get_default_graph",
    "graph_from_nodes",
    "graph_with_library",
    "import_graph_def",
    "live_graphs",
    "parse_tensor_name",
    "reset_default_graph",
    "to_graph_def",
]
