"""Gradients of single ops: templates, and their inlining into a graph."""
