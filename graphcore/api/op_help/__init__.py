"""Help on ops: formulas of shapes and an example, made from the examples of their blocks."""

from graphcore.api.op_help.help_text import example_lines, given_attrs, help_sections, op_of
from graphcore.api.op_help.shape_rules import Use, uses

__all__ = ["Use", "example_lines", "given_attrs", "help_sections", "op_of", "uses"]
