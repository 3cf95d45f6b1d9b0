"""Which nodes are computed whenever they are asked for, and once: those that lie on no branch and in no loop."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, Final

import msgspec

from graphcore.graph.model.node import Node, Tensor
from graphcore.graph.model.topological_order import is_back_edge

if TYPE_CHECKING:
    from graphcore.graph.reading import GraphReader

_SWITCHES: Final = frozenset({"Switch", "RefSwitch", "_SwitchN"})
_MERGES: Final = frozenset({"Merge", "RefMerge"})
_ENTRIES: Final = frozenset({"Enter", "RefEnter"})
_EXITS: Final = frozenset({"Exit", "RefExit"})
_FIRST: Final = _SWITCHES | _ENTRIES
"""Without these there are no branches and loops."""


class _Condition(msgspec.Struct, frozen=True):
    """That a choice was made: which side of what, in how many loops."""

    depth: int
    what: Tensor | Node
    side: int


class _Place(msgspec.Struct, frozen=True):
    """Where a node stands: in so many loops, under so many conditions."""

    depth: int = 0
    conditions: frozenset[_Condition] = frozenset()

    def left(self) -> _Place:
        """Outside of the innermost loop."""
        return _Place(max(self.depth - 1, 0), frozenset([each for each in self.conditions if each.depth < self.depth]))


_OUTSIDE: Final = _Place()


def uncertain_nodes(graph: GraphReader) -> set[Node]:
    """The nodes on a branch that may not be taken, and those in a loop, where nothing need be the same twice."""
    nodes = graph.op_nodes()
    if not any(node.op in _FIRST for node in nodes):
        return set()
    places: dict[Node, _Place] = {}
    for node in sorted(nodes, key=attrgetter("rank")):
        places[node] = _place(node, places)
    return {node for node, place in places.items() if place.depth or place.conditions}


def _place(node: Node, places: dict[Node, _Place]) -> _Place:
    given = [_behind(tensor, places) for tensor in node.inputs if not is_back_edge(tensor.node.op, node.op)]
    met = _met(node, given) if node.op in _MERGES else _all_of(given)
    place = _all_of([met, *[places.get(control, _OUTSIDE) for control in node.control_inputs]])
    if node.op in _ENTRIES:
        return _Place(place.depth + 1, place.conditions)
    return place.left() if node.op in _EXITS else place


def _behind(tensor: Tensor, places: dict[Node, _Place]) -> _Place:
    """Where a tensor is: behind a Switch the choice is made."""
    node = tensor.node
    place = places.get(node, _OUTSIDE)
    if node.op not in _SWITCHES:
        return place
    return _Place(place.depth, place.conditions | {_Condition(place.depth, node.inputs[1], tensor.index)})


def _all_of(places: Iterable[_Place]) -> _Place:
    found = list(places)
    if len(found) == 1:
        return found[0]
    depth = max([place.depth for place in found], default=0)
    return _Place(depth, frozenset().union(*[place.conditions for place in found]))


def _met(node: Node, given: list[_Place]) -> _Place:
    """Where branches meet: both sides of one choice make it no choice. Others are left open: it may be that none is taken."""
    together = _all_of(given)
    common = frozenset.intersection(*[place.conditions for place in given]) if given else frozenset()
    apart = [place.conditions - common for place in given]
    if not any(apart):
        return together
    if len(apart) == 2 and all(len(conditions) == 1 for conditions in apart):
        (one,), (other,) = apart
        if one.what is other.what and one.depth == other.depth and {one.side, other.side} == {0, 1}:
            return _Place(together.depth, common)
    return _Place(together.depth, together.conditions | {_Condition(together.depth, node, 0)})
