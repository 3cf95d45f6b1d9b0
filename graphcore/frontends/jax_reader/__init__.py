"""Readers of JAX programs: equations, bodies, scopes, and source lines."""
