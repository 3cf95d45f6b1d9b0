"""Definitions of ops, nodes, functions and graphs: values, their builders and validators."""

from graphcore.definitions.attr_equality import attr_value_hash, attr_values_equal, attrs_equal
from graphcore.definitions.attr_spec import parse_attr_spec
from graphcore.definitions.attr_text import parse_attr_value
from graphcore.definitions.attr_value_util import check_attr_kind, validate_attr_value
from graphcore.definitions.fake_input import FakeInput, NodeOut
from graphcore.definitions.node_def_builder import NodeDefBuilder, OpDefSource
from graphcore.definitions.node_def_util import (
    add_default_attrs,
    attach_def,
    format_node_for_error,
    input_type_for_node,
    output_type_for_node,
    strip_default_attrs,
    summarize_attrs,
    summarize_node_def,
    validate_node_def,
)
from graphcore.definitions.op_def_builder import OpDefBuilder
from graphcore.definitions.op_def_util import summarize_args, summarize_op_def
from graphcore.definitions.op_tables import add_arg_to_sig, in_out_types_for_node, name_ranges_for_node
from graphcore.definitions.types import (
    PRODUCER_VERSION,
    ArgDef,
    AttrDef,
    FunctionDef,
    FunctionDefLibrary,
    GradientDef,
    GraphDef,
    NodeDef,
    OpDef,
    OpDeprecation,
    VersionDef,
)
from graphcore.definitions.value_text import summarize_attr_value, summarize_tensor

__all__ = [
    "PRODUCER_VERSION",
    "ArgDef",
    "AttrDef",
    "FakeInput",
    "FunctionDef",
    "FunctionDefLibrary",
    "GradientDef",
    "GraphDef",
    "NodeDef",
    "NodeDefBuilder",
    "NodeOut",
    "OpDef",
    "OpDefBuilder",
    "OpDefSource",
    "OpDeprecation",
    "VersionDef",
    "add_arg_to_sig",
    "add_default_attrs",
    "attach_def",
    "attr_value_hash",
    "attr_values_equal",
    "attrs_equal",
    "check_attr_kind",
    "format_node_for_error",
    "in_out_types_for_node",
    "input_type_for_node",
    "name_ranges_for_node",
    "output_type_for_node",
    "parse_attr_spec",
    "parse_attr_value",
    "strip_default_attrs",
    "summarize_args",
    "summarize_attr_value",
    "summarize_attrs",
    "summarize_node_def",
    "summarize_op_def",
    "summarize_tensor",
    "validate_attr_value",
    "validate_node_def",
]
