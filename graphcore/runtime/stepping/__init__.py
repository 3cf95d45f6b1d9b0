"""Runs that stop before each node."""
