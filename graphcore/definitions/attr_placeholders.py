"""Placeholders (`$T`) inside attr values: finding them and putting values in their place."""

from __future__ import annotations

from collections.abc import Callable

from graphcore.attrs import AttrValue, Func, NoValue, Placeholder


def has_placeholder(value: AttrValue) -> bool:
    """True iff `value` is a placeholder, or a func in it has one among its attrs."""
    if isinstance(value, tuple):
        return any(has_placeholder(item) for item in value)
    if isinstance(value, Func):
        return any(has_placeholder(item) for item in value.attr.values())
    return isinstance(value, Placeholder)


def substitute_placeholders(value: AttrValue, substitute: Callable[[str], AttrValue | None]) -> tuple[AttrValue, bool]:
    """Put values in the place of placeholders, in nested funcs too.

    Args:
        value: where.
        substitute: gives the value for a name, None if it knows none.

    Returns:
        The new value, and False if a placeholder stays (or a value is missing where one should be).
    """
    if isinstance(value, Placeholder):
        found = substitute(value.name)
        return (value, False) if found is None else (found, True)
    if isinstance(value, NoValue):
        return value, False
    if isinstance(value, tuple) and any(isinstance(item, Func) for item in value):
        items = [substitute_placeholders(item, substitute) for item in value]
        return tuple(item for item, _ in items), all(bound for _, bound in items)
    if isinstance(value, Func):
        attrs = {name: substitute_placeholders(item, substitute) for name, item in value.attr.items()}
        return Func(value.name, {name: item for name, (item, _) in attrs.items()}), all(bound for _, bound in attrs.values())
    return value, True
