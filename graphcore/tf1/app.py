"""`tf.app`: the start of a program."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Sequence
from typing import Any

from graphcore.tf1 import flags

__all__ = ["flags", "run"]


def run(main: Callable[[list[str]], Any] | None = None, argv: Sequence[str] | None = None) -> None:
    """Read the flags, call `main`, and end with its result as exit status.

    In a notebook the command line is not the program's, so all flags keep their defaults, and a `main` that returns no status, or 0,
    does not end the kernel.

    Args:
        main: takes what is left of the command line after the flags; by default the function `main` of the running program.
        argv: the command line; `sys.argv` by default.
    """
    function: Any = main or sys.modules["__main__"].main
    rest = flags.FLAGS(flags.command_line() if argv is None else list(argv), known_only=True)
    status = function(rest)
    if status or not hasattr(builtins, "get_ipython"):
        sys.exit(status)
