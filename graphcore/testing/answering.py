"""Checks of answers: one that is still to be written, and a condition with its own words."""

from __future__ import annotations

from collections.abc import Mapping
from types import EllipsisType
from typing import Any

from graphcore.testing.failure import CheckFailed


def answered(*values: Any) -> None:
    """Check that no value is `...`, the mark for what a student is to write. All other checks do so with their arguments first.

    Args:
        *values: the answers of an exercise; lists, tuples and mappings are looked into.

    Raises:
        CheckFailed: one is `...`, or contains it.
    """
    if any(_is_open(value) for value in values):
        raise CheckFailed(
            "The answer is missing: '...' still stands in its place.\nWrite the answer, run its cell, and then this check again."
        )


def holds(condition: bool, otherwise: str) -> None:
    """Check a condition that no other check is for. Unlike an `assert`, a failure shows its words alone.

    Args:
        condition: the condition, computed from the answer.
        otherwise: the words for an answer that does not fulfil it.

    Raises:
        CheckFailed: it is false.
    """
    answered(condition)
    if not condition:
        raise CheckFailed(otherwise)


def _is_open(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(_is_open(item) for pair in value.items() for item in pair)
    if isinstance(value, list | tuple):
        return any(_is_open(item) for item in value)
    return isinstance(value, EllipsisType)
