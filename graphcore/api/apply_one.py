"""Adds one op with a single output to the default graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphcore.graph import Tensor, get_default_graph


def apply_one(op: str, inputs: Sequence[Any], name: str | None, attrs: Mapping[str, Any] | None = None) -> Tensor:
    """The output of a new node of type `op`, called after its op unless it gets a name."""
    return get_default_graph().apply_op(op, inputs, attrs, name).outputs[0]
