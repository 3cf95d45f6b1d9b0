"""Cost limits for constant folding before a run."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from graphcore.graph.model.node import Node, Tensor
from graphcore.shapes import Shape

_MOST_MULTIPLICATIONS: Final = 1 << 26
"""The most multiplications of a matrix product: milliseconds for floats, a tenth of a second for integers, which BLAS does not multiply."""
_MOST_PAIRS: Final = 1 << 17
"""The most pairs of elements for kernels that compare each of one tensor with each of another: a tenth of a second in Python."""
_PAIRING: Final = frozenset({"pairs", "convolution", "contraction"})


def is_cheap(node: Node, shape_of: Callable[[Tensor], Shape]) -> bool:
    """True iff the op of `node` takes at most about 0.1 s for tensors of up to a million elements."""
    kind = node.registration.traits.cost
    if kind == "product" or kind in _PAIRING:
        sizes = sorted([shape_of(tensor).num_elements for tensor in (*node.inputs, *node.outputs)])
        if sizes[0] < 0:
            return False
        if kind == "product":
            return math.isqrt(math.prod(sizes[-3:])) <= _MOST_MULTIPLICATIONS  # [m, k], [k, n] and [m, n]: m k n
        return math.prod(sizes[-2:]) <= _MOST_PAIRS
    return True
