"""Cuts of gradients by names."""

from __future__ import annotations

from graphcore.api.gradients.explanation import GradientCut
from graphcore.passes.gradients.explanation.flow import Cut


def described(cut: Cut) -> GradientCut:
    """A cut by names."""
    node = cut.node
    return GradientCut(
        kind=cut.kind,
        node="" if node is None else node.name,
        op="" if node is None else node.op,
        reason=cut.reason,
        source=None if node is None else node.source,
        path=tuple([step.name for step in cut.path]),
    )
