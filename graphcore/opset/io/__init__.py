"""Ops that make summaries, and that bring data in from files and from Python."""
