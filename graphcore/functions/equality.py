"""Equality of functions, docs included, regardless of the order of attrs and nodes."""

from __future__ import annotations

import msgspec

from graphcore.attrs import Attrs
from graphcore.definitions.attr_equality import attr_value_hash, attrs_equal
from graphcore.definitions.op_def_compare import op_def_equal, op_def_hash
from graphcore.definitions.types import FunctionDef, NodeDef


def function_defs_equal(first: FunctionDef, second: FunctionDef) -> bool:
    """True iff signature (docs too), attrs, nodes, returns and argument attrs are the same.

    The order of attrs and nodes does not matter.
    """
    if first is second:
        return True
    return (
        op_def_equal(first.signature, second.signature)
        and first.ret == second.ret
        and first.control_ret == second.control_ret
        and attrs_equal(first.attr, second.attr)
        and first.arg_attr.keys() == second.arg_attr.keys()
        and all(attrs_equal(attrs, second.arg_attr[index]) for index, attrs in first.arg_attr.items())
        and _nodes_equal(first.node_def, second.node_def)
    )


def function_def_hash(function: FunctionDef) -> int:
    """A hash that is equal for functions that `function_defs_equal` finds equal."""
    return hash((
        op_def_hash(function.signature),
        frozenset(function.ret.items()),
        frozenset(function.control_ret.items()),
        _attrs_hash(function.attr),
        frozenset([(index, _attrs_hash(attrs)) for index, attrs in function.arg_attr.items()]),
        frozenset([(node.name, node.op, node.device, _inputs(node), _attrs_hash(node.attr)) for node in function.node_def]),
    ))  # fmt: skip


def _nodes_equal(first: tuple[NodeDef, ...], second: tuple[NodeDef, ...]) -> bool:
    by_name = {node.name: node for node in second}
    if len(first) != len(second) or len({node.name for node in first}) != len(by_name):
        return False
    return all(node.name in by_name and _node_equal(node, by_name[node.name]) for node in first)


def _node_equal(first: NodeDef, second: NodeDef) -> bool:
    plain = (msgspec.structs.replace(node, input=(), attr={}) for node in (first, second))
    return _inputs(first) == _inputs(second) and attrs_equal(first.attr, second.attr) and next(plain) == next(plain)


def _inputs(node: NodeDef) -> tuple[tuple[str, ...], frozenset[str]]:
    """The data inputs in order; control inputs are unordered."""
    return tuple([name for name in node.input if not name.startswith("^")]), frozenset(
        [name for name in node.input if name.startswith("^")]
    )


def _attrs_hash(attrs: Attrs) -> int:
    return hash(frozenset([(name, attr_value_hash(value)) for name, value in attrs.items()]))
