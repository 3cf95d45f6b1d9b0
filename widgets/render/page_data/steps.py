"""Work in steps, between which a kernel does other things."""

from __future__ import annotations

from collections.abc import Generator
from typing import Final, TypeVar

Result = TypeVar("Result")

Steps = Generator[None, None, Result]
"""Work that pauses after each step, and returns its result."""

STEP: Final = 64
"""The nodes or parts of one step: about a millisecond."""
