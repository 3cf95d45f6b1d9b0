"""The nesting of MLIR text, whose parser ends the process when it runs out of stack."""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from graphcore.errors import InvalidArgumentError

MAX_NESTING: Final = 500
_NO_BRACKETS: Final = re.compile(rb'"(?:[^"\\\n]|\\.)*"|//[^\n]*|->|[<>]=')
_SIGNS: Final = re.compile(rb"-(?:\s*-){%d}" % MAX_NESTING)


def check_nesting(text: bytes) -> None:
    """Check how deep brackets are nested, and how many signs a number has.

    Raises:
        InvalidArgumentError: deeper than `MAX_NESTING`.
    """
    codes = np.frombuffer(_NO_BRACKETS.sub(b" ", text), np.uint8)
    for opening, closing in ((b"([{", b")]}"), (b"<", b">")):
        steps = np.isin(codes, list(opening)).astype(np.int8) - np.isin(codes, list(closing)).astype(np.int8)
        depth = np.cumsum(steps[steps != 0], dtype=np.int64)
        lowest = np.minimum.accumulate(np.minimum(depth, 0))
        if depth.size and int((depth - lowest).max()) > MAX_NESTING:
            raise InvalidArgumentError(f"The MLIR module is nested deeper than {MAX_NESTING} brackets")
    if _SIGNS.search(text):
        raise InvalidArgumentError(f"The MLIR module has more than {MAX_NESTING} signs in a row")
