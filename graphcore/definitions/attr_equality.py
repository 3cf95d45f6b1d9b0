"""Equality and hashes of attr values, stricter than Python's `1 == True == 1.0`; NaN equals itself."""

from __future__ import annotations

import struct
from typing import Final

from graphcore.attrs import Attrs, AttrValue, Func

_FLOAT: Final = struct.Struct("<f")


def attr_values_equal(first: AttrValue, second: AttrValue) -> bool:
    """True iff both values have the same kind and content.

    Tensors are compared by content, funcs by name and attrs.
    """
    kind = type(first)
    if kind is not type(second):
        return False
    if kind is float:
        return _FLOAT.pack(first) == _FLOAT.pack(second)
    if isinstance(first, tuple) and isinstance(second, tuple):
        return len(first) == len(second) and all(map(attr_values_equal, first, second))
    if isinstance(first, Func) and isinstance(second, Func):
        return first.name == second.name and attrs_equal(first.attr, second.attr)
    return bool(first == second)


def attr_value_hash(value: AttrValue) -> int:
    """A hash that is equal for values that `attr_values_equal` finds equal."""
    if isinstance(value, float):
        return hash(_FLOAT.pack(value))
    if isinstance(value, tuple):
        return hash(tuple(attr_value_hash(item) for item in value))
    if isinstance(value, Func):
        return hash((value.name, frozenset((name, attr_value_hash(item)) for name, item in value.attr.items())))
    return hash((type(value), value))


def attrs_equal(first: Attrs, second: Attrs) -> bool:
    """True iff both have the same names with equal values; the order does not matter."""
    if len(first) != len(second):
        return False
    return all(name in second and attr_values_equal(value, second[name]) for name, value in first.items())
