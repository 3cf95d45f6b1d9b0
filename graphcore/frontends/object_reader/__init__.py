"""Readers of general graphs in memory and of DOT text."""
