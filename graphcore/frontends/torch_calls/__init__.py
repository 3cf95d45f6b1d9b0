"""Calls of modules and functions of PyTorch, traced without computing anything."""
