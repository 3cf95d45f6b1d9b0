"""Explanations of shapes: the nodes and values each depends on."""
