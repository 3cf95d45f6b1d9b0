"""The costs of a graph, as they are counted and said."""

from __future__ import annotations

from dataclasses import dataclass, field

from graphcore.costing.sizes import ZERO
from graphcore.errors import InvalidArgumentError
from graphcore.inference.expressions import Expression, constant


@dataclass(frozen=True, slots=True)
class NodeCost:
    """The costs of a node, or the sum of several.

    Attributes:
        multiply_adds: pairs of a multiplication and an addition, the "GFLOPs" of papers about models.
        operations: floating-point operations: two for each multiply-add, one for each element of elementwise ops, a few for each of others.
        activation_bytes: the bytes of the results; 0 for views and for what is stored.
        parameters: the elements of trained tensors.
        weight_bytes: the bytes of trained tensors, statistics and constants.
    """

    multiply_adds: Expression = ZERO
    operations: Expression = ZERO
    activation_bytes: Expression = ZERO
    parameters: int = 0
    weight_bytes: int = 0

    def __add__(self, other: NodeCost) -> NodeCost:
        return NodeCost(
            self.multiply_adds + other.multiply_adds,
            self.operations + other.operations,
            self.activation_bytes + other.activation_bytes,
            self.parameters + other.parameters,
            self.weight_bytes + other.weight_bytes,
        )

    def weight(self) -> int:
        """A number by which scopes are put in order: multiply-adds for sizes of 1, and parameters."""
        return self.multiply_adds.value(dict.fromkeys(self.multiply_adds.names, 1)) + self.parameters

    def times(self, count: Expression) -> NodeCost:
        """The costs of `count` runs, which share their weights."""
        return NodeCost(
            self.multiply_adds * count, self.operations * count, self.activation_bytes * count, self.parameters, self.weight_bytes
        )


@dataclass(slots=True)
class Costs:
    """The costs of a graph.

    Attributes:
        nodes: those of each node, by name; nodes of functions as `call:role/name`, for all runs of the function.
        total: their sum.
        unknown: for nodes whose work is not counted, the reason by name.
        notes: sentences on assumptions.
    """

    nodes: dict[str, NodeCost] = field(default_factory=dict)
    total: NodeCost = field(default_factory=NodeCost)
    unknown: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def scopes(self, depth: int = 1) -> dict[str, NodeCost]:
        """The sums of scopes, by the first `depth` parts of the names of nodes."""
        sums: dict[str, NodeCost] = {}
        for name, cost in self.nodes.items():
            scope = "/".join(name.split("/")[:depth])
            sums[scope] = sums.get(scope, NodeCost()) + cost
        return sums

    def at(self, **sizes: int) -> NodeCost:
        """The total for sizes by their names: `costs.at(batch=8)`.

        Raises:
            InvalidArgumentError: a name is missing.
        """
        total = self.total
        missing = sorted((total.multiply_adds.names | total.operations.names | total.activation_bytes.names) - sizes.keys())
        if missing:
            raise InvalidArgumentError(f"Required a size for {', '.join(missing)}, got {', '.join(sizes) or 'none'}")
        one, two, three = (constant(amount.value(sizes)) for amount in (total.multiply_adds, total.operations, total.activation_bytes))
        return NodeCost(one, two, three, total.parameters, total.weight_bytes)

    def __str__(self) -> str:
        total = self.total
        lines = [
            f"{amount_text(total.multiply_adds)} multiply-adds",
            f"{amount_text(total.operations)} operations",
            f"{short(total.parameters)} parameters",
            f"{amount_text(total.activation_bytes)} bytes of activations, {short(total.weight_bytes)} of weights",
        ]
        intensity = self.intensity
        lines += [] if intensity is None else [f"{intensity:,.1f} operations for each byte"]
        if self.unknown:
            name, reason = next(iter(self.unknown.items()))
            lines.append(f"not counted: {len(self.unknown):,} of {len(self.nodes):,} nodes, such as {name}: {reason}")
        return "\n".join([*lines, *self.notes])

    def __repr__(self) -> str:
        return f"<gc.Costs {'; '.join(str(self).splitlines())}>"

    @property
    def intensity(self) -> float | None:
        """Operations for each byte of weights and activations; None if a size is not known."""
        operations, activations = self.total.operations.constant, self.total.activation_bytes.constant
        if operations is None or activations is None or not activations + self.total.weight_bytes:
            return None
        return operations / (activations + self.total.weight_bytes)


def short(number: float) -> str:
    """A number in the words of papers: `4.1 G`, `25.6 M`."""
    for unit, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number:,.0f}"


def amount_text(amount: Expression) -> str:
    """An amount in the words of papers: `4.1 G`, `1.8 G x batch + 3 M`."""
    parts = [" x ".join([short(number), *map(str, factors)]) for factors, number in amount.terms]
    return " + ".join(parts) or "0"
