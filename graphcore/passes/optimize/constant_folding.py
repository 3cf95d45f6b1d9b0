"""Constant folding: nodes that depend on constants and static shapes become constants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

import msgspec
import numpy as np

from graphcore import dtypes
from graphcore.attrs import Array, AttrValue, TensorValue
from graphcore.definitions import NodeDef
from graphcore.device_spec import DeviceSpec
from graphcore.dtypes import DType
from graphcore.errors import GraphError, InvalidArgumentError, ResourceExhaustedError
from graphcore.graph import Graph, Node, Tensor
from graphcore.graph.model.node import producers_of
from graphcore.graph.model.search import post_order
from graphcore.graph.model.topological_order import renew_stale_ranks
from graphcore.graph.shapes.constant_costs import is_cheap
from graphcore.graph.shapes.evaluation import const_array, evaluate_node, may_be_evaluated, values_from_shapes
from graphcore.graph.traversal import by_name
from graphcore.passes.infra.declarations import PassDeclaration, declares
from graphcore.passes.infra.rewriting import Rewriting
from graphcore.passes.infra.rewriting_graphs import rewrites
from graphcore.plumbing import CONST, IDENTITY, NO_OP
from graphcore.shapes import Shape
from graphcore.support.budget import BudgetUsedUpError, one_budget

MAX_CONSTANT_BYTES: Final = 10 * 1024 * 1024
# Their results are no larger than their inputs, so unknown shapes are harmless.
_ANY_SHAPE: Final = frozenset({CONST, IDENTITY, "IdentityN", NO_OP, "Cast", "Less", "StopGradient"})


_rank: Final = attrgetter("rank")


class ConstantFoldingOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options for constant folding.

    Args:
        consider: returns False for nodes to keep.
        max_constant_size_in_bytes: larger values are not folded.
        shape_map: the shapes of the outputs of nodes, by name; the graph's by default. A node with an unknown shape in it is not folded.
        device: the device of new constants; the requested device of the folded node by default.
        ignore_failures: do not fold nodes that fail, and leave the error to the run.
    """

    consider: Callable[[Node], bool] | None = None
    max_constant_size_in_bytes: int = MAX_CONSTANT_BYTES
    shape_map: Mapping[str, Sequence[Shape]] | None = None
    device: str = ""
    ignore_failures: bool = False

    def shape_of(self, tensor: Tensor) -> Shape:
        """The static shape of the tensor."""
        if self.shape_map is None:
            return tensor.shape
        return next(iter(self.shape_map.get(tensor.node.name, ())[tensor.index :]), Shape(None))


DEFAULT_OPTIONS: Final = ConstantFoldingOptions()


@declares(PassDeclaration(name="fold_constants", adds=frozenset({"Const"}), rewires=True))
@rewrites
def fold_constants(graph: Graph, options: ConstantFoldingOptions = DEFAULT_OPTIONS) -> bool:
    """Fold nodes that depend on constants and static shapes only.

    Their consumers get new constants `<node>/_N__cf__<k>`, with the control inputs of all nodes folded into each. Folded nodes are left for
    `remove_dead_nodes`.

    Args:
        graph: the graph to change.
        options: the options.

    Returns:
        True iff anything was folded.

    Raises:
        GraphError: a node cannot be computed from these values; the graph is unchanged.
    """
    foldable = _Foldable(graph, options)
    wanted = foldable.wanted()
    if not wanted:
        return False
    with one_budget():
        values = _evaluated(wanted, foldable.shapes, options)
    count = sum(len(values) for values in foldable.shapes.values())  # each constant uses up a number, as in TensorFlow
    changed = False
    with Rewriting(graph) as rewriting:
        for tensor in wanted:
            value = values.get(tensor)
            if value is None or _size_in_bytes(value) > options.max_constant_size_in_bytes:
                continue
            name = f"{graph.node_store.new_name(tensor.node.name)}__cf__{count}"
            count += 1
            _replace(rewriting, tensor, value, name, foldable.waits_for[tensor.node], options.device)
            changed = True
    return changed


