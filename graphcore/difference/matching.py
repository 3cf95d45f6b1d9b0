"""Matching of the nodes of two states: by name first, then by place in the structure."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from graphcore.difference.state import GraphState, NodeState
from graphcore.difference.wiring import Wiring

COLOCATION: Final = "_class"
"""The attr with the names of other nodes."""
NEARLY_ALL: Final = 0.9
"""The part of all nodes that is found under another scope if everything has moved there."""
MOST_PAIRS: Final = 4096
"""More pairs of scopes than this that a name speaks for say nothing."""


def match_nodes(a: GraphState, b: GraphState) -> dict[str, str]:
    """The name in `b` of each node of `a` that is still there."""
    both = {name: name for name, node in a.nodes.items() if name in b.nodes and b.nodes[name].op == node.op}
    if len(both) == len(a.nodes) == len(b.nodes):
        return both
    rewired = [name for name in both if (before := a.nodes[name].node_def.input) and before != b.nodes[name].node_def.input]
    if not rewired and len(both) in (len(a.nodes), len(b.nodes)):
        return both  # there are only additions, or only removals
    matcher = _Matcher(a, b, both)
    matcher.run(rewired)
    return matcher.pairs


class _Matcher:
    """Matches what names leave over.

    Attributes:
        pairs: the name in `b` of each matched node of `a`.
        back: the inverse.
    """

    def __init__(self, a: GraphState, b: GraphState, pairs: dict[str, str]) -> None:
        self.a, self.b = a, b
        self.pairs = pairs
        self.back = {new: old for old, new in pairs.items()}
        self.wires_a, self.wires_b = Wiring(a), Wiring(b)
        self.definitions: dict[int, int] = {}

    def run(self, rewired: Iterable[str]) -> None:
        """Match; `rewired` are the nodes of one name with other inputs."""
        self._release_shifted(rewired)
        self._match_moved()
        self._match_alike()
        self._match_scopes()
        self._match_neighbours()
        for name in self._left_a():
            if name in self.b.nodes and name not in self.back:
                self._pair(name, name)

    # ---- what is left -----------------------------------------------------------------------------------------------

    def _left_a(self) -> list[str]:
        return [name for name in self.a.nodes if name not in self.pairs]

    def _left_b(self) -> list[str]:
        return [name for name in self.b.nodes if name not in self.back]

    def _pair(self, old: str, new: str) -> None:
        self.pairs[old] = new
        self.back[new] = old

    def _release_shifted(self, rewired: Iterable[str]) -> None:
        """Take apart nodes of one name without a common neighbour, such as `Relu_1` after a new Relu."""
        for name in rewired:
            before, after = self.wires_a.inputs[name], self.wires_b.inputs[name]
            if not before or set(before) & set(after):
                continue
            users = self.wires_a.consumers.get(name, ())
            if users and not set(users) & set(self.wires_b.consumers.get(name, ())):
                del self.pairs[name], self.back[name]

    # ---- the same structure --------------------------------------------------------------------------------------------

    def _definition(self, node: NodeState) -> int:
        """The part of a definition that does not depend on names."""
        key = id(node)
        digest = self.definitions.get(key)
        if digest is None:
            attrs = frozenset([(name, value) for name, value in node.attr.items() if name != COLOCATION])
            digest = self.definitions[key] = hash((node.op, node.node_def.device, attrs))
        return digest

    def _match_alike(self) -> None:
        """Match nodes with equal nodes before and after them, up to matched ones."""
        left_a, left_b = self._left_a(), self._left_b()
        if not left_a or not left_b:
            return
        keys_a = _structure(self.a, self.wires_a, left_a, self.pairs, self._definition)
        keys_b = _structure(self.b, self.wires_b, left_b, {new: new for new in self.back}, self._definition)
        groups: dict[object, list[str]] = {}
        for name in left_b:
            groups.setdefault(keys_b[name], []).append(name)
        for key, olds in _grouped(left_a, keys_a).items():
            for old, new in _by_last_part(olds, groups.get(key, [])):
                self._pair(old, new)

    # ---- scopes --------------------------------------------------------------------------------------------------------

    def _match_moved(self) -> None:
        """Match all at once if nearly everything has moved to another scope, as by an import below a prefix."""
        left_a, left_b = self._left_a(), self._left_b()
        old, new = _common_scope(left_a), _common_scope(left_b)
        if len(left_a) < 2 or len(left_b) < 2 or old == new:
            return
        moved = [(name, _under(new, _below(old, name))) for name in left_a]
        moved = [(name, to) for name, to in moved if self._may_pair(name, to)]
        same = [name for name, to in moved if self._definition(self.a.nodes[name]) == self._definition(self.b.nodes[to])]
        if len(same) >= NEARLY_ALL * len(left_a):
            for name, to in moved:
                self._pair(name, to)

    def _match_scopes(self) -> None:
        """Match the nodes of renamed scopes, found by equal definitions under equal names."""
        left_a, left_b = self._left_a(), self._left_b()
        if not left_a or not left_b:
            return
        endings: dict[object, tuple[list[str], list[str]]] = {}
        for side, (state, names) in enumerate(((self.a, left_a), (self.b, left_b))):
            for name in names:
                definition = self._definition(state.nodes[name])
                for prefix, rest in _splits(name):
                    endings.setdefault((rest, definition), ([], []))[side].append(prefix)
        votes: Counter[tuple[str, str]] = Counter()
        for before, after in endings.values():
            if before and after and len(before) * len(after) <= MOST_PAIRS:
                votes.update((old, new) for old in before for new in after if old != new)
        inside: dict[str, list[str]] = {}
        for name in left_a:
            for prefix, _ in _splits(name):
                inside.setdefault(prefix, []).append(name)
        sizes = Counter(prefix for name in left_b for prefix, _ in _splits(name))
        for (old, new), count in sorted(votes.items(), key=lambda item: (-item[1], len(item[0][0]) + len(item[0][1]))):
            if count < 2 or 2 * count < min(len(inside[old]), sizes[new]):
                continue
            moved = [(name, _under(new, _below(old, name))) for name in inside[old] if name not in self.pairs]
            moved = [(name, to) for name, to in moved if self._may_pair(name, to)]
            if len(moved) >= 2:
                for name, to in moved:
                    self._pair(name, to)

    def _may_pair(self, old: str, new: str) -> bool:
        return new in self.b.nodes and new not in self.back and self.a.nodes[old].op == self.b.nodes[new].op

    # ---- neighbours of matched nodes --------------------------------------------------------------------------------------

    def _match_neighbours(self) -> None:
        """Match nodes between matched ones, from neighbour to neighbour."""
        if len(self.pairs) == len(self.a.nodes) or len(self.back) == len(self.b.nodes):
            return
        waiting = deque(self.pairs.items())
        while waiting:
            old, new = waiting.popleft()
            for candidate, other in [*self._consumers(old, new), *self._producers(old, new)]:
                if candidate not in self.pairs and other not in self.back and self._agree(candidate, other):
                    self._pair(candidate, other)
                    waiting.append((candidate, other))

    def _consumers(self, old: str, new: str) -> Iterator[tuple[str, str]]:
        after: dict[tuple[int, str], list[str]] = {}
        for name, slot, output in self.wires_b.consumers.get(new, ()):
            if name not in self.back:
                after.setdefault((slot, output), []).append(name)
        if not after:
            return
        for name, slot, output in self.wires_a.consumers.get(old, ()):
            if name not in self.pairs:
                for other in after.get((slot, output), ())[:8]:
                    yield name, other

    def _producers(self, old: str, new: str) -> Iterator[tuple[str, str]]:
        for (before, output), (after, other) in zip(self.wires_a.inputs[old], self.wires_b.inputs[new], strict=False):
            if output == other and before in self.a.nodes and after in self.b.nodes:
                yield before, after

    def _agree(self, old: str, new: str) -> bool:
        """True iff two nodes are one: inputs and consumers agree, or one of these and the definitions."""
        a, b = self.a.nodes[old], self.b.nodes[new]
        if a.op != b.op:
            return False
        mapped = [(self.pairs.get(name), output) for name, output in self.wires_a.inputs[old]]
        inputs = bool(mapped) and mapped == self.wires_b.inputs[new]
        users = {(self.pairs.get(name), slot, output) for name, slot, output in self.wires_a.consumers.get(old, ())}
        consumers = bool(users) and users == {*self.wires_b.consumers.get(new, ())}
        if inputs and consumers:
            return True
        return (inputs or consumers) and self._definition(a) == self._definition(b)


def _structure(
    state: GraphState, wires: Wiring, names: list[str], matched: Mapping[str, str], definition: Callable[[NodeState], int]
) -> dict[str, tuple[int, int]]:
    """For each of some nodes what leads to it and what follows from it, up to known nodes."""
    own = {name: definition(state.nodes[name]) for name in names}
    before, waits = wires.inputs, wires.controls
    after = {name: wires.consumers.get(name, []) for name in names}

    def key(name: str, hashes: Mapping[str, int]) -> str | int:
        return matched.get(name) or hashes.get(name, 0)

    def down(name: str, hashes: Mapping[str, int]) -> int:
        data = tuple([(key(producer, hashes), output) for producer, output in before[name]])
        return hash((own[name], data, frozenset([key(producer, hashes) for producer in waits[name]])))

    def up(name: str, hashes: Mapping[str, int]) -> int:
        users = Counter([(key(user, hashes), slot, output) for user, slot, output in after[name]])
        return hash((own[name], frozenset(users.items())))

    downs = _in_order(names, lambda name: [*(producer for producer, _ in before[name]), *waits[name]], down)
    ups = _in_order(names, lambda name: [user for user, _, _ in after[name]], up)
    return {name: (downs[name], ups[name]) for name in names}


def _in_order(names: list[str], needs: Callable[[str], Iterable[str]], value: Callable[[str, Mapping[str, int]], int]) -> dict[str, int]:
    """The value of each name after those that it needs; a cycle is cut where it is met."""
    left = set(names)
    values: dict[str, int] = {}
    for start in names:
        if start not in left:
            continue
        left.discard(start)
        stack: list[tuple[str, Iterator[str]]] = [(start, iter(needs(start)))]
        while stack:
            name, following = stack[-1]
            inner = next((other for other in following if other in left), None)
            if inner is None:
                stack.pop()
                values[name] = value(name, values)
            else:
                left.discard(inner)
                stack.append((inner, iter(needs(inner))))
    return values


def _grouped(names: Iterable[str], keys: Mapping[str, object]) -> dict[object, list[str]]:
    groups: dict[object, list[str]] = {}
    for name in names:
        groups.setdefault(keys[name], []).append(name)
    return groups


def _by_last_part(olds: list[str], news: list[str]) -> Iterator[tuple[str, str]]:
    """Pairs of equivalent nodes: those of the same last name first, then in order."""
    by_last: dict[str, deque[str]] = {}
    for new in news:
        by_last.setdefault(new.rpartition("/")[2], deque()).append(new)
    used: set[str] = set()
    others = []
    for old in olds:
        same = by_last.get(old.rpartition("/")[2])
        if same:
            used.add(same[0])
            yield old, same.popleft()
        else:
            others.append(old)
    yield from zip(others, [new for new in news if new not in used], strict=False)


def _splits(name: str) -> Iterator[tuple[str, str]]:
    """Each scope around a node with the rest of the name, outermost first: `("", "a/b")`, `("a", "b")`."""
    yield "", name
    place = name.find("/")
    while place >= 0:
        yield name[:place], name[place + 1 :]
        place = name.find("/", place + 1)


def _common_scope(names: list[str]) -> str:
    """The innermost scope around all of some names."""
    if not names:
        return ""
    first, last = min(names).split("/")[:-1], max(names).split("/")[:-1]
    same = 0
    while same < min(len(first), len(last)) and first[same] == last[same]:
        same += 1
    return "/".join(first[:same])


def _below(scope: str, name: str) -> str:
    return name[len(scope) + 1 :] if scope else name


def _under(scope: str, rest: str) -> str:
    return f"{scope}/{rest}" if scope else rest
