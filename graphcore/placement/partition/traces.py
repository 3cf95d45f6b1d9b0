"""Stack traces: the lines of user code that made the nodes of a GraphDef, in its debug info."""

from __future__ import annotations

import msgspec

from graphcore.attrs import attr_text
from graphcore.definitions import GraphDef
from graphcore.graph.graph import Graph
from graphcore.support.safe_import import import_whole


def with_traces(graph_def: GraphDef, graph: Graph) -> GraphDef:
    """Add the line that made each node of `graph` to the debug info of `graph_def`.

    A send or receive has that of the node whose value it passes on.
    """
    message = import_whole("graphcore.definitions.wire.schema").GraphDef()
    files: dict[str, int] = {}
    for node_def in graph_def.node:
        node = graph.find(node_def.name) or graph.find(attr_text(node_def.attr.get("_src", b"")))
        if node is None or node.source is None:
            continue
        line = message.debug_info.traces[node_def.name].file_line_cols.add(line=node.source.line)
        line.file_index = files.setdefault(node.source.file, len(files))
    message.debug_info.files.extend(files)
    return msgspec.structs.replace(graph_def, other_fields=graph_def.other_fields + message.SerializeToString(deterministic=True))
