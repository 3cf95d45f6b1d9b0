"""Graphs from GraphDefs: names, inputs, options, checks."""
