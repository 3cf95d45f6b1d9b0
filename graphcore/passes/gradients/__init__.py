"""Gradients of graphs, functions, branches and loops."""
