"""The table: medians, ratios, and verdicts on budgets."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.benchmarks.work import IN_UNITS, Budget, Row, Variant

HEADINGS = ("work", "unit", "ours", "NumPy", "TensorFlow", "ours/NumPy", "ours/TF", "budget", "")


@dataclass
class Result:
    """The figures of one row, one for each round, in seconds or bytes.

    `problem` is the reason for which there are none or they do not count.
    """

    row: Row
    rounds: Mapping[Variant, list[float]] = field(default_factory=dict)
    problem: str = ""

    def median(self, variant: Variant) -> float | None:
        """The median in the row's unit, None without figures."""
        figures = self.rounds.get(variant)
        return statistics.median(figures) * IN_UNITS[self.row.unit] if figures else None

    def ratio(self, variant: Variant) -> float | None:
        """The median over the rounds of our figure divided by the other's in the same round.

        A slow moment affects both.
        """
        ours, theirs = self.rounds.get("ours"), self.rounds.get(variant)
        if not ours or not theirs:
            return None
        return statistics.median(mine / other for mine, other in zip(ours, theirs, strict=True))

    def keeps(self, budget: Budget) -> bool | None:
        """True iff ours is within the budget; None if it could not be measured."""
        figure = self.ratio(budget.times) if budget.times else self.median("ours")
        return None if figure is None else figure <= budget.limit

    def verdict(self) -> str:
        """`ok`, `over`, or the problem."""
        if self.problem:
            return self.problem
        kept = [self.keeps(budget) for budget in self.row.budgets]
        if None in kept:
            return "not measured"
        return "ok" if all(kept) else "over"


def number(value: float | None) -> str:
    """A figure in the table, or a dash."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def budget_text(budget: Budget) -> str:
    """`12`, or `1.1 x NumPy`."""
    names = {"numpy": "NumPy", "tensorflow": "TF"}
    return f"{budget.limit:g} x {names[budget.times]}" if budget.times else f"{budget.limit:g}"


def table(results: Sequence[Result]) -> str:
    """All results as aligned text."""
    lines: list[tuple[str, ...]] = [HEADINGS]
    for result in results:
        medians = [number(result.median(variant)) for variant in ("ours", "numpy", "tensorflow")]
        ratios = [number(result.ratio(variant)) for variant in ("numpy", "tensorflow")]
        budget = ", ".join(budget_text(budget) for budget in result.row.budgets)
        lines.append((result.row.title, result.row.unit, *medians, *ratios, budget, result.verdict()))
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    text = []
    for line in lines:
        cells = [line[0].ljust(widths[0]), line[1].ljust(widths[1])]
        cells += [cell.rjust(width) for cell, width in zip(line[2:8], widths[2:8], strict=True)]
        text.append("  ".join([*cells, line[8]]).rstrip())
    return "\n".join([text[0], "-" * len(text[0]), *text[1:]])
