"""Help on ops: formulas of shapes and an example, made from the examples of their blocks."""

from graphcore.api.op_help.help_text import example_lines, help_sections, op_of, shape_lines
from graphcore.api.op_help.shape_rules import Use, uses

__all__ = ["Use", "example_lines", "help_sections", "op_of", "shape_lines", "uses"]
