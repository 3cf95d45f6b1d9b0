"""The costs of a graph, as they are counted and said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from graphcore.costing.roofline import Roofline, roofline_of
from graphcore.costing.sizes import ZERO
from graphcore.errors import InvalidArgumentError
from graphcore.inference.expressions import Expression, constant
from graphcore.support.shown import html_text

_TITLES: Final = (
    "name",
    "multiply-adds",
    "operations",
    "bytes of results",
    "parameters",
    "bytes of weights",
    "operations for each byte moved",
)
_MOST_ROWS: Final = 30
_LEFT: Final = "text-align:left"


@dataclass(frozen=True, slots=True)
class NodeCost:
    """The costs of a node, or the sum of several.

    Attributes:
        multiply_adds: pairs of a multiplication and an addition, the "GFLOPs" of papers about models.
        operations: floating-point operations: two for each multiply-add, one for each element of elementwise ops, a few for each of others.
        activation_bytes: the bytes of the results; 0 for views and for what is stored.
        moved_bytes: the bytes of what is taken and given by nodes that compute or copy, as if none of it stayed in a cache; 0 for views.
        parameters: the elements of trained tensors.
        weight_bytes: the bytes of trained tensors, statistics and constants.
    """

    multiply_adds: Expression = ZERO
    operations: Expression = ZERO
    activation_bytes: Expression = ZERO
    parameters: int = 0
    weight_bytes: int = 0
    moved_bytes: Expression = ZERO

    def __add__(self, other: NodeCost) -> NodeCost:
        return NodeCost(
            self.multiply_adds + other.multiply_adds,
            self.operations + other.operations,
            self.activation_bytes + other.activation_bytes,
            self.parameters + other.parameters,
            self.weight_bytes + other.weight_bytes,
            self.moved_bytes + other.moved_bytes,
        )

    @property
    def intensity(self) -> float | None:
        """Operations for each byte moved; None if a size is not known or nothing is moved."""
        operations, moved = self.operations.constant, self.moved_bytes.constant
        return None if operations is None or not moved else operations / moved

    def at(self, sizes: Mapping[str, int]) -> NodeCost:
        """The costs for sizes by their names; others stay names."""
        amounts = (self.multiply_adds, self.operations, self.activation_bytes, self.moved_bytes)
        one, two, three, four = (amount if amount.names - sizes.keys() else constant(amount.value(sizes)) for amount in amounts)
        return NodeCost(one, two, three, self.parameters, self.weight_bytes, four)

    def weight(self) -> int:
        """A number by which scopes are put in order: multiply-adds for sizes of 1, and parameters."""
        return self.multiply_adds.value(dict.fromkeys(self.multiply_adds.names, 1)) + self.parameters

    def times(self, count: Expression) -> NodeCost:
        """The costs of `count` runs, which share their weights."""
        return NodeCost(
            self.multiply_adds * count,
            self.operations * count,
            self.activation_bytes * count,
            self.parameters,
            self.weight_bytes,
            self.moved_bytes * count,
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
        self._require(sizes)
        return self.total.at(sizes)

    def _require(self, sizes: Mapping[str, int]) -> None:
        total = self.total
        missing = sorted(
            (total.multiply_adds.names | total.operations.names | total.activation_bytes.names | total.moved_bytes.names) - sizes.keys()
        )
        if missing:
            raise InvalidArgumentError(f"Required a size for {', '.join(missing)}, got {', '.join(sizes) or 'none'}")

    def roofline(
        self, devices: Mapping[str, tuple[float, float]], *, depth: int = 0, seconds: Mapping[str, float] | None = None, **sizes: int
    ) -> Roofline:
        """Compare the nodes with the roofs of devices: the bound of each, and the least time that it takes.

        Args:
            devices: the peak operations in a second and the bytes in a second of the memory, by the name of the device.
            depth: 0 for a point for each node, else for each scope of so many parts of names.
            seconds: measured times of nodes or scopes on the first device, by name; their points are then where they were measured.
            sizes: numbers for unknown sizes, as in `batch=8`.

        Raises:
            InvalidArgumentError: a number is not positive, a size is missing, or there are no devices.

        Example:
            >>> y = gc.matmul(gc.zeros([64, 64]), gc.zeros([64, 64]), name="y")
            >>> print(gc.costs(y).roofline({"laptop": (200e9, 50e9)}))
            laptop: bound by memory below 4 operations for each byte
            y  10.7 for each byte, at least 2.62 µs (compute)
        """
        self._require(sizes)
        costs = self.scopes(depth) if depth else self.nodes
        amounts = {name: cost.at(sizes) for name, cost in costs.items()}
        work = {name: (cost.operations.constant or 0, cost.moved_bytes.constant or 0) for name, cost in amounts.items()}
        return roofline_of(work, devices, seconds or {})

    def __str__(self) -> str:
        total = self.total
        lines = [
            f"{amount_text(total.multiply_adds)} multiply-adds",
            f"{amount_text(total.operations)} operations",
            f"{short(total.parameters)} parameters",
            f"{amount_text(total.activation_bytes)} bytes of activations, {short(total.weight_bytes)} of weights",
        ]
        intensity = total.intensity
        lines += [] if intensity is None else [f"{intensity:,.1f} operations for each byte moved"]
        if self.unknown:
            name, reason = next(iter(self.unknown.items()))
            lines.append(f"not counted: {len(self.unknown):,} of {len(self.nodes):,} nodes, such as {name}: {reason}")
        return "\n".join([*lines, *self.notes])

    def __repr__(self) -> str:
        return f"<gc.Costs {'; '.join(str(self).splitlines())}>"

    def table(self, depth: int = 1) -> list[tuple[str, ...]]:
        """The costs of scopes, or for depth 0 of nodes, in words, those with the most work first.

        The first row has the titles.

        Args:
            depth: the number of parts of names.
        """
        costs = self.scopes(depth) if depth else self.nodes
        rows = sorted(costs.items(), key=lambda item: -item[1].weight())
        return [_TITLES, *[_row(name, cost) for name, cost in rows if cost.weight() or cost.operations.terms]]

    def _repr_html_(self) -> str:
        head, *rows = self.table()
        cells = "".join([f"<th style='text-align:left'>{html_text(text)}</th>" for text in head])
        lines = "".join([_html_row(row) for row in rows[:_MOST_ROWS]])
        more = f"<p>and {len(rows) - _MOST_ROWS:,} more scopes: costs.table()</p>" if len(rows) > _MOST_ROWS else ""
        return f"<p style='white-space:pre-line'>{html_text(str(self))}</p><table><tr>{cells}</tr>{lines}</table>{more}"


def _html_row(row: Sequence[str]) -> str:
    return f"<tr>{''.join([f'<td style={_LEFT}>{html_text(text)}</td>' for text in row])}</tr>"


def _row(name: str, cost: NodeCost) -> tuple[str, ...]:
    intensity = cost.intensity
    amounts = (cost.multiply_adds, cost.operations, cost.activation_bytes)
    words = "" if intensity is None else f"{intensity:,.3g}"
    return (name, *map(amount_text, amounts), short(cost.parameters), short(cost.weight_bytes), words)


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
