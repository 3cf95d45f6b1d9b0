"""Work in steps, between which a kernel does other things."""

from __future__ import annotations

from collections.abc import Generator
from typing import Final, TypeVar

from graphcore.support.budget import Budget, one_budget

Result = TypeVar("Result")

Steps = Generator[None, None, Result]
"""Work that pauses after each step, and returns its result."""

STEP: Final = 64
"""The nodes or parts of one step: about a millisecond."""


def charged(steps: Steps[Result], budget: Budget) -> Steps[Result]:
    """Charge the evaluation in all steps to one budget."""
    while True:
        with one_budget(budget):
            try:
                next(steps)
            except StopIteration as end:
                result: Result = end.value
                return result
        yield


def done(steps: Steps[Result]) -> Result:
    """The result of all steps."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: Result = end.value
            return result
