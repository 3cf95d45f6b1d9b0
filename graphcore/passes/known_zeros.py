"""Which tensors are zero whatever is fed, as far as that is seen at a glance."""

from __future__ import annotations

from typing import Final

from graphcore import dtypes
from graphcore.attrs import TensorValue
from graphcore.graph import Tensor

_MOST: Final = 4096


def is_zeros(tensor: Tensor) -> bool:
    """True iff a tensor is made as zeros: ZerosLike, a small constant of zeros, or Fill with a constant zero."""
    node = tensor.node
    if node.op == "ZerosLike":
        return tensor.dtype.base is not dtypes.variant
    if node.op == "Fill":
        return is_zeros(node.inputs[1])
    if node.op != "Const" or not 0 < tensor.shape.num_elements <= _MOST:
        return False
    value = node.node_def.attr["value"]
    return isinstance(value, TensorValue) and not value.array.any()
