"""Integers in runs of ONNX models as the numbers that they stand for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from graphcore.frontends.record import foreign_of
from graphcore.op_names import plain_op

if TYPE_CHECKING:
    from graphcore.attrs import Array
    from graphcore.graph import Graph, Node

_QUANTIZING: Final = re.compile("quantizelinear|qlinear.*|qgemm")
_PLACES: Final = {"quantizelinear": (1, 2), "qlinearconv": (6, 7), "qlinearconcat": (0, 1)}
"""The inputs with the scale and the zero point of the result; the last two in other ops for integers."""
_MOVING: Final = frozenset({"maxpool", "reshape", "transpose", "flatten", "squeeze", "unsqueeze", "slice", "gather", "identity"})
"""Ops whose results have the scale of their first input."""
_SUMS: Final = frozenset({"convinteger", "matmulinteger"})
"""Ops whose results get their scale from later nodes."""
_FUSED: Final = frozenset({"relu", "relu6", "clip", "hardtanh"})
"""Ops that become a part of those before them in integers."""


def after_activations(pairs: Mapping[str, str], graph: Graph, other: Graph) -> dict[str, str]:
    """Pairs of nodes by their names, with the Relu that became a part of the other.

    It stands behind a node whose counterpart in integers has no negative numbers.

    Args:
        pairs: the nodes of `other` by those of `graph`.
        graph: the graph with a Relu of its own.
        other: the graph that may have none.
    """
    moved = {}
    for name, twin in pairs.items():
        node, made = graph.find(name), other.find(twin)
        behind = [] if node is None or made is None or not _has_no_negatives(other, made) else node.outputs[0].consumers()
        relu = behind[0].name if len(behind) == 1 and plain_op(behind[0].op).lower().rstrip("_") in _FUSED else ""
        moved[relu if relu and relu not in pairs else name] = twin
    return moved


def _has_no_negatives(graph: Graph, node: Node) -> bool:
    if _quantizes(node) and plain_op(node.op).lower() != "quantizelinear":
        zero = _held(graph, node, _PLACES.get(plain_op(node.op).lower(), (-2, -1))[1])
        return zero is not None and zero.dtype.kind in "iu" and bool((zero == np.iinfo(zero.dtype).min).all())
    return False


def real_values(graph: Graph, name: str, array: Array) -> Array | None:
    """The numbers for which the result of a node stands: itself unless it is quantised.

    Args:
        graph: the graph of a model.
        name: the node.
        array: its first result.

    Returns:
        The numbers; None for integers whose scale only later nodes have.
    """
    node = graph.find(name) if array.dtype.kind in "iu" else None
    while node is not None and plain_op(node.op).lower() in _MOVING and node.inputs:
        node = node.inputs[0].node
    op = "" if node is None else plain_op(node.op).lower()
    if op in _SUMS:
        return None
    if node is None or not _quantizes(node):
        return array
    scale, zero = [_held(graph, node, place) for place in _PLACES.get(op, (-2, -1))]
    if scale is None or scale.size != 1:
        return array
    real: Array = ((array.astype(np.float32) - (0 if zero is None else zero.astype(np.float32))) * scale).astype(np.float32)
    return real


def _quantizes(node: Node) -> bool:
    return _QUANTIZING.fullmatch(plain_op(node.op).lower()) is not None


def _held(graph: Graph, node: Node, place: int) -> Array | None:
    """The elements of a constant input."""
    record = foreign_of(graph)
    if record is None or not -len(node.inputs) <= place < len(node.inputs):
        return None
    return record.value(node.inputs[place].node)
