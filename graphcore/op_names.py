"""The names of ops of other frameworks, taken apart."""

from __future__ import annotations

import re
from typing import Final

_DEFAULT: Final = re.compile(r"\.(default|Tensor|Scalar|int|out|self|dim|vec|input|Tensor_Scalar|dim_IntList)$")
_OVERLOADED: Final = ("aten.", "prims.", "quantized.", "quantized_decomposed.", "torchvision.", "prim.")
"""The domains in which a name is followed by that of an overload."""


def plain_op(op: str) -> str:
    """The name of an op without its domain and overload: `flatten` of `aten.flatten.using_ints`."""
    if op.startswith(_OVERLOADED):
        return op.split(".")[1]
    name = _DEFAULT.sub("", op) if op.count(".") > 1 else op
    return name.rpartition(".")[2] or op
