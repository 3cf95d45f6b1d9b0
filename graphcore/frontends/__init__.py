"""Graphs of other frameworks: files and objects, read as plain data, shown as graphs of opaque ops."""
