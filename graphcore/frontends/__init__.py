"""Graphs of other frameworks: files and objects, read as plain data and shown as graphs of opaque ops."""
