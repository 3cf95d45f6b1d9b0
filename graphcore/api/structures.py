"""Nested lists, tuples and dicts of tensors, and tensor arrays: flattening, rebuilding, description."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphcore.brief import brief
from graphcore.graph import Node, Tensor


def flatten(value: Any) -> tuple[Any, list[Any]]:
    """Flatten a structure.

    Returns:
        The structure with a number in the place of each leaf, and the leaves; the entries of a dict come in the order of its sorted keys.
    """
    leaves: list[Any] = []
    return _map(value, lambda leaf: _append_leaf(leaves, leaf)), leaves


def fill(structure: Any, values: Sequence[Any]) -> Any:
    """Put `values` into a structure made by `flatten`."""
    return _map(structure, lambda number: None if number is None else values[number])


def describe(value: Any) -> str:
    """Describe a leaf and the line that made it, for messages."""
    if isinstance(value, Tensor):
        source = value.node.source
        return f"{value.dtype.base.name} {value.shape} from '{value.name}'" + (f", made in {source}" if source is not None else "")
    if isinstance(value, Node):
        return f"the operation '{value.name}' (op {value.op})" + (f", made in {value.source}" if value.source is not None else "")
    return f"the {type(value).__name__} {brief(value)}"


def outline(structure: Any) -> str:
    """The form of a structure, with `*` for each leaf: `(*, {a: *})`."""
    if isinstance(structure, dict):
        return "{" + ", ".join([f"{key}: {outline(item)}" for key, item in structure.items()]) + "}"
    if isinstance(structure, list | tuple):
        inner = ", ".join([outline(item) for item in structure])
        return f"[{inner}]" if isinstance(structure, list) else f"({inner})"
    return "None" if structure is None else "*"


def _append_leaf(leaves: list[Any], leaf: Any) -> int | None:
    if leaf is None:
        return None
    leaves.append(leaf)
    return len(leaves) - 1


def _map(value: Any, change: Callable[[Any], Any]) -> Any:
    if hasattr(value, "with_flow"):
        return value.with_flow(_map(value.flow, change))
    if isinstance(value, dict):
        changed = {key: _map(value[key], change) for key in sorted(value, key=str)}
        return {key: changed[key] for key in value}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[_map(item, change) for item in value])
    if isinstance(value, list):
        return [_map(item, change) for item in value]
    if isinstance(value, tuple):
        return tuple([_map(item, change) for item in value])
    return change(value)
