"""Explanations of gradients of JAX: a program is run once, and each equation differentiated."""
