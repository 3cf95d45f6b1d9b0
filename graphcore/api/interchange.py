"""Import and export: GraphDefs, graph files, lists of ops."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from itertools import chain
from pathlib import Path
from typing import Any, Final

import msgspec

from graphcore.attrs import attr_text
from graphcore.brief import brief
from graphcore.definitions import GraphDef, OpDef
from graphcore.errors import InvalidArgumentError, UnimplementedError
from graphcore.frontends.event_files import event_files, last_graph
from graphcore.frontends.frontend import Source
from graphcore.frontends.looks import is_recognised
from graphcore.frontends.lowering import lower
from graphcore.frontends.reading import source_bytes
from graphcore.frontends.sources import frontend_for, named, open_source, read_by, source_of, unknown_kind
from graphcore.graph import (
    Graph,
    ImportOptions,
    ImportResults,
    Node,
    ShapeRefiner,
    Tensor,
    TensorId,
    convert_to_tensor,
    get_default_graph,
    register_ops,
)
from graphcore.graph import import_graph_def as _import_graph_def
from graphcore.graph.saved_values import AbsentValues, SavedValues
from graphcore.registry import OpRegistry
from graphcore.support.files import checked_path, file_bytes, is_file, is_folder

InputMap = Mapping[str | TensorId, Any]
"""Tensors by the names of those that they replace."""
_PREDICT: Final = "tensorflow/serving/predict"
"""The method of a signature that just computes its outputs; TensorFlow calls no other."""


def import_graph_def(
    graph_def: GraphDef | Any,
    graph: Graph | InputMap | None = None,
    return_elements: Sequence[str] | None = None,
    name: str | None = None,
    op_dict: Any = None,
    producer_op_list: Any = None,
    *,
    prefix: str | None = None,
    uniquify_names: bool = False,
    uniquify_prefix: bool = False,
    input_map: InputMap | None = None,
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
) -> Any:
    """Add the nodes and functions of a GraphDef to a graph. After an error the graph is unchanged.

    Without a `prefix` the rules are those of TensorFlow 1: the nodes get a new name scope below the current one, taken names are made unique, the
    surrounding device request is completed by that of each node, and a key of `input_map` that names nothing is refused.

    With a `prefix`, "" included, taken names are refused unless they are to be made unique, names go below the current name scope, and its device
    (for nodes that request none) and control dependencies are added.

    Args:
        graph_def: a GraphDef, its bytes, or any object with `SerializeToString` such as TensorFlow's own GraphDef.
        graph: the target; the default graph by default. TensorFlow has `input_map` in this place.
        return_elements: names of tensors and nodes of the GraphDef to return, as in TensorFlow.
        name: without a `prefix`, the name scope: "import" by default, "" for the names of the GraphDef.
        op_dict: without effect, as in TensorFlow.
        producer_op_list: must be None.
        prefix: a name scope for all imported nodes.
        uniquify_names: rename a node with a taken name to the first free one of `name_1`, `name_2`, ... instead of refusing it.
        uniquify_prefix: likewise for the prefix.
        input_map: tensors of the graph that replace tensors of the GraphDef: `{"x:0": tensor}`; `{"^a": "^b"}` for control inputs. Without a
            `prefix` the values may be constants, and a tensor stands for its node as a control input.
        skip_mapped_nodes: leave out nodes whose outputs are all mapped.
        control_dependencies: control inputs of imported nodes without an imported input.
        return_tensors, return_nodes: names of tensors and nodes of the GraphDef to return.
        validate_colocation_constraints: refuse colocation with a node outside the GraphDef.
        validate_shape: infer shapes and refuse contradictions; otherwise shapes are unknown.
        default_device: the device of nodes that request none.
        allow_unknown_ops: import nodes of unregistered ops as opaque nodes, which can be shown, traversed and exported, but not run.
        allow_internal_ops: accept names that begin with `_`, as those of feed and fetch nodes do.
        refiner: infers the shapes; the graph's own by default.
        results: empty results to fill, instead of new ones.

    Returns:
        The results: `return_tensors`, `return_nodes`, and `missing_unused_input_map_keys`; with `return_elements` the list of these.

    Raises:
        NotFoundError: an op is not registered.
        UnimplementedError: an op is deprecated in the version of the GraphDef, or a list of the producer's ops is given.
        InvalidArgumentError: the GraphDef is invalid, or does not fit the graph or the arguments.
    """
    del op_dict
    if producer_op_list is not None:
        raise UnimplementedError("import_graph_def: required None as producer_op_list; gc.remove_new_default_attrs removes unknown attrs")
    if isinstance(graph, Mapping):
        graph, input_map = None, graph
    graph = get_default_graph() if graph is None else graph
    results = ImportResults() if results is None else results
    if return_elements is not None:
        return_tensors, return_nodes = (
            [item for item in return_elements if ":" in item],
            [item for item in return_elements if ":" not in item],
        )
    options = ImportOptions(
        uniquify_names=uniquify_names or prefix is None,
        input_map=input_map or {},
        skip_mapped_nodes=skip_mapped_nodes,
        control_dependencies=control_dependencies,
        return_tensors=return_tensors,
        return_nodes=return_nodes,
        validate_colocation_constraints=validate_colocation_constraints,
        validate_shape=validate_shape,
        default_device=default_device,
        allow_unknown_ops=allow_unknown_ops,
        allow_internal_ops=allow_internal_ops,
    )
    value = _as_graph_def(graph_def)
    if prefix is None:
        _import_as_tensorflow(value, graph, name, options, refiner, results)
    else:
        scopes = graph.scopes
        options = msgspec.structs.replace(
            options,
            prefix=scopes.name + prefix if prefix else scopes.name,
            uniquify_prefix=uniquify_prefix and bool(prefix),
            control_dependencies=(*control_dependencies, *scopes.controls),
            default_device=default_device or scopes.device,
        )
        _import_graph_def(value, graph, options, refiner, results)
    if return_elements is None:
        return results
    tensors, nodes = iter(results.return_tensors), iter(results.return_nodes)
    return [next(tensors) if ":" in item else next(nodes) for item in return_elements]


def _import_as_tensorflow(
    graph_def: GraphDef, graph: Graph, name: str | None, options: ImportOptions, refiner: ShapeRefiner | None, results: ImportResults
) -> None:
    """Import by the rules that TensorFlow 1 has in Python."""
    with graph.transaction(), graph.as_default(), graph.name_scope("import" if name is None else name) as scope:
        options = msgspec.structs.replace(
            options, prefix=scope, surrounding_device=graph.scopes.device, input_map=_mapped_tensors(graph, options.input_map)
        )
        _import_graph_def(graph_def, graph, options, refiner, results)
        unused = results.missing_unused_input_map_keys
        if unused:
            raise InvalidArgumentError(f"Attempted to map inputs that were not found in graph_def: [{', '.join(map(str, unused))}]")


def _mapped_tensors(graph: Graph, input_map: InputMap) -> dict[str | TensorId, str | TensorId | Tensor | Node]:
    """The map with constants for plain values, and nodes for the tensors of control inputs.

    Raises:
        InvalidArgumentError: a constant would get no valid name.
    """
    mapped: dict[str | TensorId, str | TensorId | Tensor | Node] = {}
    for key, value in input_map.items():
        is_control = isinstance(key, str) and key.startswith("^")
        if isinstance(value, str | TensorId):
            mapped[key] = value
            continue
        if isinstance(value, Node) and is_control:
            mapped[key] = value
            continue
        is_value = not hasattr(value, "as_graph_element")
        if is_value and not graph.scopes.name:
            raise InvalidArgumentError(
                f"input_map[{key!r}]: required a tensor where the name is '', got {brief(value)}; gc.constant makes one"
            )
        with graph.name_scope("_inputs") if is_value else nullcontext():
            tensor = convert_to_tensor(graph, value, None, f"input_map[{key!r}]")
        mapped[key] = tensor.node if is_control else tensor
    return mapped


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
    """Read a graph file: a GraphDef, MetaGraphDef or SavedModel, or a model of another framework.

    The form (binary, protobuf text, JSON) is detected from the content. A saved model's signatures are in `graph.signatures`, by name. The values
    of its variables, if they lie beside it, are restored in each session before its first run.

    A model of another framework (ONNX, PyTorch, Keras, TFLite and others) becomes a graph of opaque ops, which can be shown, searched and compared.
    ONNX models and PyTorch's exported programs run in a `Session`, by their own frameworks. `from_source` reads objects, too.

    Args:
        path: the file or directory.
        graph: the target; a new graph by default. Models of other frameworks have a graph of their own.
        tags: the tags of the graph to read, for a SavedModel with several.
        allow_unknown_ops: import nodes of unregistered ops as opaque nodes, which can be shown, traversed and saved, but not run.
        allow_internal_ops: accept names that begin with `_`, as those of feed and fetch nodes do.
        validate_shape: infer shapes and refuse contradictions; otherwise shapes are unknown.

    Returns:
        The graph.

    Raises:
        NotFoundError: there is no such file, no graph with these tags, or an op is not registered.
        InvalidArgumentError: it is no graph file, or its graph is invalid.

    Example:
        >>> gc.constant(1.0, name="x") + 2.0
        <gc.Tensor 'add:0' float []>
        >>> gc.load(gc.save(gc.get_default_graph(), "model.pb"))
        <gc.Graph 3 nodes>
    """
    place = checked_path(path)
    source = source_of(place) if is_file(place) or is_folder(place) else Source(path=place)
    frontend = frontend_for(source)
    if frontend is not None:
        if graph is not None:
            raise InvalidArgumentError(f"load: required no target for {named(source)}, since it is of another framework: {frontend.KIND}")
        return lower(read_by(frontend, source))
    meta_graph = _tensorflow_graph(source, path, tags)
    graph = Graph() if graph is None else graph
    options = ImportOptions(allow_unknown_ops=allow_unknown_ops, allow_internal_ops=allow_internal_ops, validate_shape=validate_shape)
    _import_graph_def(meta_graph.graph_def, graph, options)
    graph.signatures = {**graph.signatures, **meta_graph.signatures}
    ends = filter(None, (*meta_graph.restores, meta_graph.saves, *meta_graph.init_ops))
    graph.saver_nodes |= frozenset([end.partition(":")[0] for end in ends])
    prefix = _checkpoint_beside(checked_path(path))
    index = f"{prefix}.index"
    if is_file(index) and meta_graph.restores:
        graph.saved_values = (*graph.saved_values, SavedValues(prefix, meta_graph.restores[0], meta_graph.restores[1], meta_graph.init_ops))
    elif meta_graph.tags or meta_graph.restores:
        graph.absent_values = (*graph.absent_values, _absent(meta_graph, index))
    return graph


def _tensorflow_graph(source: Source, path: str | Path, tags: Collection[str] | None) -> Any:
    """The graph of a file of TensorFlow.

    Raises:
        InvalidArgumentError: it is no graph file. If it looks like another kind of file, the message says so.
    """
    events = event_files(source)
    try:
        if events:
            return _wire().chosen_meta_graph(_wire().read_meta_graphs(last_graph(events)), path, tags)
        if source.is_gzipped:
            return _wire().chosen_meta_graph(_wire().read_meta_graphs(source_bytes(source)), path, tags)
        return _wire().load_meta_graph(path, tags)
    except InvalidArgumentError as error:
        if source.path is None or is_folder(source.path) or not is_recognised(source):
            raise
        raise unknown_kind(source) from error


def from_source(value: Any) -> Graph:
    """The graph of opaque ops that shows an object or file of another framework.

    Args:
        value: a path, or an object: an `onnx.ModelProto`, a `torch.export.ExportedProgram`, a `keras.Model` and others.

    Returns:
        The graph. Its nodes have the ops, shapes, scopes and source lines of the framework.

    Raises:
        InvalidArgumentError: nothing here reads such a value; the message lists what can be opened.
        GraphError: it is damaged, exceeds a limit, or a library is missing.
    """
    return lower(open_source(value))


def _absent(meta_graph: Any, index: str) -> AbsentValues:
    names = frozenset(_names_of_resources(meta_graph.graph_def))
    return AbsentValues(index, is_file(index), names, *meta_graph.restores)


def _checkpoint_beside(path: Path) -> str:
    """The prefix of the checkpoint of a SavedModel, given its directory or its file."""
    return str((path if is_folder(path) else path.parent) / _wire().VARIABLES / _wire().VARIABLES)


def _names_of_resources(graph_def: GraphDef) -> Iterator[str]:
    """The names that the resources of nodes have, those in bodies of functions too."""
    for node in chain(graph_def.node, *(function.node_def for function in graph_def.library.function)):
        yield attr_text(node.attr.get("shared_name")) or node.name


def save(graph: Graph | GraphDef, path: str | Path) -> Path:
    """Write a graph with its function library as a GraphDef.

    Args:
        graph: the graph.
        path: the suffix `.pbtxt` or `.txt` gives protobuf text, `.json` JSON, any other the binary form. `save_saved_model` writes
            SavedModel directories.

    Returns:
        The path.

    Raises:
        FailedPreconditionError: the file cannot be written.

    Example:
        >>> x = gc.constant(1.0, name="x")
        >>> print(gc.save(x.graph, "model.pbtxt"))
        model.pbtxt
    """
    target = checked_path(path)
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
    """Write a graph with functions and signatures as a SavedModel directory.

    `gc.load` and TensorFlow read it. It does not contain the values of variables; `gc.save_variables` writes those.

    Args:
        graph: the graph, with the signatures it was loaded with.
        directory: the target; created if missing.
        signatures: further signatures by name: inputs and outputs, each a mapping of argument names to tensors.
        tags: the tags of the graph.
        text: write protobuf text (`saved_model.pbtxt`) instead of the binary form (`saved_model.pb`).

    Returns:
        The path of the directory.

    Raises:
        InvalidArgumentError: a signature names something other than tensors of the graph.
        FailedPreconditionError: the directory cannot be written.
    """
    wire, place = _wire(), checked_path(directory)
    built = {
        name: wire.Signature(*[_infos(graph, name, side) for side in (inputs, outputs)], _PREDICT)
        for name, (inputs, outputs) in (signatures or {}).items()
    }
    meta_graph = wire.MetaGraph(graph.as_graph_def(), tuple(tags), {**graph.signatures, **built})
    wire.save_meta_graphs([meta_graph], place, text=text)
    return place


def _infos(graph: Graph, signature: str, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    infos = {}
    for name, tensor in tensors.items():
        element = graph.as_graph_element(tensor)
        if not isinstance(element, Tensor):
            raise InvalidArgumentError(f"Signature '{signature}': '{name}' must be a tensor of the graph, got {brief(tensor)}")
        infos[name] = _wire().TensorInfo(element.name, element.dtype.base, element.shape)
    return infos


def register_op_list(source: str | Path | bytes | Iterable[OpDef], registry: OpRegistry | None = None) -> list[str]:
    """Register the ops of an OpList, so that graphs with them can be imported, but not run.

    Only their signatures are known. Ops that are registered already are unchanged. An inconsistent OpDef, such as one with an argument
    that has no valid name, is left out, with a warning that gives the reason.

    Args:
        source: a file of an OpList (binary, protobuf text, JSON), its bytes, or OpDefs.
        registry: the target; the global registry by default.

    Returns:
        The names of the new ops.

    Raises:
        NotFoundError: there is no such file.
        InvalidArgumentError: it is no OpList.
    """
    if isinstance(source, str | Path):
        source = file_bytes(source)
    op_defs = _wire().op_defs_of(source) if isinstance(source, bytes) else source
    return register_ops(op_defs, registry)


def _wire() -> Any:
    """Import the wire package lazily: it loads protobuf, which most sessions never need.

    That would add a third to the time of the import.
    """
    from graphcore.definitions import wire  # noqa: PLC0415 - see above

    return wire
