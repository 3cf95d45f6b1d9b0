"""Reads of variables inside functions and loops, which gradients do not reach."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from graphcore.attrs import AttrValue, Func, attr_text
from graphcore.errors import UnimplementedError
from graphcore.graph import Graph, Node, Tensor
from graphcore.plumbing import IDENTITY, VALUE_OF
from graphcore.runtime import needed_nodes

_PASS_HANDLES_ON: Final = frozenset({"Enter", IDENTITY, "IdentityN", "Switch"})


def check_read_outside(ys: list[Tensor], handle: Tensor) -> None:
    """Check that no function or loop that `ys` depend on reads a variable through its handle.

    Raises:
        UnimplementedError: one does.
    """
    inward = {node for node, slot in handle.graph.tensor_consumers(handle) if slot >= 0 and node.op in _PASS_HANDLES_ON}
    for node in needed_nodes(ys, [], []) if inward else ():
        if node in inward:
            raise UnimplementedError.at(
                node,
                f"'{node.name}' (op {node.op}) hands the handle of variable '{handle.node.name}' on, and gradients do not come back through it: "
                "read the variable before, and hand its value on",
            )
    callers = {node for node, slot in handle.graph.tensor_consumers(handle) if slot >= 0 and _called(node)}
    for node in needed_nodes(ys, [], []) if callers else ():
        if node in callers and _reads(node.graph, _called(node)):
            raise UnimplementedError.at(
                node,
                f"'{node.name}' (op {node.op}) reads variable '{handle.node.name}' within a function, and gradients do not come back through "
                "its handle: read it before, where no control dependencies are in force, and use that value in the function",
            )


def handles_of_references(graph: Graph) -> dict[str, list[Tensor]]:
    """The handles that calls take of reference variables, by the names of these."""
    handles: dict[str, list[Tensor]] = {}
    for node in graph.op_nodes():
        name = node.attr.get(VALUE_OF)
        if isinstance(name, bytes):
            handles.setdefault(attr_text(name), []).append(node.outputs[0])
    return handles


def _called(node: Node) -> list[str]:
    own = [node.op] if node.registration.is_function else []
    return own + _named(node.node_def.attr)


def _named(attrs: Mapping[str, AttrValue]) -> list[str]:
    values = [value for attr in attrs.values() for value in (attr if isinstance(attr, tuple) else (attr,))]
    return [value.name for value in values if isinstance(value, Func)]


def _reads(graph: Graph, names: list[str]) -> bool:
    """True iff one of the functions, or one they call, uses a value read from a variable."""
    pending, seen = list(names), set[str]()
    while pending:
        name = pending.pop()
        function = graph.library.find(name)
        if function is None or name in seen:
            continue
        seen.add(name)
        used = {text.partition(":")[0] for node in function.node_def for text in node.input if not text.startswith("^")}
        used |= {text.partition(":")[0] for text in function.ret.values()}
        if any(graph.library.look_up(node.op).traits.reads_variable and node.name in used for node in function.node_def):
            return True
        pending += [called for node in function.node_def for called in [node.op, *_named(node.attr)]]
    return False
