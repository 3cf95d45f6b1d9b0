"""The flow of data through a state: its computing nodes in an order that does not depend on names."""

from __future__ import annotations

from functools import cached_property

from graphcore.difference.kinds import BIAS, is_passing, kind_of, sizes_of, traits_of
from graphcore.difference.state import GraphState
from graphcore.difference.wiring import Wiring


class Flow:
    """The computing nodes of a state.

    Inputs, results and weights are none of them, nor is what is computed from weights alone.

    Attributes:
        inputs, results: the nodes that values come in and go out by.
        order: the computing nodes, each behind those that it depends on, by the order of inputs.
        passing: those of `order` that pass their input on.
    """

    def __init__(self, state: GraphState) -> None:
        self.state = state
        self.wires = Wiring(state)
        roles = {name: traits_of(node).role for name, node in state.nodes.items()}
        self.inputs = [name for name, role in roles.items() if role == "placeholder"]
        self.results = [name for name, role in roles.items() if role == "return"]
        computing = {name for name, role in roles.items() if role in {"op", "control"}}
        live = self._fed(computing) if self.inputs else computing
        self.order = [name for name in self._sorted() if name in live]
        self.passing = {name for name in self.order if is_passing(state.nodes[name])}
        self._live = live
        self._kinds: dict[str, str] = {}

    def _fed(self, computing: set[str]) -> set[str]:
        """The computing nodes that an input leads to."""
        live: set[str] = set()
        waiting = list(self.inputs)
        while waiting:
            for user, _, _ in self.wires.consumers.get(waiting.pop(), ()):
                if user in computing and user not in live:
                    live.add(user)
                    waiting.append(user)
        return live

    def _sorted(self) -> list[str]:
        """All nodes, producers first, from the results backwards."""
        nodes = self.state.nodes
        ends = self.results or [name for name in nodes if name not in self.wires.consumers]
        order: dict[str, None] = {}
        entered: set[str] = set()
        stack = [(name, False) for name in [*reversed(nodes), *reversed(ends)]]
        while stack:
            name, is_done = stack.pop()
            if is_done:
                order[name] = None
            elif name not in entered and name in nodes:
                entered.add(name)
                stack.append((name, True))
                stack.extend((producer, False) for producer, _ in reversed(self.wires.inputs[name]))
        return list(order)

    def is_live(self, name: str) -> bool:
        """True for a computing node."""
        return name in self._live

    def is_source(self, name: str) -> bool:
        """True for a computing node or an input: what values come from that are no weights."""
        return name in self._live or (name in self.state.nodes and traits_of(self.state.nodes[name]).role == "placeholder")

    def kind(self, name: str) -> str:
        """The kind of a node; an addition of weights is a bias."""
        kind = self._kinds.get(name)
        if kind is None:
            kind = kind_of(self.state.nodes[name])
            if kind == "addition" and sum(self.is_source(producer) for producer, _ in self.wires.inputs[name]) <= 1:
                kind = BIAS
            self._kinds[name] = kind
        return kind

    def main_producers(self, name: str) -> list[str]:
        """The computing nodes and inputs that feed a node, those that only pass values on skipped."""
        producers = []
        for producer, _ in self.wires.inputs.get(name, ()):
            at = self.behind_passing(producer)
            if self.is_source(at):
                producers.append(at)
        return producers

    def behind_passing(self, name: str) -> str:
        """The node whose value a node passes on; the node itself if it is none that does."""
        seen = 0
        while name in self.state.nodes and seen < len(self.state.nodes) and is_passing(self.state.nodes[name]) and self.wires.inputs[name]:
            name = self.wires.inputs[name][0][0]
            seen += 1
        return name

    @cached_property
    def main_consumers(self) -> dict[str, list[str]]:
        """The inverse of `main_producers`."""
        consumers: dict[str, list[str]] = {}
        for name in self.order:
            if name not in self.passing:
                for producer in self.main_producers(name):
                    consumers.setdefault(producer, []).append(name)
        return consumers

    def weights(self, name: str) -> list[str]:
        """The weights that a node takes, in the order of its inputs, those behind ops on weights alone too."""
        taken = []
        for producer, _ in self.wires.inputs.get(name, ()):
            at, seen = producer, 0
            while at in self.state.nodes and not self.is_source(at) and self.wires.inputs[at] and seen < 100:
                at, seen = self.wires.inputs[at][0][0], seen + 1
            at = self.behind_passing(at)
            if at in self.state.nodes and not self.is_source(at):
                taken.append(at)
        return taken

    def weight_sizes(self, name: str) -> list[tuple[int, ...]]:
        """The sizes of the weights that a node takes, each sorted, so that layouts do not matter."""
        sizes = [sizes_of(self.state.nodes[weight]) for weight in self.weights(name)]
        return [tuple(sorted(one)) for one in sizes if one is not None]
