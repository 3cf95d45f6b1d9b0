"""Bytecode of MLIR as text, by a process of its own, which damaged bytecode may end."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from graphcore.frontends.apart import output_of

_SCRIPT: Final = Path(__file__).with_name("bytecode_script.py")
_PORTABLE: Final = re.compile(rb"StableHLO_v\d")


def text_of(data: bytes) -> str:
    """The text of a module in bytecode.

    Raises:
        InvalidArgumentError: it is damaged.
        ResourceExhaustedError: it takes longer than the limit.
    """
    is_portable = _PORTABLE.search(data[:40]) is not None
    return output_of(_SCRIPT, "portable" if is_portable else "", what="The MLIR bytecode", data=data).decode(errors="replace")
