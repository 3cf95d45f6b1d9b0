"""The nesting of MLIR text, whose parser ends the process when it runs out of stack, and its aliases."""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from graphcore.errors import InvalidArgumentError, ResourceExhaustedError

MAX_NESTING: Final = 500
MAX_EXPANDED: Final = 1 << 18
_ALIAS_NAME: Final = re.compile(rb"[#!][\w$.-]+")
_ALIAS: Final = re.compile(rb"([#!][\w$.-]+)\s*=(.*?)(?=[#!][\w$.-]+\s*=|\bmodule\s*(?:@|\{|attributes\b)|\bfunc\.func\b|\Z)", re.DOTALL)
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


def check_aliases(text: bytes) -> None:
    """Check how large attributes and types become when the aliases in them are written out.

    Raises:
        ResourceExhaustedError: one takes more than `MAX_EXPANDED` bytes beside its own text.
    """
    sizes: dict[bytes, int] = {}
    for match in _ALIAS.finditer(text):
        body = match[2]
        size = sum([sizes.get(name, 0) for name in _ALIAS_NAME.findall(body)])
        # Locations are followed step by step and not written out.
        if size > MAX_EXPANDED and not body.lstrip().startswith(b"loc("):
            raise ResourceExhaustedError(
                f"The alias {match[1].decode(errors='replace')[:50]} of the MLIR module takes more than {MAX_EXPANDED:,} bytes written out"
            )
        sizes[match[1]] = size + len(body)
