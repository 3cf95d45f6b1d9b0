"""Counting of the costs of a graph, node by node."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import prod
from typing import Final

from graphcore.costing.bodies import bodies_of, has_bodies, is_choice, is_loop
from graphcore.costing.costs import Costs, NodeCost
from graphcore.costing.kinds_of_work import KIND_OF
from graphcore.costing.multiply_adds import BY_WORD, MULTIPLY_ADDS, UnknownSizesError, Work, of_product
from graphcore.costing.sizes import ZERO, BatchNames, product
from graphcore.dtypes import DType
from graphcore.errors import GraphError
from graphcore.frontends.foreign import ForeignNode
from graphcore.frontends.record import foreign_of
from graphcore.frontends.words import weight_bytes
from graphcore.graph import Graph, Node
from graphcore.inference.expressions import Expression, constant
from graphcore.inference.handles import handle_to_shape
from graphcore.op_names import plain_op
from graphcore.passes import InstantiatedFunctions
from graphcore.plumbing import ENTER
from graphcore.shapes import Shape

_PER_ELEMENT: Final = {"softmax": 5, "normalization": 4, "sigmoid": 1, "tanh": 1, "bias": 1, "addition": 1, "scaling": 1}
"""The operations of layers for each element of the result."""
_MOST_NESTED: Final = 16
_VERSION: Final = re.compile(r"v\d+$")
_HELD: Final = frozenset({"constant", "variable", "placeholder", "return", "control"})


def count_costs(graph: Graph) -> Costs:
    """Count the work and memory of a graph from its shapes; see `gc.costs`."""
    counted = Costs()
    _Count(counted, graph).count(graph)
    return counted


class _Count:
    """Adds up the costs of a graph and of the functions that it calls."""

    def __init__(self, counted: Costs, graph: Graph) -> None:
        self._costs = counted
        self._functions = InstantiatedFunctions(graph.library)
        self._names = BatchNames(graph)

    def count(self, graph: Graph) -> None:
        """Count all nodes."""
        for name, cost in self._of_graph(graph, "", 0):
            self._costs.nodes[name] = cost
            self._costs.total = self._costs.total + cost

    def _of_graph(self, graph: Graph, prefix: str, depth: int) -> Iterator[tuple[str, NodeCost]]:
        """The costs of the nodes of a graph, those of functions after their calls."""
        foreign = foreign_of(graph)
        records: Mapping[str, ForeignNode] = {} if foreign is None else foreign.nodes
        for node in graph.op_nodes():
            record = records.get(node.name)
            name = prefix + node.name
            if node.op in ENTER:
                self._note("Loops of version 1 count as one turn.")
            if node.registration.traits.role in _HELD:
                yield name, _held(node, record)
            elif has_bodies(node) and plain_op(node.op).lower() not in KIND_OF:
                yield name, NodeCost()
                yield from self._of_bodies(node, record, name, depth)
            else:
                yield name, self._computed(node, record, name)

    def _of_bodies(self, node: Node, record: ForeignNode | None, name: str, depth: int) -> list[tuple[str, NodeCost]]:
        """The costs of the nodes of the functions that a node runs."""
        try:
            bodies = list(bodies_of(node, self._functions)) if depth < _MOST_NESTED else []
        except GraphError as error:
            self._costs.unknown[name] = error.message
            return []
        if not bodies:
            self._costs.unknown[name] = f"its functions are nested more than {_MOST_NESTED} deep"
        parts = [list(self._of_graph(body, f"{name}:{title}/", depth + 1)) for title, body in bodies]
        if is_choice(node) and parts:
            self._note("Of branches, the one with the most operations counts.")
            return max(parts, key=lambda part: sum(_at_one(cost.operations) for _, cost in part))
        turns = None if record is None else record.attrs.get("length")
        if isinstance(turns, int):
            return [(inner, cost.times(constant(turns))) for part in parts for inner, cost in part]
        if is_loop(node):
            self._note(f"A loop whose turns are not known counts as one turn: {name}.")
        return [pair for part in parts for pair in part]

    def _note(self, text: str) -> None:
        if text not in self._costs.notes:
            self._costs.notes.append(text)

    def _computed(self, node: Node, record: ForeignNode | None, name: str) -> NodeCost:
        work = Work(
            "" if record is None else node.op.partition(".")[0],
            plain_op(node.op).lower() if node.is_opaque else _VERSION.sub("", node.op.lower()),
            [self._names.sizes_of(tensor) for tensor in node.inputs],
            [self._names.sizes_of(tensor) for tensor in node.outputs],
            node.attr if record is None else record.attrs,
        )
        try:
            multiply_adds, operations = _work(node, work)
        except UnknownSizesError as reason:
            self._costs.unknown[name] = str(reason)
            multiply_adds = operations = ZERO
        results = _bytes(node, work)
        is_moved = operations.terms or results.terms
        return NodeCost(multiply_adds, operations, results, moved_bytes=results + _taken_bytes(node, work) if is_moved else ZERO)


def _held(node: Node, record: ForeignNode | None) -> NodeCost:
    """The costs of a constant, a parameter, a variable or an input."""
    weight = None if record is None else record.weight
    role = node.registration.traits.role
    if role not in {"constant", "variable"}:
        return NodeCost()
    elements, size = 0, 0
    if weight is not None:
        elements, size = prod(weight.shape), max(0, weight_bytes(weight))
    elif node.outputs or node.handle_data:
        shape, dtype = _stored(node)
        elements = max(0, shape.num_elements)
        size = elements * dtype.size
    is_parameter = record.kind == "parameter" if record is not None else role == "variable"
    return NodeCost(parameters=elements if is_parameter else 0, weight_bytes=size)


def _stored(node: Node) -> tuple[Shape, DType]:
    """The shape and type of the tensor that a node holds."""
    held = (node.handle_data or {}).get(0)
    if held and held[0].dtype is not None:
        return handle_to_shape(held[0].shape), held[0].dtype
    tensor = node.outputs[0]
    return tensor.shape, tensor.dtype.base


def _work(node: Node, work: Work) -> tuple[Expression, Expression]:
    """The multiply-adds and all operations of a node.

    Raises:
        UnknownSizesError: they cannot be counted.
    """
    traits = node.registration.traits
    rule = BY_WORD.get(work.word) or MULTIPLY_ADDS.get(traits.layer) or (of_product if traits.cost == "product" else None)
    if rule is not None:
        multiply_adds = rule(work)
        return multiply_adds, multiply_adds + multiply_adds
    kind = KIND_OF.get(work.word, "")
    if traits.layer == "pooling" or kind == "reductions":
        return ZERO, product(work.input(0))
    if (
        kind == "moves"
        or traits.layer in {"concatenation", "resizing"}
        or traits.memory not in {"unknown", "fresh"}
        or traits.needs_only_shapes
        or traits.gathers_rows
    ):
        return ZERO, ZERO
    if traits.layer in _PER_ELEMENT:
        return ZERO, constant(_PER_ELEMENT[traits.layer]) * product(work.output())
    if traits.elementwise or kind == "elementwise":
        return ZERO, product(work.output())
    if not node.is_opaque and traits.cost in {"elementwise", "transcendental"}:
        has_effects = traits.stores or traits.takes_value or traits.reads_variable
        return ZERO, ZERO if has_effects else _largest(work)
    raise UnknownSizesError(f"the work of {node.op} is not known")


def _largest(work: Work) -> Expression:
    """The elements of the largest tensor that a node takes or gives, unknown sizes taken as 1."""
    amounts = [product(sizes) for sizes in (*work.inputs, *work.outputs) if sizes is not None]
    if not amounts:
        raise UnknownSizesError("the sizes of its tensors are unknown")
    return max(amounts, key=_at_one)


def _at_one(amount: Expression) -> int:
    """An amount for sizes of 1."""
    return amount.value(dict.fromkeys(amount.names, 1))


def _taken_bytes(node: Node, work: Work) -> Expression:
    """The bytes that a node takes, without unknown sizes, and without a table whose rows it gathers."""
    total = ZERO
    for place, (tensor, sizes) in enumerate(zip(node.inputs, work.inputs, strict=True)):
        if sizes is not None and not (place == 0 and node.registration.traits.gathers_rows):
            total = total + product(sizes) * constant(tensor.dtype.base.size)
    return total


def _bytes(node: Node, work: Work) -> Expression:
    """The bytes of the results of a node, 0 for views of other tensors and for unknown sizes."""
    if node.registration.traits.returns_view:
        return ZERO
    total = ZERO
    for tensor, sizes in zip(node.outputs, work.outputs, strict=True):
        if sizes is not None:
            total = total + product(sizes) * constant(tensor.dtype.base.size)
    return total
