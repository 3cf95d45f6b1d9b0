"""Explanations of gradients of PyTorch: of a computation, and of a tensor that was computed before."""
