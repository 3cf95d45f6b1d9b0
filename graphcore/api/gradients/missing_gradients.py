"""The gradients that are None, with the reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from graphcore import dtypes
from graphcore.api.gradients.described_cuts import described
from graphcore.api.gradients.explain_gradient import reads_that_count
from graphcore.api.gradients.explanation import GradientCut
from graphcore.api.gradients.gradients import GradientCall, tensors_of
from graphcore.frontends.foreign import GradientEnd
from graphcore.frontends.record import foreign_of
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
    """The gradients that `gc.gradients`, optimizers or a call of another framework have found to be None."""
    missing = _foreign(graph)
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


def _foreign(graph: Graph) -> list[MissingGradient]:
    record = foreign_of(graph)
    if record is None or not record.source.missing:
        return []
    named = {node.name: original for name, node in record.nodes.items() if (original := graph.find(name)) is not None}
    return [
        MissingGradient(x=named[name], cuts=tuple([_cut(end, named) for end in ends]))
        for name, ends in record.source.missing.items()
        if name in named
    ]


def _cut(end: GradientEnd, named: Mapping[str, Node]) -> GradientCut:
    node = named.get(end.node)
    return GradientCut(
        kind=end.kind,
        node="" if node is None else node.name,
        op="" if node is None else node.op,
        reason=end.reason,
        source=None if node is None else node.source,
        path=tuple([named[name].name for name in end.path if name in named]),
    )


def _reads(first: Tensor, x: Any, flow: Flow) -> Sequence[Tensor]:
    handle = getattr(x, "handle", None)
    return reads_that_count(first, handle, flow) if isinstance(handle, Tensor) and handle.dtype is dtypes.resource else [first]
