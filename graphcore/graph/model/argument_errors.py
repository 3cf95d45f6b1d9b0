"""The error of an argument of the wrong kind."""

from __future__ import annotations

import numbers
from typing import NoReturn

from graphcore.errors import InvalidArgumentError
from graphcore.graph.model.node import Node, Tensor


def refuse(argument: str, required: str, value: object) -> NoReturn:
    """Raise an error with the requirement on `argument` and its actual value.

    Raises:
        InvalidArgumentError: always.
    """
    raise InvalidArgumentError(f"{argument}: required {required}, got {_described(value)}")


def _described(value: object) -> str:
    if isinstance(value, Tensor | Node):
        return repr(value)
    text = repr(value) if isinstance(value, str | bytes | numbers.Number) else ""
    kind = f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
    return f"{kind} {text if len(text) < 60 else f'{text[:57]}...'}".rstrip()
