"""Remarks on graphs of other frameworks: shapes that fit, and perhaps not as was meant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from graphcore.frontends.foreign import ForeignFunction, ForeignGraph, ForeignNode, Port
from graphcore.frontends.foreign_ops import foreign_traits
from graphcore.source import SourceLocation

_ALSO_ELEMENTWISE: Final = frozenset(["power", "rsub", "atan2", "mse_loss", "l1_loss"])
_RESHAPES: Final = frozenset(["broadcast_in_dim", "reshape", "expand_dims", "unsqueeze", "view", "getitem", "squeeze"])
_BROADCASTS: Final = frozenset(["broadcast_in_dim", "broadcast_to", "expand"])
_MOST: Final = 4


def mark_broadcasts(source: ForeignGraph) -> list[str]:
    """Note operations that make a matrix of a vector and a column without an axis given to one.

    Returns:
        The notes, as sentences.
    """
    remarks = [text for function in (source.main, *source.functions.values()) for text in _in_function(function)]
    return list(dict.fromkeys(remarks))[:_MOST]


def _is_elementwise(node: ForeignNode) -> bool:
    return foreign_traits(node.op).elementwise or _title(node) in _ALSO_ELEMENTWISE


def _in_function(function: ForeignFunction) -> list[str]:
    nodes = {node.name: node for node in function.nodes}
    remarks = []
    for node in function.nodes:
        if not _is_elementwise(node) or node.differentiates or len(node.outputs) != 1:
            continue
        pair = [ref for ref in node.inputs if ref is not None and len(_sizes(nodes, ref)) > 0]
        if len(pair) != 2 or len(node.outputs[0].shape or ()) != 2:
            continue
        for vector, column in (pair, pair[::-1]):
            text = _remark(nodes, node, _vector(nodes, vector), column)
            if text:
                node.doc = node.doc or text
                remarks.append(text)
    return remarks


def _remark(nodes: Mapping[str, ForeignNode], node: ForeignNode, vector: tuple[str, int] | None, column: tuple[str, int]) -> str:
    """The remark on an operation of a vector and a column, "" if there is none."""
    if vector is None:
        return ""
    before, after = _sizes(nodes, vector), _sizes(nodes, column)
    size = before[0]
    if size == 1 or after != (size, 1) or node.outputs[0].shape != (size, size) or _title(nodes[column[0]]) in _RESHAPES:
        return ""
    return (
        f"A vector ({size},) and a column ({size}, 1) make a matrix ({size}, {size}) in {_title(node)}{place_of(node)}: each element of '{vector[0]}' "
        f"meets each of '{column[0]}'. For pairs of elements give both one shape: `[:, 0]`, `.squeeze(-1)` or `[:, None]`."
    )


def _vector(nodes: Mapping[str, ForeignNode], ref: tuple[str, int]) -> tuple[str, int] | None:
    """The vector behind an input, whose broadcast may be that of the operation; None for others."""
    sizes = _sizes(nodes, ref)
    if len(sizes) == 1:
        return ref
    maker = nodes[ref[0]]
    inner = maker.inputs[0] if maker.inputs else None
    if _title(maker) in _BROADCASTS and inner is not None and len(_sizes(nodes, inner)) == 1 and sizes[-1] == _sizes(nodes, inner)[0]:
        return inner
    return None


def _sizes(nodes: Mapping[str, ForeignNode], ref: tuple[str, int]) -> tuple[object, ...]:
    node = nodes.get(ref[0])
    port = node.outputs[ref[1]] if node is not None and ref[1] < len(node.outputs) else Port()
    return port.shape or ()


def _title(node: ForeignNode) -> str:
    return node.op.rpartition(".")[2].strip("_")


def place_of(node: ForeignNode) -> str:
    """The line of a node in words, with its text, "" if it is unknown."""
    if not node.frames:
        return ""
    location = SourceLocation(node.frames[-1].file, node.frames[-1].line)
    return f" ({location.where}: {text})" if (text := node.frames[-1].text or location.text) else f" ({location.where})"
