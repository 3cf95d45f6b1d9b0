"""Places in the user's program."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Final, NamedTuple

_PACKAGES: Final = (
    "jax",
    "jaxlib",
    "flax",
    "equinox",
    "haiku",
    "optax",
    "opt_einsum",
    "keras",
    "IPython",
    "ipykernel",
    "contextlib",
    "functools",
)
"""The packages and modules whose lines are none of the user's."""


class Place(NamedTuple):
    """An instruction of the user's code: the code, its number, and its line."""

    code: int
    instruction: int
    line: int

    @classmethod
    def of(cls, code: CodeType, instruction: int) -> Place:
        """The place of an instruction."""
        lines = [line for start, end, line in code.co_lines() if start <= instruction < end and line is not None]
        return cls(id(code), instruction, lines[0] if lines else 0)


def is_of_user(file: str) -> bool:
    """True iff a file is neither of JAX nor of a library that is built on it."""
    return not file.startswith(("<frozen ", *_places_of(tuple([name for name in _PACKAGES if name in sys.modules]))))


@cache
def _places_of(packages: tuple[str, ...]) -> tuple[str, ...]:
    """The folders of packages, the files of modules, and the folder of this one."""
    places = [f"{Path(__file__).parent}{os.sep}"]
    for name in packages:
        module = sys.modules[name]
        file = getattr(module, "__file__", None)
        if file:
            places.append(f"{Path(file).parent}{os.sep}" if hasattr(module, "__path__") else file)
    return tuple(places)
