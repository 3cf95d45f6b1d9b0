"""Readers of files of weights without a graph, and the tree that they make."""
