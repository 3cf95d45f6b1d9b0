"""Algorithms on arrays that kernels share; no ops."""
