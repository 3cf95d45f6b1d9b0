"""Readers of Keras models: the graph of layers, shapes, and weights."""
