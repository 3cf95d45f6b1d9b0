"""The Python functions that nodes call, by their tokens."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from secrets import token_hex
from typing import Any, Final
from weakref import WeakValueDictionary


class PythonFunction:
    """A Python function that nodes call; it is found as long as it exists.

    Attributes:
        call: takes and returns what the function does.
        token: the name in nodes, which no other process uses.
    """

    def __init__(self, call: Callable[..., Any]) -> None:
        self.call = call
        self.token = f"pyfunc_{next(_numbers)}_{_PROCESS}"
        _known[self.token] = self


_numbers: Final = count()
_PROCESS: Final = token_hex(8)
_known: Final[WeakValueDictionary[str, PythonFunction]] = WeakValueDictionary()


def python_function(token: str) -> PythonFunction | None:
    """The function of a token, None if it is gone, or belongs to another process."""
    return _known.get(token)
