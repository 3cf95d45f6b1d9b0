"""`tf.train.write_graph`: a graph in a file."""

from __future__ import annotations

import os

from graphcore.definitions import GraphDef
from graphcore.graph import Graph
from graphcore.support.files import checked_path, file_errors

__all__ = ["write_graph"]


def write_graph(graph_or_graph_def: Graph | GraphDef, logdir: str | os.PathLike[str], name: str, as_text: bool = True) -> str:
    """Write a graph as a GraphDef, and return the path of the file.

    Args:
        graph_or_graph_def: the graph.
        logdir: the folder, created if missing.
        name: the name of the file.
        as_text: write protobuf text, else the binary form.

    Raises:
        InvalidArgumentError: no file can have this name.
        FailedPreconditionError: the file cannot be written.
    """
    from graphcore.definitions.wire import graph_def_to_bytes, graph_def_to_text  # noqa: PLC0415 - loads protobuf
    from graphcore.support.replacing import write_file  # noqa: PLC0415 - as above

    graph_def = graph_or_graph_def.as_graph_def() if isinstance(graph_or_graph_def, Graph) else graph_or_graph_def
    place = checked_path(logdir)
    with file_errors(place, "make"):
        place.mkdir(parents=True, exist_ok=True)
    data = graph_def_to_text(graph_def).encode() if as_text else graph_def_to_bytes(graph_def)
    write_file(place / name, data)
    return str(place / name)
