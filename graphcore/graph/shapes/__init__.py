"""Shapes in a graph: inference of nodes, propagation after edits, constant values."""
