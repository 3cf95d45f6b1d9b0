"""Origins of shapes: records of the place and the path of each number. Plain data for display."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Literal

import msgspec

from graphcore.source import SourceLocation
from graphcore.support.shown import shown

FactKind = Literal["rank", "dimension", "held", "value", "element", "requirement"]
How = Literal["literal", "passed", "computed", "unknown", "given", "required", "cut"]
_SHOWN_STEPS = 8
"""The steps of a long way that a text shows: its beginning and its end."""
_MOST_LINES = 400
"""The most lines of one origin in a text."""
_MOST_LEVELS = 20
"""The deepest indentation of a text."""


class Fact(msgspec.Struct, frozen=True):
    """A fact about a tensor that is or could be known before a run.

    Args:
        tensor: its name, `node:index`.
        kind: the kind: rank, size of a dimension, size of a dimension behind a handle, value, element of a value; or
            a requirement of the node's op.
        index: the dimension or element; -1 if there is only one.
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


class Origin(msgspec.Struct, frozen=True, eq=False):
    """The reason for one fact. Origins are shared: a fact that several others depend on is one object.

    Args:
        fact: the fact.
        size: the number, None if it is known only at run time.
        how: "literal": written there; "passed": a fact about an input; "computed": from several facts;
            "unknown": not known before the run; "given": set by the user; "required": required by the op;
            "cut": the path continues, but is not shown.
        node, op: the node that decides it.
        text: the same in words, without the place.
        source: the line of user code that made the node.
        because: the origins of facts it depends on.
        merged_with: the facts found to be the same number there.
        value: the value as text for a fact about one; the name of a named unknown size.
        left_out: the number of omitted nodes of a long path that this one stands for; 0 for none.
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
        """The number, or the whole value; `?` if it is known only at run time."""
        return self.value or ("?" if self.size is None else str(self.size))

    @property
    def where(self) -> str:
        """`cell In [3], line 2`; "" if the node was made by no line of code."""
        return "" if self.source is None else self.source.where

    def walk(self) -> Iterator[Origin]:
        """Iterate over this origin and all its causes, nearest first, each once."""
        pending, met = [self], set[int]()
        while pending:
            current = pending.pop()
            if id(current) in met:
                continue
            met.add(id(current))
            yield current
            pending.extend(reversed(current.because))

    @property
    def roots(self) -> tuple[Origin, ...]:
        """The places where the numbers entered: origins without causes."""
        return tuple([origin for origin in self.walk() if not origin.because])

    def told_once(self) -> Origin:
        """This origin as a tree, in which shared parts have their causes at their first place only."""
        met: set[int] = set()

        def tree(origin: Origin) -> Origin:
            if not origin.because:
                return origin
            if id(origin) in met:
                return msgspec.structs.replace(origin, how="cut", text=f"{origin.text}, as above", because=(), merged_with=())
            met.add(id(origin))
            return msgspec.structs.replace(origin, because=tuple([tree(earlier) for earlier in origin.because]))

        return tree(self)

    def lines(self, indent: str = "") -> list[str]:
        """The chain in words, one step a line. Several causes are indented, and a shared part appears once."""
        lines: list[str] = []
        written: set[int] = set()
        pending: list[tuple[Origin, int]] = [(self, 0)]
        while pending and len(lines) < _MOST_LINES:
            origin, level = pending.pop()
            space = indent + "    " * min(level, _MOST_LEVELS)
            if level:
                above = ", as above" if id(origin) in written else ""
                lines.append(f"{space[:-2]}{origin.statement}{above}")
            if id(origin) in written:
                continue
            steps = _way(origin, written)
            lines += _way_lines(steps, space)
            last = steps[-1]
            if len(last.because) == 1:
                lines.append(f"{space}{last.because[0].statement}, as above")
            else:
                pending.extend((earlier, level + 1) for earlier in reversed(last.because))
        if pending:
            lines.append(f"{indent}... and {len(pending)} more, with what leads to them ...")
        return lines

    def __str__(self) -> str:
        return shown("\n".join([self.statement, *self.lines("  ")]))

    def __repr__(self) -> str:
        return str(self)


def _way(origin: Origin, written: set[int]) -> list[Origin]:
    """The steps from `origin` to the next fork, root or step in `told`; adds them to `told`."""
    steps = [origin]
    written.add(id(origin))
    while len(steps[-1].because) == 1 and id(steps[-1].because[0]) not in written:
        steps.append(steps[-1].because[0])
        if steps[-1].because:
            written.add(id(steps[-1]))
    return steps


def _way_lines(steps: Sequence[Origin], indent: str) -> list[str]:
    """One line a step; the middle of a long way is left out."""
    shown: list[Origin | None] = [*steps]
    if len(steps) > _SHOWN_STEPS:
        shown = [*steps[: _SHOWN_STEPS // 2], None, *steps[-_SHOWN_STEPS // 2 :]]
    lines: list[str] = []
    for step in shown:
        if step is None:
            hidden = steps[_SHOWN_STEPS // 2 : -_SHOWN_STEPS // 2]
            lines.append(f"{indent}... {sum(max(1, skipped.left_out) for skipped in hidden)} more nodes pass it on ...")
            continue
        lines.append(indent + step.text + (f" ({step.source})" if step.source is not None and not step.because else ""))
        lines += [f"{indent}  merged with {fact} at `{step.node}`" for fact in step.merged_with]
    return lines


class ShapeExplanation(msgspec.Struct, frozen=True):
    """The explanation of a tensor's shape.

    Args:
        tensor, dtype, shape: the tensor, as text.
        rank: the origin of its rank.
        dimensions: one origin for each dimension; () if the rank is unknown.
        held: for a handle, the dimensions of the resource.
        error: the error of the tensor's node, "" if there is none.
        chains: the origins of the numbers that clash there.
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
        """The explanation in words, by dimension."""
        lines = [f"{self.tensor} {self.dtype} {self.shape}"]
        if self.error:
            lines.append(f"  {self.error}")
            lines += [f"  {line}" for chain in self.chains for line in str(chain).splitlines()]
        parts = [*self.dimensions, *self.held] or [self.rank]
        for origin in parts:
            what = "rank" if origin.fact.kind == "rank" else f"dimension {origin.fact.index}"
            what += " of what it stands for" if origin.fact.kind == "held" else ""
            lines.append(f"  {what} = {origin.number}")
            lines += origin.lines("    ")
        return shown("\n".join(lines))

    def as_data(self) -> dict[str, object]:
        """The explanation as dicts, lists, strings and numbers. A part that several origins lead to is whole once."""
        trees = {
            "rank": self.rank.told_once(),
            "dimensions": tuple([origin.told_once() for origin in self.dimensions]),
            "held": tuple([origin.told_once() for origin in self.held]),
            "chains": tuple([origin.told_once() for origin in self.chains]),
        }
        built: dict[str, object] = msgspec.to_builtins(msgspec.structs.replace(self, **trees))
        return built

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        """The display in notebooks."""
        escaped = escape(self.text, quote=False)
        return f'<pre style="font-family: monospace; white-space: pre-wrap; word-break: normal; overflow-wrap: anywhere">{escaped}</pre>'
