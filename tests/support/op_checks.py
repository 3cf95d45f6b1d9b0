"""Checks of ops: one test an op makes all of them, and names each that failed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Generic, TypeVar

import pytest

Subject = TypeVar("Subject")
"""An op by its name, its registration, an example of it, or a tuple that starts with one of these."""


@dataclass(frozen=True)
class Check(Generic[Subject]):
    """A claim about ops.

    Attributes:
        make: raises where the claim does not hold of a subject.
        subjects: what the claim is about, by the name of the op.
        slow: True iff it is left to `make slow`.
    """

    make: Callable[[Subject], None]
    subjects: dict[str, list[Subject]]
    slow: bool


def checked_for(subjects: Iterable[Subject], slow: bool = False) -> Callable[[Callable[[Subject], None]], Check[Subject]]:
    """Decorate a function that checks a claim about one of these subjects."""
    by_op: dict[str, list[Subject]] = {}
    for subject in subjects:
        by_op.setdefault(_op_of(subject), []).append(subject)
    return lambda make: Check(make, by_op, slow)


def checks_in(modules: Iterable[ModuleType], slow: bool) -> list[Check[Any]]:
    """The checks that these modules define."""
    return [value for module in modules for value in vars(module).values() if isinstance(value, Check) and value.slow == slow]


def make_all(checks: Iterable[Check[Any]], op: str) -> None:
    """Make all checks of an op; a group of all errors, with the names of the checks, if some fail."""
    failed: dict[str, BaseException] = {}
    made = 0
    for check in checks:
        for number, subject in enumerate(check.subjects.get(op, ())):
            made += 1
            try:
                check.make(subject)
            except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001  # one message has all errors of the op
                name = f"{check.make.__name__}[{getattr(subject, 'id', number)}]"
                error.add_note(f"failed: {name}")
                failed[name] = error
    if failed:
        raise BaseExceptionGroup(f"{op}: {len(failed)} of {made} checks failed: {', '.join(failed)}", list(failed.values()))
    assert made


def _op_of(subject: Any) -> str:
    first = subject[0] if isinstance(subject, tuple) else subject
    return first if isinstance(first, str) else str(first.op_def.name)
