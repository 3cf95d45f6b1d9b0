"""The user's own names of tensors, for code in suggestions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from graphcore.graph import Node, Tensor
from graphcore.tf1.variables.variables import Variable

_MARK: Final = re.compile("(\\{?)\u00ab([^\u00ab\u00bb]*)\u00bb")


def with_names(suggestion: str, variables: Mapping[str, Any]) -> str:
    """Replace each `«x:0»` in a suggestion by the user's variable with this tensor.

    Without one it becomes `...`, or the name of the tensor if it is a key of a dictionary.
    """
    return _MARK.sub(lambda match: match[1] + (name_of(match[2], variables) or (f"'{match[2]}'" if match[1] else "...")), suggestion)


def name_of(tensor: str, variables: Mapping[str, Any]) -> str:
    """The user's variable bound to the tensor or node called `tensor`, "" if there is none."""
    full = tensor if ":" in tensor else f"{tensor}:0"
    for name, value in variables.items():
        if not name.startswith("_") and full in _names(value):
            return name
    return ""


def _names(value: object) -> tuple[str, ...]:
    if isinstance(value, Tensor):
        return (value.name,)
    if isinstance(value, Variable):
        return (value.name if ":" in value.name else f"{value.name}:0", value.as_tensor().name)
    return (f"{value.name}:0",) if isinstance(value, Node) else ()
