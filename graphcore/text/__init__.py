"""The text form of functions, signatures and nodes. Printed text can be parsed again."""

from graphcore.text.function_parser import parse_function, parse_nodes
from graphcore.text.printer import debug_string, debug_string_whole
from graphcore.text.signature import attr_def_text, parse_op_signature
from graphcore.text.value_parser import parse_attr_text
from graphcore.text.values import attr_value_text

__all__ = [
    "attr_def_text",
    "attr_value_text",
    "debug_string",
    "debug_string_whole",
    "parse_attr_text",
    "parse_function",
    "parse_nodes",
    "parse_op_signature",
]
