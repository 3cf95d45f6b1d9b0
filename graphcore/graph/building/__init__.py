"""Adds nodes: from values and attrs, from NodeDefs, one by one; within scopes."""
