"""The data of a page that needs no kernel: a graph with its tree, bodies and shapes, in columns."""

from widgets.render.page_data.build import graph_data, pack

__all__ = ["graph_data", "pack"]