class _Foldable:
    """The nodes that depend on constants and static shapes only.

    Attributes:
        waits_for: for each such node, the nodes that it and its folded inputs wait for by control edges.
        shapes: the values determined by static shapes.
    """

    def __init__(self, graph: Graph, options: ConstantFoldingOptions) -> None:
        self.graph = graph
        self.options = options
        self.waits_for: dict[Node, dict[Node, None]] = {}
        self.shapes: dict[Node, list[Array]] = {}
        renew_stale_ranks(graph)
        for node in sorted(graph.op_nodes(), key=_rank):
            self.look_at(node)

    def wanted(self) -> list[Tensor]:
        """The tensors with consumers that are not folded, except constants; in the order of node names."""
        nodes = sorted([node for node in self.waits_for if node.op != CONST], key=by_name)
        taken = [sorted({tensor.index for tensor in self._taken(node)}) for node in nodes]
        return [node.outputs[index] for node, indices in zip(nodes, taken, strict=True) for index in indices]

    def _taken(self, node: Node) -> list[Tensor]:
        edges = [edge for edge in self.graph.edge_store.out_edges(node) if not edge.is_control_edge]
        return [node.outputs[edge.src_output] for edge in edges if edge.dst not in self.waits_for]

    def look_at(self, node: Node) -> None:
        """Decide on a node after its producers."""
        from_constants = all(tensor.node in self.waits_for for tensor in node.inputs)
        if not (from_constants or node.registration.traits.numbers_from_shapes is not None) or not self.is_foldable(node):
            return
        if not from_constants and node not in self.shapes:
            return
        waits_for = self.waits_for[node] = {}
        for producer in producers_of(node):
            waits_for.update(self.waits_for.get(producer) or ({} if producer in self.waits_for else {producer: None}))

    def is_foldable(self, node: Node) -> bool:
        if node.op == CONST:
            return node.output_types[0] is not dtypes.resource
        if self.options.consider is not None and not self.options.consider(node):
            return False
        try:
            values = values_from_shapes(node, [self.options.shape_of(tensor) for tensor in node.inputs])
        except InvalidArgumentError:  # the run reports that a number is too large
            return False
        if values is not None:
            self.shapes[node] = values
            return True
        return may_be_evaluated(node) and self.is_small(node) and is_cheap(node, self.options.shape_of) and self.is_in_one_memory(node)

    def is_small(self, node: Node) -> bool:
        shape_map = self.options.shape_map
        if shape_map is not None and node.name not in shape_map:
            return True
        for tensor in node.outputs:
            shape = self.options.shape_of(tensor)
            if not shape.is_fully_defined and shape_map is not None and node.op not in _ANY_SHAPE:
                return False  # the map lacks a shape: the value may be of any size
            if shape.num_elements * _item_size(tensor) > self.options.max_constant_size_in_bytes:
                return False
        return True

    def is_in_one_memory(self, node: Node) -> bool:
        """True on the CPU. Elsewhere, int32 values are in host memory, and all others in device memory."""
        kind = DeviceSpec.parse(self.options.device).type if self.options.device else "CPU"
        return kind in {"CPU", None} or len({dtype is dtypes.int32 for dtype in node.output_types}) <= 1


def _item_size(tensor: Tensor) -> int:
    dtype = tensor.dtype.as_numpy
    return 1 if dtype is None else dtype.itemsize


def _replace(rewriting: Rewriting, tensor: Tensor, value: Array, name: str, waits_for: Mapping[Node, None], device: str) -> None:
    node = tensor.node
    controls = sorted(waits_for, key=by_name)
    attrs: dict[str, AttrValue] = {"dtype": tensor.dtype, "value": TensorValue(value, tensor.dtype)}
    node_def = NodeDef(name, "Const", tuple([f"^{control.name}" for control in controls]), device or node.device, attrs)
    constant = rewriting.insert(node_def, [], controls, (), (tensor.dtype,), node)
    constant.assigned_device = device or node.assigned_device
    rewriting.move_tensor(tensor, constant.outputs[0])


def _evaluated(
    wanted: Sequence[Tensor], known_values: Mapping[Node, Sequence[Array]], options: ConstantFoldingOptions
) -> dict[Tensor, Array]:
    """Compute tensors.

    Args:
        wanted: the tensors.
        known_values: the outputs of nodes where they are known.
        options: the options.

    Raises:
        GraphError: a node refuses its inputs; `node` names it.
    """
    order = post_order(
        [tensor.node for tensor in reversed(wanted)], lambda node: [] if node in known_values else [x.node for x in node.inputs]
    )
    left = Counter([tensor for node in order if node not in known_values for tensor in node.inputs])
    left.update(wanted)
    values: dict[Tensor, Array] = {}
    for node in order:
        values.update(_computed(node, values, known_values.get(node), options))
        if node in known_values:
            continue
        for tensor in node.inputs:
            left[tensor] -= 1
            if not left[tensor]:
                values.pop(tensor, None)  # intermediate values would otherwise add up
    return values


def _size_in_bytes(value: Array) -> int:
    """The bytes of a value; for strings, those of their content."""
    if value.dtype != object:
        return value.nbytes
    return value.nbytes + sum(len(item) for item in value.reshape(-1).tolist() if isinstance(item, bytes))


def _computed(
    node: Node, values: Mapping[Tensor, Array], known_values: Sequence[Array] | None, options: ConstantFoldingOptions
) -> dict[Tensor, Array]:
    if known_values is not None:
        return dict(zip(node.outputs, known_values, strict=True))
    if any(tensor not in values for tensor in node.inputs):
        return {}
    if node.op == CONST:
        array = const_array(node)
        return {} if array is None else {node.outputs[0]: array}
    try:
        results = evaluate_node(node, [values[tensor] for tensor in node.inputs], options.shape_of)
    except BudgetUsedUpError:
        return {}
    except Exception as error:  # noqa: BLE001 - any error of a kernel is reported with its node
        if options.ignore_failures:
            return {}
        explained = _explained(error, node)
        raise explained from (None if explained is error else error)
    return {tensor: _as_declared(tensor, result) for tensor, result in zip(node.outputs, results, strict=True)}


def _as_declared(tensor: Tensor, value: Any) -> Array:
    dtype: DType = tensor.dtype
    array: Array = np.asarray(value)
    return array if array.dtype == dtype.as_numpy else array.astype(dtype.as_numpy)


def _explained(error: Exception, node: Node) -> GraphError:
    if isinstance(error, GraphError):
        return error.with_node(node.name, op=node.op, source=node.source)
    kind: type[GraphError] = ResourceExhaustedError if isinstance(error, MemoryError) else InvalidArgumentError
    text = f"{str(error) or type(error).__name__}\n\t [[{{{{node {node.name}}}}}]] = {node.op}"
    return kind.at(node, text)
