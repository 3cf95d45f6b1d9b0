"""Constants with NaN or infinities of which a run takes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from graphcore.runtime.core.tensor_stats import TensorStats

if TYPE_CHECKING:
    from graphcore.graph import Node, Tensor

Find = Callable[["Tensor", str], TensorStats | None]


def is_left_out(find: Find, bad: TensorStats, node: Node | None) -> bool:
    """True for NaNs that are those of constants, and that lead to none of a result.

    Such are the NaN that `jnp.var` has for too few elements, and its conversions before the choice that leaves it out.

    Args:
        find: gives the values of a tensor within a call, None if it was not computed.
        bad: values with NaN or infinities.
        node: their node.
    """
    return bool(bad.nan) and node is not None and _is_constant(find, node, bad.call) and _vanishes(find, node, bad.call)


def _is_constant(find: Find, node: Node, call: str) -> bool:
    if not node.inputs:
        return node.registration.traits.role == "constant" or (bool(call) and node.registration.traits.role == "placeholder")
    bad = [tensor for tensor in node.inputs if _is_bad(find, tensor, call)]
    return bool(bad) and all(_is_constant(find, tensor.node, call) for tensor in bad)


def _vanishes(find: Find, node: Node, call: str) -> bool:
    takers = [taker for taker, slot in node.consumers() if slot >= 0]
    if not takers and node.inputs:
        return False  # a result
    return all(
        bool(taker.outputs) and (_vanishes(find, taker, call) or not any(_is_bad(find, tensor, call) for tensor in taker.outputs))
        for taker in takers
    )


def _is_bad(find: Find, tensor: Tensor, call: str) -> bool:
    one = find(tensor, call)
    return one is not None and not one.is_finite
