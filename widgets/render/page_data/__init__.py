"""The data of a page that needs no kernel: the nodes of a graph, bodies and shapes, in columns."""

from widgets.render.page_data.build import PageData, graph_data, graph_data_in_steps, pack, with_timelines
from widgets.render.page_data.kept import KeptRows, rows_of
from widgets.render.page_data.live import LiveData, content_of, pack_change

__all__ = [
    "KeptRows",
    "LiveData",
    "PageData",
    "content_of",
    "graph_data",
    "graph_data_in_steps",
    "pack",
    "pack_change",
    "rows_of",
    "with_timelines",
]
