"""Lowering of functional branches and loops to Switch and Merge."""
