"""Copies of objects that cannot be copied as a whole, since a part of them refuses."""

from __future__ import annotations

import copy
from collections import UserDict
from collections.abc import Mapping
from typing import Any, Final

_PLAIN: Final = (bool, int, float, complex, str, bytes, type(None), type)


def copied_in_parts(module: Any, memo: dict[int, Any], kind: type) -> Any:
    """A deep copy of a module. Attributes that refuse to be copied, such as locks, files and generators, are shared.

    Args:
        module: the module.
        memo: the copies of objects by the ids of these, as for `copy.deepcopy`.
        kind: the class of modules.
    """
    before = dict(memo)
    try:
        return copy.deepcopy(module, memo)
    except Exception:  # noqa: BLE001 - an attribute may refuse in any way to be copied
        memo.clear()
        memo.update(before)
        return _part(module, memo, kind)


def _part(value: Any, memo: dict[int, Any], kind: type) -> Any:
    if isinstance(value, _PLAIN):
        return value
    if id(value) in memo:
        return memo[id(value)]
    if isinstance(value, kind):
        made: Any = object.__new__(type(value))
        memo[id(value)] = made
        for name, item in [*vars(value).items(), *_slots_of(value)]:
            object.__setattr__(made, name, _part(item, memo, kind))
        return made
    if isinstance(value, dict) and type(value).__module__ in {"builtins", "collections"}:
        made = memo[id(value)] = copy.copy(value)
        for key, item in value.items():
            made[key] = _part(item, memo, kind)
        return made
    if type(value) in {list, tuple, set}:
        return type(value)([_part(item, memo, kind) for item in value])
    before = dict(memo)
    try:
        return copy.deepcopy(value, memo)
    except Exception:  # noqa: BLE001 - as above
        memo.clear()
        memo.update(before)
        return value


def rebuilt(value: Any, parts: Mapping[Any, Any]) -> Any:
    """A table or record of the same class with other parts; as it is if its class does not allow that."""
    try:
        made = copy.copy(value)
        if isinstance(value, dict):
            made.update(parts)
        elif isinstance(value, UserDict):
            made.data = dict(parts)
        elif isinstance(value, Mapping):
            return dict(parts)
        else:
            for name, part in parts.items():
                object.__setattr__(made, name, part)
    except Exception:  # noqa: BLE001 - a class of the user may refuse in any way
        return value
    return made


def _slots_of(value: Any) -> list[tuple[str, Any]]:
    names = [name for kind in type(value).__mro__ for name in _listed(kind.__dict__.get("__slots__", ()))]
    return [(name, getattr(value, name)) for name in names if name not in {"__dict__", "__weakref__"} and hasattr(value, name)]


def _listed(slots: Any) -> list[str]:
    return [slots] if isinstance(slots, str) else list(slots)
