"""Options and results of an import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from graphcore.brief import brief
from graphcore.errors import InvalidArgumentError
from graphcore.graph.model.node import Node, Tensor
from graphcore.graph.model.tensor_id import CONTROL, TensorId, parse_tensor_name

TensorLike = str | TensorId | Tensor | Node
"""A tensor by name (`x`, `x:1`, `^x` for a control input), as a pair, or itself; a node stands for its output 0."""


class ImportOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of `import_graph_def`.

    Attributes:
        prefix: a name scope for all imported nodes.
        uniquify_names: rename a node with a taken name to the first free one of `name_1`, `name_2`, ... instead of refusing it.
        uniquify_prefix: likewise for the prefix, so that all names under it are kept.
        input_map: the tensors of the graph that replace tensors of the GraphDef (named without the prefix); `^a` to `^b` maps control inputs.
        skip_mapped_nodes: leave out nodes whose outputs are all mapped.
        control_dependencies: control inputs of imported nodes without an imported input.
        return_tensors: tensors of the GraphDef to return, after mapping.
        return_nodes: nodes of the GraphDef to return.
        validate_colocation_constraints: refuse colocation with a node that is not imported.
        validate_shape: infer the shapes and refuse contradictions; otherwise shapes are unknown.
        default_device: the device of nodes that request none.
        surrounding_device: a request whose parts the nodes get that they do not request themselves; those that share the device of another do not.
        allow_unknown_ops: import nodes of unregistered ops as opaque nodes, which can be shown but not run.
        allow_internal_ops: accept names that begin with `_`, as those of feed and fetch nodes do.
    """

    prefix: str = ""
    uniquify_names: bool = False
    uniquify_prefix: bool = False
    input_map: Mapping[str | TensorId, TensorLike] = {}
    skip_mapped_nodes: bool = False
    control_dependencies: Sequence[str | Node | Tensor] = ()
    return_tensors: Sequence[str | TensorId] = ()
    return_nodes: Sequence[str] = ()
    validate_colocation_constraints: bool = True
    validate_shape: bool = True
    default_device: str = ""
    surrounding_device: str = ""
    allow_unknown_ops: bool = False
    allow_internal_ops: bool = False


class ImportResults:
    """The results of an import.

    Attributes:
        return_tensors, return_nodes: those requested by the options, in order.
        missing_unused_input_map_keys: keys of the input map that were not used and are not names of the GraphDef.
    """

    __slots__ = ("missing_unused_input_map_keys", "return_nodes", "return_tensors")

    def __init__(self) -> None:
        self.return_tensors: list[Tensor] = []
        self.return_nodes: list[Node] = []
        self.missing_unused_input_map_keys: list[TensorId] = []

    def __repr__(self) -> str:
        return (
            f"ImportResults(return_tensors={self.return_tensors}, return_nodes={self.return_nodes}, "
            f"missing_unused_input_map_keys={[str(key) for key in self.missing_unused_input_map_keys]})"
        )


def check_results(options: ImportOptions, results: ImportResults | None) -> None:
    """Check that empty results are given if something is to be returned.

    Raises:
        InvalidArgumentError: there are none, or they are not empty.
    """
    if options.return_tensors and results is None:
        raise InvalidArgumentError("results argument to ImportGraphDef() must be non-null if opts.return_tensors is non-empty")
    if options.return_nodes and options.skip_mapped_nodes:
        raise InvalidArgumentError("Requesting return_nodes with skip_mapped_nodes set is not currently supported")
    if options.return_nodes and results is None:
        raise InvalidArgumentError("results argument to ImportGraphDef() must be non-null if opts.return_nodes is non-empty")
    if results is not None and (results.return_tensors or results.return_nodes or results.missing_unused_input_map_keys):
        raise InvalidArgumentError("All fields in results argument to ImportGraphDef() must be empty.")


def tensor_id_of(item: TensorLike, *, control: bool = False) -> TensorId:
    """Convert `item` to a tensor name; for a node with `control`, to its control output.

    Raises:
        InvalidArgumentError: it names nothing.
    """
    if isinstance(item, TensorId):
        return item
    if isinstance(item, str):
        return parse_tensor_name(item)
    if isinstance(item, Tensor):
        return TensorId(item.node.name, item.index)
    if isinstance(item, Node):
        return TensorId(item.name, CONTROL if control else 0)
    raise InvalidArgumentError(f"Required the name of a tensor, a tensor or a node, got {brief(item)}")
