"""Graphs: nodes, tensors, edges, scopes, cell ownership, shape inference over them."""

from graphcore.graph.building.apply import apply_op, as_constant_array, as_held_tensor, constant_node, convert_to_tensor, exact_name
from graphcore.graph.building.node_def_builder import NodeDefBuilder
from graphcore.graph.control_flow.frames import NodeFrame, build_control_flow_info
from graphcore.graph.copying import copy_graph
from graphcore.graph.default_graph import get_default_graph, reset_default_graph
from graphcore.graph.graph import Graph, live_graphs
from graphcore.graph.graph_text import debug_string, to_graph_def
from graphcore.graph.importing.from_nodes import copy_sharing_library, graph_from_nodes, graph_with_library
from graphcore.graph.importing.importer import import_graph_def
from graphcore.graph.importing.options import ImportOptions, ImportResults
from graphcore.graph.model.changes import Change
from graphcore.graph.model.default_stack import default_graph
from graphcore.graph.model.device_functions import DeviceFunction, with_chosen_device
from graphcore.graph.model.gradient_record import GradientRecord
from graphcore.graph.model.node import CONTROL_KEY, CONTROL_SLOT, Edge, Node, Tensor
from graphcore.graph.model.scopes import ScopeStack
from graphcore.graph.model.tensor_id import TensorId, parse_tensor_name
from graphcore.graph.node_builder import NodeBuilder, get_output_type
from graphcore.graph.op_lists import ops_used_by_graph, register_ops, remove_new_default_attrs, stripped_op_list
from graphcore.graph.shapes.constant_values import constant_value
from graphcore.graph.shapes.shape_refiner import ExtendedInferenceContext, ShapeRefiner
from graphcore.graph.tracing import FunctionGraph
from graphcore.graph.traversal import (
    by_id,
    by_name,
    dfs,
    dfs_from,
    find_cycle,
    post_order,
    reverse_dfs,
    reverse_dfs_from,
    reverse_post_order,
    topological_order,
    validate_graph_has_no_cycle,
)
from graphcore.graph.validation import (
    add_default_attrs_to_graph_def,
    get_op_list_for_validation,
    validate_graph_def,
    validate_graph_def_against_op_list,
    validate_graph_def_against_op_registry,
    verify_no_duplicate_node_names,
)

__all__ = [
    "CONTROL_KEY",
    "CONTROL_SLOT",
    "Change",
    "DeviceFunction",
    "Edge",
    "ExtendedInferenceContext",
    "FunctionGraph",
    "GradientRecord",
    "Graph",
    "ImportOptions",
    "ImportResults",
    "Node",
    "NodeBuilder",
    "NodeDefBuilder",
    "NodeFrame",
    "ScopeStack",
    "ShapeRefiner",
    "Tensor",
    "TensorId",
    "add_default_attrs_to_graph_def",
    "apply_op",
    "as_constant_array",
    "as_held_tensor",
    "build_control_flow_info",
    "by_id",
    "by_name",
    "constant_node",
    "constant_value",
    "convert_to_tensor",
    "copy_graph",
    "copy_sharing_library",
    "debug_string",
    "default_graph",
    "dfs",
    "dfs_from",
    "exact_name",
    "find_cycle",
    "get_default_graph",
    "get_op_list_for_validation",
    "get_output_type",
    "graph_from_nodes",
    "graph_with_library",
    "import_graph_def",
    "live_graphs",
    "ops_used_by_graph",
    "parse_tensor_name",
    "post_order",
    "register_ops",
    "remove_new_default_attrs",
    "reset_default_graph",
    "reverse_dfs",
    "reverse_dfs_from",
    "reverse_post_order",
    "stripped_op_list",
    "to_graph_def",
    "topological_order",
    "validate_graph_def",
    "validate_graph_def_against_op_list",
    "validate_graph_def_against_op_registry",
    "validate_graph_has_no_cycle",
    "verify_no_duplicate_node_names",
    "with_chosen_device",
]
