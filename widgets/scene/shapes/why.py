"""Step-by-step explanations of a tensor's shape, for the inspector."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Protocol

from graphcore.errors import GraphError
from graphcore.graph.provenance.explain_shape import KnownSteps, explain_sizes
from widgets.inspection import Why, WhyStep
from widgets.scene.faults import fault_of
from widgets.scene.outside import MOST_FACTS, OutsideOrigins
from widgets.scene.shapes.clashes import source_row

if TYPE_CHECKING:
    from graphcore.graph import Node, Tensor
    from graphcore.graph.provenance.origins import Fact, Origin
    from widgets.scene.boxes import Box
    from widgets.scene.tree import Call
    from widgets.scene.types import Dim

MAX_OUTPUTS: Final = 4
MAX_STEPS: Final = 24
"""Of a longer way the beginning, the first places where numbers entered and the end are shown."""
MAX_WALKED: Final = 1000
MAX_NODES: Final = 20_000


class Around(Protocol):
    """The part of a picture that explanations refer to, by the names of nodes."""

    @property
    def box_of(self) -> Mapping[str, Box]:
        """The boxes of nodes."""

    @property
    def calls(self) -> Mapping[str, Call]:
        """The open calls."""

    @property
    def outside(self) -> OutsideOrigins:
        """The explanations of arguments of open bodies by what is given to them."""


class Keys(Protocol):
    """The keys of dimensions."""

    def of(self, tensor: Tensor) -> list[Dim]:
        """The dimensions of a tensor."""


def why_of(node: Node, visible: Around, dimensions: Keys, steps: KnownSteps | None = None) -> list[Why]:
    """An entry for each dimension of the first outputs, or one for an unknown rank.

    None for graphs that are too large.

    Args:
        node: the node.
        visible: the part of the picture that the explanations refer to.
        dimensions: the keys of dimensions.
        steps: the steps of explanations of other nodes of the graph; new ones are added.
    """
    node.graph.settle()
    if len(node.graph) > MAX_NODES:
        return []
    found: list[Why] = []
    for tensor in node.outputs[:MAX_OUTPUTS]:
        try:
            origins = explain_sizes(tensor, steps or KnownSteps(), MOST_FACTS)
        except GraphError:
            continue
        keys = [dim.key for dim in dimensions.of(tensor)]
        name = f" of {tensor.name}" if len(node.outputs) > 1 else ""
        for origin in origins:
            kind, place = origin.fact.kind, origin.fact.index
            if kind == "held":
                found.append(_why(f"dimension {place} of what it stands for", origin, visible))
            elif kind == "rank":
                found.append(_why(f"rank{name}", origin, visible))
            else:
                found.append(_why(f"dimension {place}{name}", origin, visible, keys[place] if place < len(keys) else ""))
    return found


def chains_of(node: Node, visible: Around) -> list[Why]:
    """The origins of the numbers that clash at a node."""
    fault = fault_of(node)
    chains = () if fault is None else fault.chains
    return [_why(str(chain.fact), chain, visible) for chain in chains]


def _why(what: str, origin: Origin, visible: Around, key: str = "") -> Why:
    steps: list[WhyStep] = []
    roots: list[int] = []
    told: set[tuple[Fact, str, str]] = set()
    pending: list[tuple[Origin, int]] = [(origin, 0)]
    while pending and len(steps) < MAX_WALKED:
        current, depth = pending.pop()
        place, name = place_of(current.node, visible), current.node
        outside = visible.outside.of(current)
        if outside is not None:
            steps.append(WhyStep(text=f"is {outside.fact}, given by the call", node=place, name=name, depth=depth))
            pending.append((outside, depth))
            continue
        text = f"{current.statement}: {current.text}" if depth and (not steps or steps[-1].depth != depth) else current.text
        identity = current.fact, name, current.text
        if current.because and identity in told:
            steps.append(WhyStep(text=f"{current.statement}, as above", node=place, name=name, depth=depth))
            continue
        told.add(identity)
        if not current.because:
            roots.append(len(steps))
        source = source_row(current.source) if not current.because else None
        steps.append(WhyStep(text=text, node=place, name=name, depth=depth, source=source))
        steps.extend(WhyStep(text=f"merged with {fact}", node=place, name=name, depth=depth + 1) for fact in current.merged_with)
        forks = len(current.because) > 1
        pending.extend((earlier, depth + forks) for earlier in reversed(current.because))
    return Why(what=what, size=origin.number, key=key, steps=_shown(steps, roots))


def _shown(steps: list[WhyStep], roots: list[int]) -> list[WhyStep]:
    """The beginning, the first roots, and the end of a long way."""
    if len(steps) <= MAX_STEPS:
        return steps
    half, quarter = MAX_STEPS // 2, MAX_STEPS // 4
    inner = [place for place in roots if half <= place < len(steps) - quarter][:quarter]
    end = MAX_STEPS - half - len(inner)
    chosen = sorted({*range(half), *inner, *range(len(steps) - end, len(steps))})
    shown: list[WhyStep] = []
    for before, place in zip([-1, *chosen], chosen, strict=False):
        if place > before + 1:
            shown.append(WhyStep(text=f"… {place - before - 1} more steps …"))
        shown.append(steps[place])
    return shown


def place_of(name: str, visible: Around) -> str:
    """The id of the box or frame of a node, "" if it is in none."""
    box = visible.box_of.get(name)
    return box.id if box is not None else f"{name}/" if name in visible.calls else ""
