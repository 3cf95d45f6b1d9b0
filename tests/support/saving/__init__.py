"""Processes that are killed while they save, for the tests of what is left."""
