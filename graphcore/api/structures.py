"""Nested lists, tuples, dicts and composites of tensors: flattening, rebuilding, description."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self, runtime_checkable

from graphcore.brief import brief
from graphcore.graph import Node, Tensor
from graphcore.shapes import Shape


@runtime_checkable
class Composite(Protocol):
    """A value of several tensors: a tensor array, a sparse tensor, slices."""

    @property
    def components(self) -> tuple[Any, ...]:
        """The tensors, None for one that is absent."""

    @property
    def form(self) -> str:
        """Its kind, in words; two of one form can take each other's place."""

    def with_components(self, components: Sequence[Any]) -> Self:
        """The same with other tensors, or what stands for them."""

    def component_shapes(self, shape: Any) -> list[Shape]:
        """The shapes of the tensors where the whole has `shape`, the invariant of a loop variable."""


@runtime_checkable
class Described(Composite, Protocol):
    """A composite that knows more than its tensors tell: a tensor array the shape of its elements."""

    def united(self, other: Self) -> Self:
        """A value that allows for both this one and another of the same form."""


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


def unite(structure: Any, other: Any) -> Any:
    """Unite two structures of one outline, with the numbers of the first."""
    if isinstance(structure, Described):
        return structure.united(other)
    if isinstance(structure, dict):
        return {key: unite(item, other[key]) for key, item in structure.items()}
    if isinstance(structure, tuple) and hasattr(structure, "_fields"):
        return type(structure)(*[unite(mine, theirs) for mine, theirs in zip(structure, other, strict=True)])
    if isinstance(structure, list | tuple):
        return type(structure)([unite(mine, theirs) for mine, theirs in zip(structure, other, strict=True)])
    return structure


def describe(value: Any) -> str:
    """Describe a leaf and the line that made it, for messages."""
    if isinstance(value, Tensor):
        source = value.node.source
        return f"{value.dtype.base.text} {value.shape} from '{value.name}'" + (f", made in {source}" if source is not None else "")
    if isinstance(value, Node):
        return f"the operation '{value.name}' (op {value.op})" + (f", made in {value.source}" if value.source is not None else "")
    return f"the {type(value).__name__} {brief(value)}"


def outline(structure: Any) -> str:
    """The form of a structure, with `*` for each leaf: `(*, {a: *})`."""
    if isinstance(structure, Composite):
        return structure.form
    if isinstance(structure, dict):
        return "{" + ", ".join([f"{key}: {outline(structure[key])}" for key in sorted(structure, key=str)]) + "}"
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
    if isinstance(value, Composite):
        return value.with_components([_map(part, change) for part in value.components])
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
