"""The structures of results: names of their leaves."""

from __future__ import annotations

import json
from typing import Any, Final

_MAX_LEAVES: Final = 10_000
_MAX_DEPTH: Final = 60


def leaf_names(spec: str) -> list[str]:
    """The names of the leaves of a structure, "" for one that is no part of a table.

    Args:
        spec: the structure as PyTorch writes it in JSON.
    """
    try:
        parsed = json.loads(spec)
    except (ValueError, RecursionError):
        return []
    if not (isinstance(parsed, list) and len(parsed) == 2):
        return []
    names: list[str] = []
    _walk(parsed[1], "", names, 0)
    return names


def _walk(spec: Any, name: str, names: list[str], depth: int) -> None:
    if not isinstance(spec, dict) or depth > _MAX_DEPTH or len(names) > _MAX_LEAVES:
        return
    children = spec.get("children_spec")
    if spec.get("type") is None or not isinstance(children, list):
        names.append(name)
        return
    keys = _keys(spec.get("context"), len(children))
    for key, child in zip(keys, children, strict=True):
        _walk(child, f"{name}.{key}" if name and key else name or key, names, depth + 1)


def _keys(context: object, count: int) -> list[str]:
    try:
        keys = json.loads(context) if isinstance(context, str) else context
    except (ValueError, RecursionError):
        keys = None
    if isinstance(keys, list) and len(keys) == 2 and isinstance(keys[0], list) and len(keys[0]) == count != 2:
        keys = keys[0]  # tables with a default, and those of classes
    if isinstance(keys, list) and len(keys) == count and all(isinstance(key, str) for key in keys):
        return keys
    return [""] * count
