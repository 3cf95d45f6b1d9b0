"""The wire form: protobuf messages of the definitions, and files of them.

Importing it loads protobuf, so only code that reads or writes files does.
"""

from graphcore.definitions.wire.files import (
    function_def_from_bytes,
    function_def_to_bytes,
    graph_def_from_bytes,
    graph_def_to_bytes,
    graph_def_to_json,
    graph_def_to_text,
    node_def_from_bytes,
    node_def_to_bytes,
    op_def_from_bytes,
    op_def_to_bytes,
    op_defs_of,
    op_list_from_bytes,
    op_list_to_bytes,
)
from graphcore.definitions.wire.saved_model import (
    VARIABLES,
    MetaGraph,
    Signature,
    TensorInfo,
    chosen_meta_graph,
    load_graph_def,
    load_meta_graph,
    load_meta_graphs,
    meta_graphs_to_bytes,
    read_meta_graphs,
    save_graph_def,
    save_meta_graphs,
)
from graphcore.definitions.wire.tensors import tensor_from_bytes, tensor_to_bytes

__all__ = [
    "VARIABLES",
    "MetaGraph",
    "Signature",
    "TensorInfo",
    "chosen_meta_graph",
    "function_def_from_bytes",
    "function_def_to_bytes",
    "graph_def_from_bytes",
    "graph_def_to_bytes",
    "graph_def_to_json",
    "graph_def_to_text",
    "load_graph_def",
    "load_meta_graph",
    "load_meta_graphs",
    "meta_graphs_to_bytes",
    "node_def_from_bytes",
    "node_def_to_bytes",
    "op_def_from_bytes",
    "op_def_to_bytes",
    "op_defs_of",
    "op_list_from_bytes",
    "op_list_to_bytes",
    "read_meta_graphs",
    "save_graph_def",
    "save_meta_graphs",
    "tensor_from_bytes",
    "tensor_to_bytes",
]
