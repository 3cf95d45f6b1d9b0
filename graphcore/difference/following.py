"""Changes that only follow from nodes that became others, which are not told one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from graphcore.difference.changes import Change
from graphcore.difference.kinds import FUSING, is_passing, is_passive, kind_of, traits_of
from graphcore.difference.regrouping import Correspondence
from graphcore.difference.settings import setting_changes
from graphcore.difference.state import GraphState
from graphcore.difference.wiring import CONTROL, Wiring, parse_input


class Following:
    """Tells where the values of two states come from, nodes that became others taken as one.

    Args:
        a, b: the states.
        pairs: the matched nodes.
        across: their correspondence beyond these.
    """

    def __init__(self, a: GraphState, b: GraphState, pairs: Mapping[str, str], across: Correspondence) -> None:
        self._states = (a, b)
        self._pairs = pairs
        self._later = set(pairs.values())
        self._skipped: tuple[set[str], set[str]] = (set(), set())
        self._group: tuple[dict[str, str], dict[str, str]] = ({}, {})
        self._fed = (_fed(a), _fed(b))
        for group in across.groups:
            if group.way == "became":
                self._group[0].update(dict.fromkeys(group.before, group.after[-1]))
                self._group[1].update(dict.fromkeys(group.after, group.after[-1]))
            else:
                self._skipped[0].update(group.before)
                self._skipped[1].update(group.after)

    def own(self, old: str, new: str, changes: Iterable[Change]) -> Iterator[Change]:
        """The changes of a pair of nodes that follow from no regrouping."""
        is_part = old in self._group[0] and new in self._group[1]
        for change in changes:
            if change.kind == "op" and is_part:
                continue
            if change.kind == "input" and self._is_same(change, is_part):
                continue
            yield change

    def _is_same(self, change: Change, is_part: bool) -> bool:
        before, after = parse_input(change.before)[0], parse_input(change.after)[0]
        if is_part and self._is_weight(0, before) and self._is_weight(1, after):
            return True
        return bool(before and after) and self._origin_of_input(before) == self.origin(1, after)

    def _is_weight(self, side: int, name: str) -> bool:
        """True for a weight, and for an input that is left out."""
        nodes = self._states[1].nodes if side or name in self._later else self._states[0].nodes
        return name not in nodes or traits_of(nodes[name]).role in {"constant", "variable"}

    def _origin_of_input(self, name: str) -> str:
        """The origin of an earlier input, which changes name as it is called now if it is kept."""
        return self.origin(1, name) if name in self._later else self.origin(0, name)

    def origin(self, side: int, name: str) -> str:
        """The later name of the node or regrouping that a value comes from; the name itself if it has none."""
        nodes = self._states[side].nodes
        matched = self._pairs if side == 0 else self._later
        for _ in range(len(nodes)):
            node = nodes.get(name)
            if node is None or name in self._group[side] or name in matched:
                break
            if not node.node_def.input or not (is_passing(node) or name in self._skipped[side]):
                break
            name = parse_input(node.node_def.input[0])[0]
        group = self._group[side].get(name)
        if group is not None:
            return group
        return self._pairs.get(name, f"{name} before") if side == 0 else name

    def settings(self, old: str, new: str) -> Iterator[Change]:
        """The changed settings of a pair of two frameworks, those of regroupings left out."""
        if old not in self._group[0] and new not in self._group[1]:
            yield from setting_changes(self._states[0], [old], self._states[1], [new])

    def rewired(self, old: str, new: str) -> Iterator[Change]:
        """The inputs of a pair of two frameworks that come from elsewhere, and weights of one alone.

        Parts of regroupings are left out.
        """
        if old in self._group[0] or new in self._group[1] or is_passive(self._states[0].nodes[old]):
            return
        yield from self._dropped_weights(old, new)
        before, after = self._sources(0, old), self._sources(1, new)
        if len(before) != len(after) or kind_of(self._states[0].nodes[old]) == "return":
            return
        first, second = [self.origin(0, name) for name in before], [self.origin(1, name) for name in after]
        if sorted(first) == sorted(second):
            return
        for slot, (origin, later) in enumerate(zip(first, second, strict=True)):
            if origin != later:
                yield Change("input", str(slot), origin.removesuffix(" before"), after[slot])

    def _dropped_weights(self, old: str, new: str) -> Iterator[Change]:
        """The weights that one of two layers takes beyond those of the other: a bias."""
        a, b = self._states[0].nodes[old], self._states[1].nodes[new]
        if kind_of(a) not in FUSING or "qlinear" in b.op.lower() or "integer" in b.op.lower():
            return
        first, second = self._weights(0, old), self._weights(1, new)
        if first and second and len(first) != len(second):
            paired = {name for name in first if self._pairs.get(name) in second}
            longer, taken = (first, paired) if len(first) > len(second) else (second, {self._pairs[name] for name in paired})
            left = [name for name in longer if name not in taken]
            dropped = left[0] if len(left) == abs(len(first) - len(second)) else longer[min(len(first), len(second))]
            before, after = (dropped, "") if longer is first else ("", dropped)
            yield Change("input", str(longer.index(dropped) + 1), before, after)

    def _weights(self, side: int, name: str) -> list[str]:
        producers = [parse_input(text)[0] for text in self._states[side].nodes[name].node_def.input]
        return [producer for producer in producers if self._is_prepared(side, producer)]

    def _sources(self, side: int, name: str) -> list[str]:
        """The nodes that feed a node, without weights and control inputs."""
        nodes = self._states[side].nodes
        producers = [producer for producer, output in map(parse_input, nodes[name].node_def.input) if output != CONTROL]
        return [producer for producer in producers if producer in nodes and not self._is_prepared(side, producer)]

    def _is_prepared(self, side: int, name: str) -> bool:
        """True for a weight, and for what no input of the model leads to."""
        return name in self._states[side].nodes and name not in self._fed[side]


def _fed(state: GraphState) -> set[str]:
    """The inputs of a model and all that they lead to; without inputs all nodes but weights."""
    roles = {name: traits_of(node).role for name, node in state.nodes.items()}
    fed = {name for name, role in roles.items() if role == "placeholder"}
    if not fed:
        return {name for name, role in roles.items() if role not in {"constant", "variable"}}
    consumers = Wiring(state).consumers
    waiting = list(fed)
    while waiting:
        for user, _, _ in consumers.get(waiting.pop(), ()):
            if user not in fed:
                fed.add(user)
                waiting.append(user)
    return fed
