"""Why a shape is what it is: records that say where each number entered and on which way it came. Plain data, to be shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from graphcore.source import SourceLocation

FactKind = Literal["rank", "dimension", "held", "value", "element", "requirement"]
How = Literal["literal", "passed", "computed", "unknown", "given", "required", "cut"]
_SHOWN_STEPS = 8
"""What a text shows of a long way: its beginning and its end."""


class Fact(msgspec.Struct, frozen=True):
    """Something that is or could be known of a tensor before any run.

    Args:
        tensor: its name, `node:index`.
        kind: its rank, the size of a dimension, the size of a dimension of what a handle stands for, its value, an element of that; or
            what the op of its node asks for.
        index: the dimension or element; -1 where there is only one.
    """

    tensor: str
    kind: FactKind
    index: int = -1

    def __str__(self) -> str:
        if self.kind == "dimension":
            return f"dimension {self.index} of `{self.tensor}`"
        if self.kind == "held":
            return f"dimension {self.index} of what `{self.tensor}` stands for"
        if self.kind == "element":
            return f"element {self.index} of the value of `{self.tensor}`"
        if self.kind == "requirement":
            return f"what `{self.tensor.rpartition(':')[0]}` requires"
        return f"the {self.kind} of `{self.tensor}`"


class Origin(msgspec.Struct, frozen=True):
    """Why one fact holds.

    Args:
        fact: what is explained.
        size: the number, None where it is known only when the graph runs.
        how: "literal": it was written there; "passed": it is a fact about an input; "computed": it follows from several;
            "unknown": nothing tells it before the graph runs; "given": somebody set it; "required": the op itself asks for it;
            "cut": the way goes on, but is not shown.
        node, op: where that was decided.
        text: the same in words, without the place.
        source: the line of user code that made the node.
        because: what it follows from.
        merged_with: the facts that were found to be the same number there.
        value: the value as text where the fact is about one; the name of an unknown size that has one.
        left_out: for how many nodes of a long way this one stands; 0 where it stands for itself.
    """

    fact: Fact
    size: int | None
    how: How
    node: str
    op: str
    text: str
    source: SourceLocation | None = None
    because: tuple[Origin, ...] = ()
    merged_with: tuple[Fact, ...] = ()
    value: str = ""
    left_out: int = 0

    @property
    def statement(self) -> str:
        """`dimension 1 of `W:0` = 10`."""
        if self.fact.kind == "requirement":
            return str(self.fact)
        return f"{self.fact} = {self.number}"

    @property
    def number(self) -> str:
        """The number, or the whole value; `?` where it is known only when the graph runs."""
        return self.value or ("?" if self.size is None else str(self.size))

    @property
    def where(self) -> str:
        """`cell In [3], line 2`, empty if the node was made by no line of code."""
        return "" if self.source is None else self.source.where

    def walk(self) -> Iterator[Origin]:
        """This one and all that it follows from, nearest first."""
        pending = [self]
        while pending:
            current = pending.pop()
            yield current
            pending.extend(reversed(current.because))

    @property
    def roots(self) -> tuple[Origin, ...]:
        """Where the numbers entered: what follows from nothing else."""
        return tuple([origin for origin in self.walk() if not origin.because])

    def lines(self, indent: str = "") -> list[str]:
        """The chain in words, one step a line; what follows from several things is indented below."""
        steps = [self]
        while len(steps[-1].because) == 1:
            steps.append(steps[-1].because[0])
        shown: list[Origin | None] = [*steps]
        if len(steps) > _SHOWN_STEPS:
            shown = [*steps[: _SHOWN_STEPS // 2], None, *steps[-_SHOWN_STEPS // 2 :]]
        found: list[str] = []
        for step in shown:
            if step is None:
                hidden = steps[_SHOWN_STEPS // 2 : -_SHOWN_STEPS // 2]
                found.append(f"{indent}... {sum(max(1, each.left_out) for each in hidden)} more nodes pass it on ...")
                continue
            found.append(indent + step.text + (f" ({step.source})" if step.source is not None and not step.because else ""))
            found += [f"{indent}  merged with {fact} at `{step.node}`" for fact in step.merged_with]
        for origin in steps[-1].because:
            found.append(f"{indent}  {origin.statement}")
            found += origin.lines(indent + "    ")
        return found

    def __str__(self) -> str:
        return "\n".join([self.statement, *self.lines("  ")])


class ShapeExplanation(msgspec.Struct, frozen=True):
    """Why a tensor has its shape.

    Args:
        tensor, dtype, shape: the tensor, as text.
        rank: why it has that many dimensions.
        dimensions: one a dimension; none if the rank is unknown.
        held: where the tensor is a handle, the dimensions of what it stands for.
        error: what is wrong with the tensor's node, empty if nothing is.
        chains: where the numbers that clash there came from.
    """

    tensor: str
    dtype: str
    shape: str
    rank: Origin
    dimensions: tuple[Origin, ...] = ()
    held: tuple[Origin, ...] = ()
    error: str = ""
    chains: tuple[Origin, ...] = ()

    @property
    def text(self) -> str:
        """Dimension by dimension, in words."""
        found = [f"{self.tensor} {self.dtype} {self.shape}"]
        if self.error:
            found.append(f"  {self.error}")
            found += [f"  {line}" for chain in self.chains for line in str(chain).splitlines()]
        parts = [*self.dimensions, *self.held] or [self.rank]
        for origin in parts:
            what = "rank" if origin.fact.kind == "rank" else f"dimension {origin.fact.index}"
            what += " of what it stands for" if origin.fact.kind == "held" else ""
            found.append(f"  {what} = {origin.number}")
            found += origin.lines("    ")
        return "\n".join(found)

    def as_data(self) -> dict[str, object]:
        """The whole as dicts, lists, strings and numbers."""
        built: dict[str, object] = msgspec.to_builtins(self)
        return built

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        escaped = self.text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return f'<pre style="font-family: monospace; white-space: pre-wrap; word-break: normal; overflow-wrap: anywhere">{escaped}</pre>'
