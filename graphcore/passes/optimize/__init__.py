"""Optimizers: constant folding, common subexpressions."""
