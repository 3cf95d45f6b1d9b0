"""The check for missing control edges: uses of a variable whose order is left open."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import msgspec

from graphcore.attrs import attr_text
from graphcore.dtypes import resource
from graphcore.graph import Node, Tensor
from graphcore.graph.model.node import producers_of
from graphcore.graph.model.search import reachable
from graphcore.runtime.core.late_reads import is_own_read
from graphcore.testing.answering import answered
from graphcore.testing.failure import CheckFailed
from graphcore.testing.parts import node_of, part, where


class _Use(msgspec.Struct, frozen=True):
    """A use of a variable.

    Attributes:
        chain: the node that reads or changes it, and the nodes that hand the value that was read on, up to the last.
        changes: True if it is changed.
    """

    chain: tuple[Node, ...]
    changes: bool

    @property
    def node(self) -> Node:
        """The last node."""
        return self.chain[-1]


def no_missing_control_edge(value: Any) -> None:
    """Check that a run reads and changes each variable in one possible order.

    Of two uses of a variable, one of which changes it, one has to wait for the other, by data or by a control edge; otherwise a run may take them
    in either order. An expression that waits for a change reads the variable after it.

    Args:
        value: the fetches of the run: a tensor, node, variable or name, or a list of these.

    Raises:
        CheckFailed: the order of two uses is open; the text names their nodes with cells and lines.
        InvalidArgumentError: `value` is none of these.
    """
    answered(value)
    chosen = part(value)
    roots = {node_of(root) for root in chosen.roots}
    among = set(chosen.nodes)
    uses: dict[str, list[_Use]] = {}
    for node in chosen.nodes:
        for variable, use in _uses(node):
            if use.changes or node in roots or not _is_only_handed_on(node, among):
                uses.setdefault(variable, []).append(use)
    needs: dict[Node, set[Node]] = {}
    wrong = []
    for variable, nodes in uses.items():
        for one, other in combinations(nodes, 2):
            if (one.changes or other.changes) and not _are_ordered(one, other, needs):
                wrong.append(_sentence(variable, one, other))
    if wrong:
        raise CheckFailed("\n".join(wrong))


def _uses(node: Node) -> Iterator[tuple[str, _Use]]:
    """The variables that a node reads or changes. Nodes that pass a reference or a handle on do neither."""
    traits = node.registration.traits
    if _hands_on(node) and not node.inputs[0].dtype.is_ref:
        for variable, use in _uses(node.inputs[0].node):
            if not use.changes and _hands_on(use.node):
                yield variable, _Use((*use.chain, node), False)
        return
    for slot, tensor in enumerate(node.inputs):
        if is_own_read(tensor.node):
            for variable, use in _uses(tensor.node):
                yield variable, _Use((*use.chain, node), False)
            continue
        is_reference = tensor.dtype.is_ref
        if not (is_reference or tensor.dtype is resource):
            continue
        changes = traits.writes_input and slot == 0
        if changes or traits.reads_variable or (is_reference and not node.input_types[slot].is_ref):
            for variable in _variables(tensor):
                yield variable, _Use((node,), changes)


def _hands_on(node: Node) -> bool:
    """True iff the output of a node is its input itself. The nodes after it then read the variable."""
    return node.registration.traits.memory == "alias" and len(node.inputs) == 1


def _is_only_handed_on(node: Node, among: set[Node]) -> bool:
    consumers = [consumer for output in node.outputs for consumer in output.consumers() if consumer in among]
    return _hands_on(node) and bool(consumers) and (is_own_read(node) or all(_hands_on(consumer) for consumer in consumers))


def _variables(tensor: Tensor) -> list[str]:
    """The variables behind a reference or a handle, by the name under which a session stores them."""
    reached = reachable([tensor.node], _handed_on)
    return [
        attr_text(node.node_def.attr.get("shared_name")) or node.name for node in reached if node.registration.traits.role == "variable"
    ]


def _handed_on(node: Node) -> list[Node]:
    return [tensor.node for tensor in node.inputs if tensor.dtype.is_ref or tensor.dtype is resource]


def _are_ordered(one: _Use, other: _Use, needs: dict[Node, set[Node]]) -> bool:
    return any(_needs(a, b, needs) or _needs(b, a, needs) for a in one.chain for b in other.chain)


def _needs(node: Node, other: Node, ancestors: dict[Node, set[Node]]) -> bool:
    if node not in ancestors:
        ancestors[node] = reachable([node], producers_of)
    return other in ancestors[node]


def _sentence(variable: str, one: _Use, other: _Use) -> str:
    first, second = (one, other) if one.changes else (other, one)
    verb = "changes it too" if second.changes else "reads it"
    lines = [
        f"Required an order of two uses of '{variable}', got none",
        f"  '{first.node.name}'{where(first.node)} changes it",
        f"  '{second.node.name}'{where(second.node)} {verb}",
    ]
    read = second.chain[0].name
    if read == f"{variable}/read":
        lines += [
            f"To read after the change, make '{second.node.name}' within gc.control_dependencies(['{first.node.name}'])",
            f"To read before it, make the change within gc.control_dependencies(['{second.node.name}'])",
        ]
    else:
        lines.append("Make one of them within gc.control_dependencies([the other])")
    return "\n".join(lines)
