"""Definitions of ops, nodes, functions and graphs: values, their builders and validators."""

from graphcore.definitions.attr_equality import attr_value_hash, attr_values_equal, attrs_equal
from graphcore.definitions.attr_slice import AttrSlice, get_node_attr
from graphcore.definitions.attr_spec import parse_attr_spec
from graphcore.definitions.attr_text import parse_attr_value
from graphcore.definitions.attr_value_util import check_attr_kind, validate_attr_value
from graphcore.definitions.fake_input import FakeInput, NodeOut
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
from graphcore.definitions.node_names import (
    add_prefix_and_suffix,
    add_prefix_to_colocation,
    colocated_with,
    is_valid_node_name,
    map_colocation,
    update_colocation_with_map,
    validate_external_node_def_syntax,
)
from graphcore.definitions.op_def_builder import OpDefBuilder
from graphcore.definitions.op_def_compare import (
    attr_defs_equal,
    check_attr_defaults_unchanged,
    op_def_equal,
    op_def_hash,
    repeated_attr_defs_equal,
)
from graphcore.definitions.op_def_util import summarize_args, summarize_op_def
from graphcore.definitions.op_def_validation import check_op_deprecation, validate_op_def
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
    OpDefSource,
    OpDeprecation,
    VersionDef,
    without_docs,
)
from graphcore.definitions.value_text import summarize_attr_value, summarize_tensor

__all__ = [
    "PRODUCER_VERSION",
    "ArgDef",
    "AttrDef",
    "AttrSlice",
    "FakeInput",
    "FunctionDef",
    "FunctionDefLibrary",
    "GradientDef",
    "GraphDef",
    "NodeDef",
    "NodeOut",
    "OpDef",
    "OpDefBuilder",
    "OpDefSource",
    "OpDeprecation",
    "VersionDef",
    "add_arg_to_sig",
    "add_default_attrs",
    "add_prefix_and_suffix",
    "add_prefix_to_colocation",
    "attach_def",
    "attr_defs_equal",
    "attr_value_hash",
    "attr_values_equal",
    "attrs_equal",
    "check_attr_defaults_unchanged",
    "check_attr_kind",
    "check_op_deprecation",
    "colocated_with",
    "format_node_for_error",
    "get_node_attr",
    "in_out_types_for_node",
    "input_type_for_node",
    "is_valid_node_name",
    "map_colocation",
    "name_ranges_for_node",
    "op_def_equal",
    "op_def_hash",
    "output_type_for_node",
    "parse_attr_spec",
    "parse_attr_value",
    "repeated_attr_defs_equal",
    "strip_default_attrs",
    "summarize_args",
    "summarize_attr_value",
    "summarize_attrs",
    "summarize_node_def",
    "summarize_op_def",
    "summarize_tensor",
    "update_colocation_with_map",
    "validate_attr_value",
    "validate_external_node_def_syntax",
    "validate_node_def",
    "validate_op_def",
    "without_docs",
]
