"""Binds the `$name` placeholders in attr values."""

from __future__ import annotations

from collections.abc import Callable

from graphcore.attrs import AttrValue, Func, Placeholder, as_attr_value

Substitute = Callable[[str], AttrValue | None]
"""Takes a placeholder's name, gives its value, None if it has none."""


def given_attr(value: object, kind: str | None = None) -> AttrValue:
    """Convert a user's value of an attr; a string `$T` is a placeholder for the attr T.

    Raises:
        InvalidArgumentError: the value cannot be an attr.
    """
    if isinstance(value, str) and len(value) >= 2 and value.startswith("$"):
        return Placeholder(value[1:])
    return as_attr_value(value, kind)


def has_placeholder(value: AttrValue) -> bool:
    """True iff the value is or contains a placeholder: in a list, or in the attrs of a function."""
    if isinstance(value, Placeholder):
        return True
    if isinstance(value, tuple):
        return any(has_placeholder(item) for item in value)
    return isinstance(value, Func) and any(has_placeholder(item) for item in value.attr.values())


def substitute_placeholders(substitute: Substitute, value: AttrValue) -> AttrValue | None:
    """Replace all placeholders, nested ones included; None if one stays unbound."""
    if isinstance(value, Placeholder):
        return substitute(value.name)
    if not has_placeholder(value):
        return value
    if isinstance(value, tuple):
        items = [substitute_placeholders(substitute, item) for item in value]
        return None if any(item is None for item in items) else tuple(items)
    assert isinstance(value, Func)
    attrs = {name: substitute_placeholders(substitute, item) for name, item in value.attr.items()}
    bound = {name: item for name, item in attrs.items() if item is not None}
    return Func(value.name, bound) if len(bound) == len(attrs) else None
