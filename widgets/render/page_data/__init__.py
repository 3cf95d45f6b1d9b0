"""The data of a page that needs no kernel: the nodes of a graph, bodies and shapes, in columns."""

from widgets.render.page_data.build import PageData, graph_data, graph_data_in_steps, pack, with_timelines
from widgets.render.page_data.kept import KeptRows

__all__ = ["KeptRows", "PageData", "graph_data", "graph_data_in_steps", "pack", "with_timelines"]
