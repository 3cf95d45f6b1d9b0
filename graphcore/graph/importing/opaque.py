"""Opaque nodes, of unregistered ops: held, shown and exported unchanged; only edges are known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from graphcore.definitions import GraphDef, NodeDef, OpDef, add_default_attrs, in_out_types_for_node
from graphcore.definitions.op_tables import MAX_SLOTS
from graphcore.dtypes import INVALID, DType
from graphcore.errors import GraphError, InvalidArgumentError, NotFoundError
from graphcore.functions import FunctionLibraryDefinition
from graphcore.graph.model.tensor_id import CONTROL, TensorId, parse_tensor_name
from graphcore.inference.shape_fns.common_shape_fns import unknown_shape
from graphcore.registry import OpRegistration
from graphcore.support.budget import charge_outputs

OutputTypes = Mapping[str, tuple[DType, ...]]
"""The types of the outputs of opaque nodes, by name; INVALID for unknown ones."""


@lru_cache(maxsize=1024)
def opaque_registration(op: str) -> OpRegistration:
    """The registration of an unregistered op. It counts as stateful: passes may not merge, fold or drop it."""
    return OpRegistration(OpDef(name=op, is_stateful=True), unknown_shape, is_opaque=True)


def is_known(op: str, library: FunctionLibraryDefinition) -> bool:
    """True iff `op` is registered or a function."""
    try:
        library.look_up(op)
    except NotFoundError:
        return False
    return True


def opaque_outputs(graph_def: GraphDef, library: FunctionLibraryDefinition, wanted: Iterable[TensorId]) -> OutputTypes:
    """The outputs of nodes of unknown ops: as many as are used, with the types their consumers expect."""
    known_ops = {op: is_known(op, library) for op in {node.op for node in graph_def.node}}
    counts = {node.name: _declared_outputs(node) for node in graph_def.node if not known_ops[node.op]}
    if not counts:
        return {}
    types: dict[TensorId, DType] = {}
    for name, index in wanted:
        counts[name] = max(counts.get(name, 0), index + 1)
    for node in graph_def.node:
        expected = _input_types(node, library) if known_ops[node.op] else ()
        for slot, text in enumerate(node.input):
            name, index = parse_tensor_name(text)
            if name not in counts or index == CONTROL:
                continue
            counts[name] = max(counts[name], index + 1)
            if slot < len(expected):
                types.setdefault(TensorId(name, index), expected[slot].base)
    outputs = {name: [INVALID] * _checked(name, count) for name, count in counts.items()}
    for (name, index), dtype in types.items():
        outputs[name][index] = dtype
    return {name: tuple(dtypes) for name, dtypes in outputs.items()}


def _checked(name: str, count: int) -> int:
    """The number of outputs of node `name`, which a file may claim by a short text.

    Raises:
        InvalidArgumentError: it is too large.
        ResourceExhaustedError: it does not fit into the budget.
    """
    if count > MAX_SLOTS:
        raise InvalidArgumentError(f"Number of outputs is too big: {count}", node=name)
    charge_outputs(name, count)
    return count


def _declared_outputs(node: NodeDef) -> int:
    shapes = node.attr.get("_output_shapes")
    return len(shapes) if isinstance(shapes, tuple) else 0


def _input_types(node: NodeDef, library: FunctionLibraryDefinition) -> tuple[DType, ...]:
    op_def = library.look_up_op_def(node.op)
    try:
        return in_out_types_for_node(add_default_attrs(node, op_def), op_def)[0]
    except GraphError:
        return ()  # the import reports the error at this node
