"""Quick detection of gradients that are zero for all feeds."""

from __future__ import annotations

from graphcore import dtypes
from graphcore.attrs import TensorValue
from graphcore.graph import Tensor


def is_zeros(gradient: Tensor) -> bool:
    """True iff a gradient is built of zeros: by ZerosLike, or by a zero constant of a backward pass."""
    node = gradient.node
    if node.op == "ZerosLike":
        return gradient.dtype.base is not dtypes.variant
    if node.name not in node.graph.gradient_records:
        return False  # it may be fed any value
    if node.op == "Fill":
        return is_zeros(node.inputs[1])
    value = node.node_def.attr.get("value") if node.op == "Const" else None
    return isinstance(value, TensorValue) and value.array.size > 0 and not value.array.any()
