"""Correspondence of two states of which at least one is of another framework."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Final

from graphcore.difference.alignment import Aligner
from graphcore.difference.flow import Flow
from graphcore.difference.kinds import BIAS, FUSING, is_foreign, is_passive, sizes_of, traits_of, vocabulary
from graphcore.difference.regrouping import Correspondence, Regrouping
from graphcore.difference.state import GraphState
from graphcore.op_names import plain_op

_LINEAR: Final = frozenset({"scaling", "subtraction", "division"})
"""The kinds that a layer takes up if they compute with weights alone."""
_ACTIVATIONS: Final = frozenset({"relu", "clip", "relun1to1", "tanh", "sigmoid", "swish", "hardswish", "leaky relu", "gelu"})
_COMPOSED: Final = frozenset(
    [
        "scaled_dot_product_attention",
        "multi_head_attention_forward",
        "gelu",
        "layer_norm",
        "group_norm",
        "instance_norm",
        "rms_norm",
        "silu",
        "hardswish",
        "log_softmax",
        "softplus",
        "mish",
        "attention",
        "layernormalization",
        "gelu_",
        "normalize",
    ]
)
"""Ops that other frameworks write as several."""


def correspondence(a: GraphState, b: GraphState, pairs: dict[str, str]) -> Correspondence | None:
    """Match what names and structure leave over, and tell which nodes became others. None for two graphs of this library.

    Args:
        a, b: the states.
        pairs: the matched nodes; those that are matched here are added.
    """
    if not (is_foreign(a) or is_foreign(b)):
        return None
    matcher = _Matcher(a, b, pairs)
    matcher.run()
    return matcher.result()


class _Group:
    """A matched pair with the nodes that are parts of it on either side."""

    def __init__(self, old: str, new: str) -> None:
        self.sides: tuple[list[str], list[str]] = ([old], [new])
        self.by = ""

    @property
    def is_single(self) -> bool:
        return len(self.sides[0]) == len(self.sides[1]) == 1


class _Matcher:
    def __init__(self, a: GraphState, b: GraphState, pairs: dict[str, str]) -> None:
        self.states = (a, b)
        self.flows = (Flow(a), Flow(b))
        self.pairs = pairs
        self.aligner = Aligner(*self.flows, pairs)
        self.groups: dict[str, _Group] = {}
        self.heads: tuple[dict[str, _Group], dict[str, _Group]] = ({}, {})
        self.other: list[Regrouping] = []
        self.followed: set[str] = set()
        self.grouped: tuple[set[str], set[str]] = (set(), set())

    def run(self) -> None:
        a, b = self.flows
        self._pair_in_order(a.inputs, b.inputs)
        self._pair_in_order(a.results, b.results)
        self.aligner.run()
        self._pair_passing()
        for old, new in self.pairs.items():
            if a.is_live(old) and b.is_live(new):
                group = _Group(old, new)
                self.heads[0][old] = self.heads[1][new] = group
        for side in (0, 1, 0):  # the first takes up more once the second has
            self._absorb(side)
        self._match_components()
        self._pair_weights()
        self._pair_prepared()

    def _pair_in_order(self, olds: Iterable[str], news: Iterable[str]) -> None:
        left = [name for name in olds if name not in self.pairs]
        right = [name for name in news if name not in self.aligner.back]
        if len(left) == len(right):
            for old, new in zip(left, right, strict=True):
                self.aligner.pair(old, new)

    def _pair_passing(self) -> None:
        """Pair nodes that pass on the values of paired nodes."""
        a, b = self.flows
        for old in a.order:
            if old not in a.passing or old in self.pairs or not a.wires.inputs[old]:
                continue
            image = self.pairs.get(a.wires.inputs[old][0][0])
            for user, slot, _ in b.wires.consumers.get(image or "", ()):
                is_like = slot == 0 and user in b.passing and user not in self.aligner.back
                if is_like and plain_op(a.state.nodes[old].op).lower() == plain_op(b.state.nodes[user].op).lower():
                    self.aligner.pair(old, user)
                    break

    # ---- parts of layers ------------------------------------------------------------------------------------------------

    def _absorb(self, side: int) -> None:
        """Make unmatched nodes parts of the layer before them that does their work in the other state."""
        flow, heads = self.flows[side], self.heads[side]
        for name in flow.order:
            if name in heads or name in flow.passing:
                continue
            producers = flow.main_producers(name)
            if len(producers) == 1 and (group := heads.get(producers[0])) and flow.main_consumers.get(producers[0]) == [name]:
                by = self._taken_up(side, name, group)
                if by is not None:
                    group.by = group.by or by
                    group.sides[side].append(name)
                    heads[name] = group

    def _taken_up(self, side: int, name: str, group: _Group) -> str | None:
        """The attr by which a group does the work of the node after it.

        "" if it needs no attr for that, None if it does not do it.
        """
        flow, kind = self.flows[side], self.flows[side].kind(name)
        head = flow.kind(group.sides[side][0])
        if kind in _ACTIVATIONS:
            other = self.states[1 - side]
            return next((attr for node in group.sides[1 - side] if (attr := _activation(other, node))), None)
        if head == "pooling" and kind in {"division", "scaling"} and "sum" in flow.state.nodes[group.sides[side][0]].op.lower():
            return ""  # a mean, written as a sum and its division
        if head not in FUSING:
            return None
        if kind == BIAS:
            own, other_weights = [sum([len(self.flows[part].weights(node)) for node in group.sides[part]]) for part in (side, 1 - side)]
            return "" if not other_weights or other_weights > own else None  # a layer that is given no bias has dropped it
        is_batch = kind == "normalization" and "batch" in flow.state.nodes[name].op.lower()
        return "" if is_batch or kind in _LINEAR else None

    # ---- what is between layers ---------------------------------------------------------------------------------------

    def _match_components(self) -> None:
        """Match connected nodes that are left by the layers around them."""
        waiting: dict[tuple[frozenset[int], frozenset[int]], deque[list[str]]] = {}
        for nodes, before, after in self._components(1):
            waiting.setdefault((before, after), deque()).append(nodes)
        groups = {id(group): group for group in self.heads[0].values()}
        for nodes, before, after in list(self._components(0)):
            others = waiting.get((before, after))
            if others and (before or after):
                self._add(nodes, others.popleft())
            else:
                self._place_one_sided(0, nodes, _only(groups, before), _only(groups, after))
        for (before, after), left in waiting.items():
            for nodes in left:
                self._place_one_sided(1, nodes, _only(groups, before), _only(groups, after))

    def _place_one_sided(self, side: int, nodes: list[str], before: _Group | None, after: _Group | None) -> None:
        flow = self.flows[side]
        if all(is_passive(flow.state.nodes[name]) for name in nodes):
            self._add(*((nodes, []) if side == 0 else ([], nodes)))
            return
        if after is not None and self._is_part(side, nodes, after, is_before=True):
            after.sides[side][:0] = nodes
        elif before is not None and self._is_part(side, nodes, before, is_before=False):
            before.sides[side].extend(nodes)

    def _is_part(self, side: int, nodes: list[str], group: _Group, *, is_before: bool) -> bool:
        """True iff nodes before or after a layer are a part of what it is in the other state."""
        flow, other = self.flows[side], self.states[1 - side]
        heads = [plain_op(other.nodes[name].op).lower() for name in group.sides[1 - side]]
        is_padding = is_before and all(flow.kind(name) in {"pad", "constantpadnd"} for name in nodes)
        return any(head in _COMPOSED for head in heads) or (is_padding and flow.kind(group.sides[side][0]) in {*FUSING, "pooling"})

    def _add(self, before: list[str], after: list[str]) -> None:
        self.other.append(Regrouping(tuple(before), tuple(after)))
        self.grouped[0].update(before)
        self.grouped[1].update(after)

    def _components(self, side: int) -> Iterator[tuple[list[str], frozenset[int], frozenset[int]]]:
        """Connected unmatched nodes, with the groups that feed them and that they feed."""
        flow, heads = self.flows[side], self.heads[side]
        left = {name: place for place, name in enumerate(flow.order) if name not in heads}
        seen: set[str] = set()
        for name in left:
            if name in seen:
                continue
            seen.add(name)
            nodes, waiting = [name], [name]
            before: set[int] = set()
            after: set[int] = set()
            while waiting:
                at = waiting.pop()
                producers = [producer for producer, _ in flow.wires.inputs[at]]
                users = [user for user, _, _ in flow.wires.consumers.get(at, ())]
                before.update(filter(None, [self._mark(side, producer) for producer in producers]))
                after.update(filter(None, [self._mark(side, user) for user in users]))
                for other in (*producers, *users):
                    if other in left and other not in seen:
                        seen.add(other)
                        nodes.append(other)
                        waiting.append(other)
            yield sorted(nodes, key=left.__getitem__), frozenset(before), frozenset(after)

    def _mark(self, side: int, name: str) -> int:
        """A number of the group or the matched input or result that a node is in, 0 for none."""
        group = self.heads[side].get(name)
        if group is not None:
            return id(group)
        if side == 0:
            return hash(name) | 1 if name in self.pairs and not self._is_weight(0, name) else 0
        old = self.aligner.back.get(name)
        return 0 if old is None or self._is_weight(1, name) else hash(old) | 1

    def _is_weight(self, side: int, name: str) -> bool:
        return traits_of(self.states[side].nodes[name]).role in {"constant", "variable"}

    # ---- weights --------------------------------------------------------------------------------------------------------

    def _pair_weights(self) -> None:
        """Pair weights by the nodes that take them."""
        for group in {id(group): group for group in self.heads[0].values()}.values():
            left = [name for name in self.flows[0].weights(group.sides[0][0]) if name not in self.pairs]
            right = [name for name in self.flows[1].weights(group.sides[1][0]) if name not in self.aligner.back]
            for old, new in [*self._of_equal_sizes(left, right), *zip(left, right, strict=False)]:
                if old not in self.pairs and new not in self.aligner.back:
                    self.aligner.pair(old, new)
                    self.followed.add(old)

    def _pair_prepared(self) -> None:
        """Pair what is computed from weights and constants alone, as masks are, by the nodes that take it."""
        a, b = self.flows
        waiting = list(self.pairs.items())
        while waiting:
            old, new = waiting.pop()
            takers = a.wires.inputs.get(old, ()), b.wires.inputs.get(new, ())
            if len(takers[0]) != len(takers[1]):
                continue
            for (first, _), (second, _) in zip(*takers, strict=True):
                if self._is_left_over(0, first) and self._is_left_over(1, second) and a.kind(first) == b.kind(second):
                    self.aligner.pair(first, second)
                    self.followed.add(first)
                    waiting.append((first, second))

    def _is_left_over(self, side: int, name: str) -> bool:
        flow = self.flows[side]
        return name in flow.state.nodes and not flow.is_live(name) and name not in (self.pairs, self.aligner.back)[side]

    def _of_equal_sizes(self, olds: Iterable[str], news: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Weights of equal sizes in any layout: frameworks list kernel and bias in either order."""
        sizes = [{name: sizes_of(state.nodes[name]) for name in names} for state, names in zip(self.states, (olds, news), strict=True)]
        for old, first in sizes[0].items():
            yield from ((old, new) for new, second in sizes[1].items() if first and second and sorted(first) == sorted(second))

    def result(self) -> Correspondence:
        groups = {id(group): group for group in self.heads[0].values() if not group.is_single}
        regroupings = [Regrouping(tuple(group.sides[0]), tuple(group.sides[1]), group.by) for group in groups.values()]
        a, b = self.flows
        counts = [len([name for name in flow.order if name not in flow.passing]) for flow in self.flows]
        return Correspondence(
            before=vocabulary(a.state),
            after=vocabulary(b.state),
            computing=(counts[0], counts[1]),
            matched=sum(old in self.pairs for old in a.order if old not in a.passing),
            groups=(*regroupings, *self.other),
            followed=frozenset(self.followed),
            followers_before=self._followers(0, self.pairs),
            followers_after=self._followers(1, self.aligner.back),
        )

    def _followers(self, side: int, matched: dict[str, str]) -> frozenset[str]:
        flow = self.flows[side]
        ends = {*flow.inputs, *flow.results}
        grouped = set(chain.from_iterable(group.sides[side] for group in self.heads[side].values())) | self.grouped[side]
        left = [name for name in flow.state.nodes if name not in matched and name not in ends and not flow.is_live(name)]
        users = flow.wires.consumers
        # A weight of a node that is gone for good is listed with it.
        return frozenset(
            [
                name
                for name in left
                if not users.get(name) or any(user in matched or user in grouped or not flow.is_live(user) for user, _, _ in users[name])
            ]
        )


def _only(groups: Mapping[int, _Group], marks: frozenset[int]) -> _Group | None:
    """The group that some marks stand for, None unless they are those of one group."""
    return groups.get(next(iter(marks))) if len(marks) == 1 else None


def _activation(state: GraphState, name: str) -> str:
    """The attr of a node with the activation that it applies, "" if it applies none."""
    for attr, value in state.nodes[name].attr.items():
        if "activation" in attr.lower():
            text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
            if text and text.upper() not in {"NONE", "LINEAR", "0"}:
                return attr
    return ""
