"""Clashes of shapes in the picture: the paths of the clashing numbers, and the cells that wrote them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from widgets.scene.boxes import Visible
from widgets.scene.faults import fault_of
from widgets.scene.outside import OutsideOrigins

if TYPE_CHECKING:
    from graphcore.graph import Node
    from graphcore.graph.provenance.origins import Fact, Origin

MAX_ERRORS: Final = 3
"""Nodes whose clashes are drawn; more would be a picture of nothing but red."""
MAX_STEPS: Final = 400


class ClashLines:
    """The edges and boxes that lead to shape errors.

    Attributes:
        lines: the number of the chain, from 1 on, by pairs of box ids.
        notes: the numbers that were written at a box, and the places, by box ids.
    """

    def __init__(self, visible: Visible) -> None:
        self.lines: dict[tuple[str, str], int] = {}
        self.notes: dict[str, str] = {}
        self._visible = visible
        self._box_of = {name: box.id for name, box in visible.box_of.items()}
        wrong = [node for box in visible.boxes for node in box.nodes if fault_of(node) is not None]
        for node in wrong[:MAX_ERRORS]:
            self._draw(node)

    def _draw(self, node: Node) -> None:
        fault = fault_of(node)
        chains = () if fault is None else fault.chains
        for number, chain in enumerate(chains, 1):
            for producer, consumer, note in chain_steps(chain, node.name, self._visible.outside):
                self._mark(producer, consumer, number)
                box = None if note is None else self._box_of.get(note[0])
                if note is not None and box is not None:
                    self.notes.setdefault(box, note[1])

    def _mark(self, producer: str, consumer: str, number: int) -> None:
        source, target = self._box_of.get(producer), self._box_of.get(consumer)
        if source is not None and target is not None and source != target:
            self.lines.setdefault((source, target), number)


def chain_steps(chain: Origin, name: str, given: OutsideOrigins) -> Iterator[tuple[str, str, tuple[str, str] | None]]:
    """The steps from the node called `name` to the origin of its clashing number.

    A step is a producer, a consumer, and a note with its node where the number was written.

    Args:
        given: the explanations of arguments of open bodies.
    """
    steps: list[tuple[Origin, str]] = [(chain, name)]
    drawn: set[tuple[str, str, Fact]] = set()
    while steps and len(drawn) < MAX_STEPS:
        origin, consumer = steps.pop()
        producer = origin.fact.tensor.rpartition(":")[0]
        if (consumer, origin.node, origin.fact) in drawn:
            continue
        drawn.add((consumer, origin.node, origin.fact))
        outside = given.of(origin)
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
