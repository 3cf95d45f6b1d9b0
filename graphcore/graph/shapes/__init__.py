"""Shapes in a graph: refinement of nodes, propagation after an edit, constant values."""
