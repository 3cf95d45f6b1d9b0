"""Arithmetic, comparison, reductions, linear algebra."""
