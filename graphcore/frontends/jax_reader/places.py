"""Places in the user's program."""

from __future__ import annotations

from types import CodeType
from typing import Final, NamedTuple

_OWN: Final = (
    "/jax/_src/",
    "/jax/",
    "/jaxlib/",
    "/flax/",
    "/equinox/",
    "/haiku/",
    "/optax/",
    "/opt_einsum/",
    "/keras/src/",
    "importlib",
    "/contextlib.py",
    "/functools.py",
    "/IPython/",
    "/ipykernel/",
    "/frontends/jax_reader/",
)


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
    return not any(part in file for part in _OWN)
