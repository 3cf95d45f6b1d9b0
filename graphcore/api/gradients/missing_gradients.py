"""The gradients that are None, with the reasons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from graphcore import dtypes
from graphcore.api.gradients.described_cuts import described
from graphcore.api.gradients.explain_gradient import reads_that_count
from graphcore.api.gradients.explanation import GradientCut
from graphcore.api.gradients.gradients import GradientCall, tensors_of
from graphcore.graph import Graph, Node, Tensor
from graphcore.passes.gradients.explanation.flow import Flow

MOST_EXPLAINED: Final = 50
"""More gradients of one call that are None are left out."""
_MOST_YS: Final = 5


class MissingGradient(msgspec.Struct, frozen=True, kw_only=True):
    """A gradient that is None.

    Attributes:
        x: the node that was to be differentiated by.
        cuts: the places where gradients stop on the way to it.
    """

    x: Node
    cuts: tuple[GradientCut, ...]


def missing_gradients(graph: Graph) -> list[MissingGradient]:
    """The gradients that calls of `gc.gradients` and optimizers have found to be None."""
    missing = []
    for call, results in graph.derivations.made_by(GradientCall):
        gone = [x for x, gradient in zip(call.xs, results or (), strict=False) if gradient is None]
        ys = [y for y in call.ys[:_MOST_YS] if y in graph]
        flows = [Flow(y, call.stop) for y in ys] if gone else []
        for x in gone[:MOST_EXPLAINED]:
            first = tensors_of(x, "x")[0]
            if first in graph:
                cuts = dict.fromkeys([described(cut) for flow in flows for read in _reads(first, x, flow) for cut in flow.cuts(read)])
                missing.append(MissingGradient(x=first.node, cuts=tuple(cuts)))
    return missing


def _reads(first: Tensor, x: Any, flow: Flow) -> Sequence[Tensor]:
    handle = getattr(x, "handle", None)
    return reads_that_count(first, handle, flow) if isinstance(handle, Tensor) and handle.dtype is dtypes.resource else [first]
