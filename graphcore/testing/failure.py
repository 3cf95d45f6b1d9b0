"""The error of a failed check."""

from __future__ import annotations

from graphcore.difference import GraphDiff


class CheckFailed(AssertionError):  # noqa: N818 - it is a verdict, as AssertionError is, and no fault of the program
    """A check of `gc.testing` failed.

    Args:
        message: requirement and actual value, in words.
        diff: the difference from the required graph, which a notebook draws.
    """

    def __init__(self, message: str, diff: GraphDiff | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.diff = diff
