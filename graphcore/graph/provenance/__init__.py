"""Explanations of shapes: the nodes and values that each one came from."""
