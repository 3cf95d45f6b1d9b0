"""Places of tensors that no node takes: in the modules that own them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphcore.frontends.foreign import ForeignNode, ModuleCall


def placed_states(nodes: list[ForeignNode]) -> list[ForeignNode]:
    """Nodes with those tensors that none of them takes in the modules by which they are named."""
    used = {ref[0] for node in nodes for ref in node.inputs if ref is not None}
    modules: dict[str, tuple[ModuleCall, ...]] = {}
    for node in nodes:
        for depth, call in enumerate(node.modules):
            modules.setdefault(call.path, node.modules[: depth + 1])
    return [
        replace(node, modules=_owner(node.name, modules)) if node.kind in {"parameter", "buffer"} and node.name not in used else node
        for node in nodes
    ]


def _owner(name: str, modules: dict[str, tuple[ModuleCall, ...]]) -> tuple[ModuleCall, ...]:
    path = name
    while path:
        path = path.rpartition(".")[0]
        if path in modules:
            return modules[path]
    return ()
