"""Gradients of ops with functions: calls, branches, loops and maps."""
