"""Graphs from elsewhere and for elsewhere: GraphDefs, graph files, lists of ops."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from graphcore.brief import brief
from graphcore.definitions import GraphDef, OpDef
from graphcore.errors import InvalidArgumentError, NotFoundError
from graphcore.graph import Graph, ImportOptions, ImportResults, Node, ShapeRefiner, Tensor, TensorId, get_default_graph, register_ops
from graphcore.graph import import_graph_def as _import_graph_def
from graphcore.registry import OpRegistry

_PREDICT: Final = "tensorflow/serving/predict"
"""The method of a signature that just computes its outputs; TensorFlow calls no other."""


def import_graph_def(
    graph_def: GraphDef | Any,
    graph: Graph | None = None,
    *,
    prefix: str = "",
    uniquify_names: bool = False,
    uniquify_prefix: bool = False,
    input_map: Mapping[str | TensorId, str | TensorId | Tensor | Node] | None = None,
    skip_mapped_nodes: bool = False,
    control_dependencies: Sequence[str | Node | Tensor] = (),
    return_tensors: Sequence[str | TensorId] = (),
    return_nodes: Sequence[str] = (),
    validate_colocation_constraints: bool = True,
    validate_shape: bool = True,
    default_device: str = "",
    allow_unknown_ops: bool = False,
    allow_internal_ops: bool = False,
    refiner: ShapeRefiner | None = None,
    results: ImportResults | None = None,
) -> ImportResults:
    """Add the nodes and functions of a GraphDef to a graph; if anything is wrong the graph stays exactly as it was.

    The scopes of the graph hold: names go below the current name scope, and its device and control dependencies are added.

    Args:
        graph_def: a GraphDef, its bytes, or any object with `SerializeToString` such as TensorFlow's own GraphDef.
        graph: where to; the default graph unless given.
        prefix: a name scope for all imported nodes.
        uniquify_names: give a node whose name is taken the first free one of `name_1`, `name_2`, ... instead of refusing it.
        uniquify_prefix: do so with the prefix.
        input_map: tensors of the graph that take the place of tensors of the GraphDef: `{"x:0": tensor}`; `{"^a": "^b"}` for control inputs.
        skip_mapped_nodes: leave out nodes all of whose outputs are mapped.
        control_dependencies: nodes that imported nodes without an imported input wait for.
        return_tensors, return_nodes: what of the GraphDef the results shall give, by name.
        validate_colocation_constraints: refuse a node that is to be colocated with a node outside the GraphDef.
        validate_shape: infer shapes and refuse what does not fit; else shapes are unknown.
        default_device: the device of nodes that request none.
        allow_unknown_ops: import nodes of ops that are not registered as opaque nodes: they can be seen, walked and exported, but not run.
        allow_internal_ops: take names that begin with `_`, as the nodes have that feeds and fetches become.
        refiner: infers the shapes; the graph's own unless given.
        results: empty ones to fill, instead of new ones.

    Returns:
        The results: `return_tensors`, `return_nodes`, and `missing_unused_input_map_keys`.

    Raises:
        NotFoundError: an op is not registered.
        UnimplementedError: an op is deprecated in the version of the GraphDef.
        InvalidArgumentError: the GraphDef is wrong in itself or does not fit the graph or the arguments.
    """
    graph = get_default_graph() if graph is None else graph
    results = ImportResults() if results is None else results
    scopes = graph.scopes
    options = ImportOptions(
        prefix=scopes.name + prefix if prefix else scopes.name,
        uniquify_names=uniquify_names,
        uniquify_prefix=uniquify_prefix and bool(prefix),
        input_map=input_map or {},
        skip_mapped_nodes=skip_mapped_nodes,
        control_dependencies=(*control_dependencies, *scopes.controls),
        return_tensors=return_tensors,
        return_nodes=return_nodes,
        validate_colocation_constraints=validate_colocation_constraints,
        validate_shape=validate_shape,
        default_device=default_device or scopes.device,
        allow_unknown_ops=allow_unknown_ops,
        allow_internal_ops=allow_internal_ops,
    )
    _import_graph_def(_as_graph_def(graph_def), graph, options, refiner, results)
    return results


def _as_graph_def(value: Any) -> GraphDef:
    if isinstance(value, GraphDef):
        return value
    data = value.SerializeToString() if hasattr(value, "SerializeToString") else value
    if not isinstance(data, bytes):
        raise InvalidArgumentError(f"Required a GraphDef or its bytes, got {type(value).__name__}; gc.load reads files")
    graph_def: GraphDef = _wire().graph_def_from_bytes(data)
    return graph_def


def load(
    path: str | Path,
    graph: Graph | None = None,
    *,
    tags: Collection[str] | None = None,
    allow_unknown_ops: bool = False,
    allow_internal_ops: bool = False,
    validate_shape: bool = True,
) -> Graph:
    """Read a graph file: a GraphDef (binary, protobuf text, JSON), a MetaGraphDef, or a SavedModel file or directory.

    Which it is is seen from the content. A saved model's signatures are in `graph.signatures`, by name.

    Args:
        path: the file or directory.
        graph: where to; a new graph unless given.
        tags: which of the graphs of a SavedModel, if it holds several.
        allow_unknown_ops: hold nodes of ops that are not registered as opaque nodes: they can be seen, walked and saved, but not run.
        allow_internal_ops: take names that begin with `_`, as the nodes have that feeds and fetches become.
        validate_shape: infer shapes and refuse what does not fit; else shapes are unknown.

    Returns:
        The graph.

    Raises:
        NotFoundError: there is no such file, no graph with these tags, or an op is not registered.
        InvalidArgumentError: it is no graph file, or its graph makes no sense.
    """
    meta_graph = _wire().load_meta_graph(path, tags)
    graph = Graph() if graph is None else graph
    options = ImportOptions(allow_unknown_ops=allow_unknown_ops, allow_internal_ops=allow_internal_ops, validate_shape=validate_shape)
    _import_graph_def(meta_graph.graph_def, graph, options)
    graph.signatures = {**graph.signatures, **meta_graph.signatures}
    return graph


def save(graph: Graph | GraphDef, path: str | Path) -> Path:
    """Write a graph with its function library as a GraphDef.

    Args:
        graph: what to write.
        path: ends in `.pbtxt` or `.txt` for protobuf text, in `.json` for JSON; anything else is written binary. `save_saved_model` writes
            SavedModel directories.

    Returns:
        The path.

    Raises:
        FailedPreconditionError: the file cannot be written.
    """
    target = Path(path)
    _wire().save_graph_def(graph.as_graph_def() if isinstance(graph, Graph) else graph, target)
    return target


def save_saved_model(
    graph: Graph,
    directory: str | Path,
    *,
    signatures: Mapping[str, tuple[Mapping[str, Tensor], Mapping[str, Tensor]]] | None = None,
    tags: Collection[str] = ("serve",),
    text: bool = False,
) -> Path:
    """Write a graph with its function library and its signatures as a SavedModel directory; `gc.load` and TensorFlow read it.

    The values of variables are not in it: `gc.save_variables` keeps them.

    Args:
        graph: what to write, with the signatures that it was loaded with.
        directory: where to; made if it is missing.
        signatures: further ways to call the graph, by name: inputs and outputs, each a tensor by the name of an argument.
        tags: the tags of the graph.
        text: write protobuf text (`saved_model.pbtxt`) instead of the binary form (`saved_model.pb`).

    Returns:
        The path of the directory.

    Raises:
        InvalidArgumentError: a signature names what is no tensor of the graph.
        FailedPreconditionError: the directory cannot be written.
    """
    wire = _wire()
    made = {
        name: wire.Signature(*[_infos(graph, name, side) for side in (inputs, outputs)], _PREDICT)
        for name, (inputs, outputs) in (signatures or {}).items()
    }
    meta_graph = wire.MetaGraph(graph.as_graph_def(), tuple(tags), {**graph.signatures, **made})
    wire.save_meta_graphs([meta_graph], directory, text=text)
    return Path(directory)


def _infos(graph: Graph, signature: str, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    infos = {}
    for name, tensor in tensors.items():
        found = graph.as_graph_element(tensor)
        if not isinstance(found, Tensor):
            raise InvalidArgumentError(f"Signature '{signature}': '{name}' must be a tensor of the graph, got {brief(tensor)}")
        infos[name] = _wire().TensorInfo(found.name, found.dtype.base, found.shape)
    return infos


def register_op_list(source: str | Path | bytes | Iterable[OpDef], registry: OpRegistry | None = None) -> list[str]:
    """Register the ops of an OpList, so that graphs of them can be imported. Nothing but their signatures is known: they cannot be run.

    Ops that are registered already stay as they are.

    Args:
        source: a file of an OpList (binary, protobuf text, JSON), its bytes, or OpDefs.
        registry: where to; the global registry unless given.

    Returns:
        The names of the ops that were new.

    Raises:
        NotFoundError: there is no such file.
        InvalidArgumentError: it is no OpList, or an OpDef in it makes no sense.
    """
    if isinstance(source, str | Path):
        source = _read(Path(source))
    op_defs = _wire().op_defs_of(source) if isinstance(source, bytes) else source
    return register_ops(op_defs, registry)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise NotFoundError(f"Cannot read {path}: {error}") from None


def _wire() -> Any:
    """The room that knows files. It loads protobuf, which takes a third as long as all the rest and which most sessions never need."""
    from graphcore.definitions import wire  # noqa: PLC0415 - see above

    return wire
