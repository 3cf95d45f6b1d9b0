"""Ops on sparse tensors: indices, values and shape."""
