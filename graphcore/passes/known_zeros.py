"""Which tensors of a backward pass are zero whatever is fed, as far as that is seen at a glance."""

from __future__ import annotations

from graphcore import dtypes
from graphcore.attrs import TensorValue
from graphcore.graph import Tensor


def is_zeros(tensor: Tensor, first_made: int) -> bool:
    """True iff a tensor is made as zeros: ZerosLike, or a constant of zeros that the backward pass has made, maybe filled out.

    Args:
        tensor: the tensor.
        first_made: the id of the first node that the pass has made; to others that are constants anything may be fed.
    """
    node = tensor.node
    if node.op == "ZerosLike":
        return tensor.dtype.base is not dtypes.variant
    if node.id < first_made:
        return False
    if node.op == "Fill":
        return is_zeros(node.inputs[1], first_made)
    value = node.node_def.attr.get("value") if node.op == "Const" else None
    return isinstance(value, TensorValue) and value.array.size > 0 and not value.array.any()
