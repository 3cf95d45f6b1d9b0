"""Equality and compatibility of OpDefs."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from graphcore.attrs import AttrValue
from graphcore.definitions.attr_equality import attr_value_hash, attr_values_equal
from graphcore.definitions.types import AttrDef, OpDef
from graphcore.definitions.value_text import summarize_attr_value
from graphcore.errors import InvalidArgumentError


def attr_defs_equal(first: AttrDef, second: AttrDef) -> bool:
    """True iff all fields of the two AttrDefs are the same; a value that is set differs from unset."""
    return _plain_part(first) == _plain_part(second) and all(
        _same(getattr(first, field), getattr(second, field)) for field in ("default_value", "allowed_values")
    )


def _plain_part(attr: AttrDef) -> tuple[object, ...]:
    return attr.name, attr.type, attr.description, attr.has_minimum, attr.minimum


def _same(first: AttrValue | None, second: AttrValue | None) -> bool:
    if first is None or second is None:
        return first is second
    return attr_values_equal(first, second)


def repeated_attr_defs_equal(first: Iterable[AttrDef], second: Iterable[AttrDef]) -> bool:
    """True iff both hold equal attrs, in any order."""
    left, right = list(first), list(second)
    by_name = {attr.name: attr for attr in right}
    if len(left) != len(right) or len({attr.name for attr in left}) != len(by_name):
        return False
    return all(attr.name in by_name and attr_defs_equal(attr, by_name[attr.name]) for attr in left)


def op_def_equal(first: OpDef, second: OpDef) -> bool:
    """True iff both define the same op; the order of attrs does not matter."""
    without_attrs = (msgspec.structs.replace(op_def, attr=()) for op_def in (first, second))
    return repeated_attr_defs_equal(first.attr, second.attr) and next(without_attrs) == next(without_attrs)


def op_def_hash(op_def: OpDef) -> int:
    """A hash of an OpDef: the same for OpDefs that `op_def_equal` finds equal."""
    attrs = frozenset((*_plain_part(attr), _hash(attr.default_value), _hash(attr.allowed_values)) for attr in op_def.attr)
    return hash((msgspec.structs.replace(op_def, attr=()), attrs))


def _hash(value: AttrValue | None) -> int | None:
    return None if value is None else attr_value_hash(value)


def check_attr_defaults_unchanged(old_op: OpDef, new_op: OpDef) -> None:
    """Check that attrs of both ops keep their defaults; a default may be added.

    Raises:
        InvalidArgumentError: one was changed or removed.
    """
    new_attrs = {attr.name: attr for attr in new_op.attr}
    for old in old_op.attr:
        new = new_attrs.get(old.name)
        if new is None or old.default_value is None:
            continue
        change = f"from {_default_text(old)} to {_default_text(new)}"
        if new.default_value is None:
            raise InvalidArgumentError(f"Attr '{old.name}' has removed it's default; {change}", op=new_op.name, attr=old.name)
        if not attr_values_equal(old.default_value, new.default_value):
            raise InvalidArgumentError(f"Attr '{old.name}' has changed it's default value; {change}", op=new_op.name, attr=old.name)


def _default_text(attr: AttrDef) -> str:
    return "no default" if attr.default_value is None else summarize_attr_value(attr.default_value)
