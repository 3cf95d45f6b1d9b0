"""Values of tensors that are known without a run."""

from __future__ import annotations

from typing import Any

from graphcore.graph import Tensor
from graphcore.graph.shapes.constant_values import constant_value

__all__ = ["get_static_value"]


def get_static_value(tensor: Tensor, partial: bool = False) -> Any:
    """The value of a tensor as an array if it is the same in every run, else None.

    Args:
        tensor: a tensor.
        partial: without effect; values that are known in part are None.
    """
    del partial
    return constant_value(tensor)
