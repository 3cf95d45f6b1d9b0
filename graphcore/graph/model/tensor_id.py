"""The names of tensors: `node`, `node:1`, and `^node` for a control input."""

from __future__ import annotations

from typing import Final, NamedTuple

CONTROL: Final = -1
"""The index of a control input."""
_MOST_DIGITS: Final = 100
"""Python converts no integer of thousands of digits."""


class TensorId(NamedTuple):
    """Output `index` of the node called `node`; index -1 stands for a control input. Prints `node:1`, `^node`."""

    node: str
    index: int  # type: ignore[assignment]  # replaces tuple's own method `index`, which is not used

    def __str__(self) -> str:
        return f"^{self.node}" if self.index == CONTROL else f"{self.node}:{self.index}"


def is_index(text: str) -> bool:
    """True iff the text is the index of an output."""
    return text.isdecimal() and text.isascii() and len(text) <= _MOST_DIGITS


def parse_tensor_name(name: str) -> TensorId:
    """The parts of `name`, `name:digits` or `^name`. Digits after ":" count only at the end."""
    head, colon, tail = name.rpartition(":")
    if colon and head and is_index(tail):
        return TensorId(head, int(tail))
    if name[:1] == "^":
        return TensorId(name[1:], CONTROL)
    return TensorId(name, 0)
