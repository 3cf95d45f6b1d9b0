"""Nested lists, tuples and dicts, under the names of `tf.nest`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from graphcore.errors import InvalidArgumentError

__all__ = ["assert_same_structure", "flatten", "is_nested", "is_sequence", "map_structure", "pack_sequence_as"]


def is_nested(seq: Any) -> bool:
    """True for a list, tuple or dict."""
    return isinstance(seq, list | tuple | Mapping)


is_sequence = is_nested


def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:  # noqa: ARG001 - TensorFlow's argument
    """The leaves of a structure, those of dicts in the order of the sorted keys."""
    return list(_leaves(structure))


def _leaves(structure: Any) -> Iterator[Any]:
    if isinstance(structure, Mapping):
        for key in sorted(structure):
            yield from _leaves(structure[key])
    elif is_nested(structure):
        for item in structure:
            yield from _leaves(item)
    else:
        yield structure


def pack_sequence_as(structure: Any, flat_sequence: Sequence[Any], expand_composites: bool = False) -> Any:  # noqa: ARG001 - TensorFlow's
    """A structure like `structure`, with leaves from `flat_sequence`.

    Raises:
        InvalidArgumentError: the number of leaves is another.
    """
    count = len(flatten(structure))
    if len(flat_sequence) != count:
        raise InvalidArgumentError(f"The structure has {count} leaves, got {len(flat_sequence)} values")
    return _filled(structure, iter(flat_sequence))


def _filled(structure: Any, values: Iterator[Any]) -> Any:
    if isinstance(structure, Mapping):
        items = {key: _filled(structure[key], values) for key in sorted(structure)}
        return type(structure)((key, items[key]) for key in structure)  # type: ignore[call-arg]  # as dicts of all kinds take pairs
    if isinstance(structure, tuple) and hasattr(structure, "_fields"):
        return type(structure)(*[_filled(item, values) for item in structure])
    if is_nested(structure):
        return type(structure)([_filled(item, values) for item in structure])
    return next(values)


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False) -> None:  # noqa: ARG001 - TensorFlow's
    """Require that two structures have leaves in the same places.

    Raises:
        InvalidArgumentError: they differ, with `check_types` also in the types of their lists, tuples and dicts.
    """
    if is_nested(nest1) != is_nested(nest2):
        raise InvalidArgumentError(f"The two structures don't have the same nested structure: {nest1!r} and {nest2!r}")
    if not is_nested(nest1):
        return
    same_keys = sorted(nest1) == sorted(nest2) if isinstance(nest1, Mapping) and isinstance(nest2, Mapping) else len(nest1) == len(nest2)
    if not same_keys or (check_types and type(nest1) is not type(nest2)):
        raise InvalidArgumentError(f"The two structures don't have the same nested structure: {nest1!r} and {nest2!r}")
    ordered = [[nest[key] for key in sorted(nest)] if isinstance(nest, Mapping) else nest for nest in (nest1, nest2)]
    for one, other in zip(*ordered, strict=True):
        assert_same_structure(one, other, check_types)


def map_structure(func: Callable[..., Any], *structure: Any, check_types: bool = True, expand_composites: bool = False) -> Any:  # noqa: ARG001 - TensorFlow's
    """The structure of the results of `func` on the leaves of structures alike.

    Raises:
        InvalidArgumentError: the structures differ, or there is none.
    """
    if not structure:
        raise InvalidArgumentError("Must provide at least one structure")
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types)
    return pack_sequence_as(structure[0], [func(*leaves) for leaves in zip(*map(flatten, structure), strict=True)])
