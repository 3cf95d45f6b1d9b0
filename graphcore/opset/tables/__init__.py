"""Lookup tables of a session."""
