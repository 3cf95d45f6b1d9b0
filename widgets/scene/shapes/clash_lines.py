"""Clashes of shapes in the picture: the paths of the clashing numbers, and the cells that wrote them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from widgets.scene.outside import OutsideOrigins

if TYPE_CHECKING:
    from graphcore.graph.provenance.origins import Fact, Origin

MAX_STEPS: Final = 400


def chain_steps(chain: Origin, name: str, outside_origins: OutsideOrigins) -> Iterator[tuple[str, str, tuple[str, str] | None]]:
    """The steps from the node called `name` to the origin of its clashing number.

    A step is a producer, a consumer, and a note with its node where the number was written.

    Args:
        outside_origins: the explanations of arguments of open bodies.
    """
    steps: list[tuple[Origin, str]] = [(chain, name)]
    drawn: set[tuple[str, str, Fact]] = set()
    while steps and len(drawn) < MAX_STEPS:
        origin, consumer = steps.pop()
        producer = origin.fact.tensor.rpartition(":")[0]
        if (consumer, origin.node, origin.fact) in drawn:
            continue
        drawn.add((consumer, origin.node, origin.fact))
        outside = outside_origins.of(origin)
        written = outside is None and not origin.because and origin.how != "required"
        yield producer, consumer, (origin.node, _note(origin)) if written else None
        if outside is not None:
            steps.append((outside, producer))
        else:
            steps.extend((earlier, producer) for earlier in origin.because)


def _note(root: Origin) -> str:
    return f"{root.number} from {place_text(root)}" if root.source is not None else f"{root.number} from here"


def place_text(origin: Origin) -> str:
    """`In [3], line 2`: the cell and line of a decision."""
    source = origin.source
    if source is None:
        return ""
    label = source.cell or (source.run.label if source.run is not None else "")
    return f"{label or source.file.rpartition('/')[2]}, line {source.line}"
