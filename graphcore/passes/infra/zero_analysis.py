"""Which gradients are zero whatever is fed, as far as that is seen at a glance."""

from __future__ import annotations

from graphcore import dtypes
from graphcore.attrs import TensorValue
from graphcore.graph import Tensor


def is_zeros(gradient: Tensor) -> bool:
    """True iff a gradient is made as zeros: ZerosLike, or a constant of zeros that a backward pass has made, maybe filled out."""
    node = gradient.node
    if node.op == "ZerosLike":
        return gradient.dtype.base is not dtypes.variant
    if node.name not in node.graph.gradient_records:
        return False  # anything may be fed to it
    if node.op == "Fill":
        return is_zeros(node.inputs[1])
    value = node.node_def.attr.get("value") if node.op == "Const" else None
    return isinstance(value, TensorValue) and value.array.size > 0 and not value.array.any()
