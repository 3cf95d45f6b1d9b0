"""Shapes in a picture: equal sizes, clashes, and the reasons of a shape."""
