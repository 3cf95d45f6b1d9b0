"""Step-by-step explanations of a tensor's shape, for the inspector."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from graphcore.errors import GraphError
from graphcore.graph.provenance.explain_shape import KnownSteps, explain_sizes
from widgets.inspection import Why, WhyStep
from widgets.scene.faults import fault_of
from widgets.scene.outside import MOST_FACTS, OutsideOrigins
from widgets.scene.shapes.clashes import source_row

if TYPE_CHECKING:
    from graphcore.graph import Node
    from graphcore.graph.provenance.origins import Fact, Origin

MAX_OUTPUTS: Final = 4
MAX_STEPS: Final = 24
"""Of a longer way the beginning, the first places where numbers entered and the end are shown."""
MAX_WALKED: Final = 1000
MAX_NODES: Final = 20_000


def why_of(node: Node, outside: OutsideOrigins, steps: KnownSteps | None = None) -> list[Why]:
    """An entry for each dimension of the first outputs, or one for an unknown rank.

    None for graphs that are too large.

    Args:
        node: the node.
        outside: the explanations of arguments of the bodies around it.
        steps: the steps of explanations of other nodes of the graph; new ones are added.
    """
    node.graph.settle()
    if len(node.graph) > MAX_NODES:
        return []
    whys: list[Why] = []
    for tensor in node.outputs[:MAX_OUTPUTS]:
        try:
            origins = explain_sizes(tensor, steps or KnownSteps(), MOST_FACTS)
        except GraphError:
            continue
        name = f" of {tensor.name}" if len(node.outputs) > 1 else ""
        for origin in origins:
            kind, place = origin.fact.kind, origin.fact.index
            if kind == "held":
                whys.append(_why(f"dimension {place} of what it stands for", origin, outside))
            elif kind == "rank":
                whys.append(_why(f"rank{name}", origin, outside))
            else:
                whys.append(_why(f"dimension {place}{name}", origin, outside, f"{tensor.index}:{place}"))
    return whys


def chains_of(node: Node, outside: OutsideOrigins) -> list[Why]:
    """The origins of the numbers that clash at a node."""
    fault = fault_of(node)
    chains = () if fault is None else fault.chains
    return [_why(str(chain.fact), chain, outside) for chain in chains]


def _why(what: str, origin: Origin, outside: OutsideOrigins, key: str = "") -> Why:
    steps: list[WhyStep] = []
    roots: list[int] = []
    written: set[tuple[Fact, str, str]] = set()
    pending: list[tuple[Origin, int]] = [(origin, 0)]
    while pending and len(steps) < MAX_WALKED:
        current, depth = pending.pop()
        name = current.node
        argument = outside.of(current)
        if argument is not None:
            steps.append(WhyStep(text=f"is {argument.fact}, given by the call", name=name, depth=depth))
            pending.append((argument, depth))
            continue
        text = f"{current.statement}: {current.text}" if depth and (not steps or steps[-1].depth != depth) else current.text
        identity = current.fact, name, current.text
        if current.because and identity in written:
            steps.append(WhyStep(text=f"{current.statement}, as above", name=name, depth=depth))
            continue
        written.add(identity)
        if not current.because:
            roots.append(len(steps))
        source = source_row(current.source) if not current.because else None
        steps.append(WhyStep(text=text, name=name, depth=depth, source=source))
        steps.extend(WhyStep(text=f"merged with {fact}", name=name, depth=depth + 1) for fact in current.merged_with)
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
