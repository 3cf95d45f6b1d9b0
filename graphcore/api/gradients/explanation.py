"""Explanations of gradients, as data and as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

import msgspec

from graphcore.passes.gradients.explanation.paths import MOST_COUNTED
from graphcore.source import SourceLocation
from graphcore.support.shown import html_text, shown

_T = TypeVar("_T")
_MOST_ROWS: Final = 40
_MOST_NAMES: Final = 16
"""Lists of more rows, and ways with more names, are shown by their ends."""


class GradientCut(msgspec.Struct, frozen=True, kw_only=True):
    """A place where gradients stop.

    Attributes:
        kind: "no path", "control only", "reversed", "state", "dtype", "shape only", "resource", "not differentiable", "stop_gradient",
            "stop_gradients", "not registered", "forbidden", "inside a function", "custom gradient" or "dropped"; "not finite"
            where a gradient becomes NaN or infinite; "alias" for a tensor that shares the memory of a parameter.
        node, op, source: the responsible node and the line that made it; "" and None if there is no path at all.
        reason: the reason in words; a sentence with the node as its subject.
        path: the names of the nodes from x to y through the cut; omitted after a million names in all.
    """

    kind: str
    node: str
    op: str
    reason: str
    source: SourceLocation | None = None
    path: tuple[str, ...] = ()

    def __str__(self) -> str:
        subject = f"'{self.node}' " if self.node else ""
        where = f"  [{self.source}]" if self.source is not None else ""
        path_line = f"\n      {_path_text(self.path)}" if len(self.path) > 1 else ""
        return f"{self.kind}: {subject}{self.reason}{where}{path_line}"


class BackwardNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node of the backward pass: name, op, and the corresponding node of the gradient function's body."""

    name: str
    op: str
    body_node: str


class GradientStep(msgspec.Struct, frozen=True, kw_only=True):
    """A forward node on the path of the gradient, and its backward nodes.

    Attributes:
        node, op, source: the forward node and the line that made it.
        inputs: the input slots through which the gradient continues towards x.
        backward: the nodes that compute it; empty if the gradient is passed on unchanged.
        is_tried: False if they are not known, since the explanation was asked for within a body that is being built.
    """

    node: str
    op: str
    inputs: tuple[int, ...]
    backward: tuple[BackwardNode, ...]
    source: SourceLocation | None = None
    is_tried: bool = True


class GradientPart(msgspec.Struct, frozen=True, kw_only=True):
    """A term of a sum of gradients: its tensor, forward node and input slot ("" for y's seed)."""

    gradient: str
    node: str
    input: int


class GradientSum(msgspec.Struct, frozen=True, kw_only=True):
    """A tensor with several uses: its gradient is the sum of the contributions of each use.

    Attributes:
        tensor: the forward tensor.
        gradient: the sum.
        parts: the terms.
    """

    tensor: str
    gradient: str
    parts: tuple[GradientPart, ...]


class GradientExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """The explanation of the gradient of `y` with respect to `x`. Its text names nodes, cells and lines.

    Attributes:
        y, x: the tensors.
        gradient: the name of the gradient tensor, None if there is none.
        kind: its dtype and shape.
        built: True if the graph contains it under that name, False if `gc.gradients(y, x)` would create it.
        is_zero: True if it is known to be zero for all feeds, or for the values of the run.
        of_values: True if it was computed in a run, as gradients of PyTorch are.
        error: the error of `gc.gradients(y, x)`, "" if there is none.
        path_count: the number of paths from x to y along which it flows; 10**18 stands for that many and more.
        paths: the shortest of them, as node names from x to y.
        steps: the forward nodes on these paths, from y to x, each with its backward nodes.
        sums: the tensors with several contributions.
        cuts: the paths from x to y along which it does not flow; all of them if it is None.
        notes: sentences beside these.
    """

    y: str
    x: str
    gradient: str | None = None
    kind: str = ""
    built: bool = False
    is_zero: bool = False
    of_values: bool = False
    error: str = ""
    path_count: int = 0
    paths: tuple[tuple[str, ...], ...] = ()
    steps: tuple[GradientStep, ...] = ()
    sums: tuple[GradientSum, ...] = ()
    cuts: tuple[GradientCut, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_none(self) -> bool:
        """True iff `gc.gradients(y, x)` returns None for this x."""
        return self.gradient is None and not self.error

    def __repr__(self) -> str:
        lines = [self._heading()]
        lines += _aligned(_ends([(step.node, step.op, *reversed(_became(step))) for step in self.steps]))
        lines += [f"  {line}" for line in _ends([line for item in self.sums for line in _sum_lines(item)])]
        lines += [f"  along {_path_text(path)}" for path in self.paths]
        bad = [cut for cut in self.cuts if cut.kind == "not finite"]
        others = [cut for cut in self.cuts if cut.kind != "not finite"]
        lines += ["  it is not finite since:", *[f"  {cut}" for cut in bad]] if bad else []
        if others and self.gradient is not None:
            lines.append("  it is zero since:" if self.is_zero and self.of_values else "  on other ways it is cut:")
        lines += [f"  {cut}" for cut in _ends(others)]
        lines += [f"  {note}" for note in self.notes]
        return shown("\n".join(lines))

    def _repr_html_(self) -> str:
        parts = [f"<p>{html_text(self._heading())}</p>"]
        if self.steps:
            rows = [(step.node, step.op, *_became(step)) for step in self.steps]
            parts.append(_table(("forward node", "op", "backward nodes", "made in"), rows))
        if self.sums:
            rows = [(item.tensor, item.gradient, part.gradient, _origin(part)) for item in self.sums for part in item.parts]
            parts.append(_table(("used several times", "sum", "contribution", "from"), rows))
        if self.cuts:
            rows = [(cut.kind, cut.node, cut.reason, "" if cut.source is None else str(cut.source)) for cut in self.cuts]
            parts.append(_table(("cut", "node", "why", "made in"), rows))
        parts += [f"<p>{html_text(note)}</p>" for note in self.notes]
        return "".join(parts)

    def _heading(self) -> str:
        what = f"the gradient of '{self.y}' by '{self.x}'"
        if self.error:
            return f"{what} is an error: {self.error}"
        if self.gradient is None:
            return f"{what} is None"
        least = "at least " if self.path_count == MOST_COUNTED else ""
        count = "1 path" if self.path_count == 1 else f"{least}{self.path_count:,} paths"
        name = f"'{self.gradient}'" if self.built else f"'{self.gradient}' (not built yet)"
        zero = f"; it is zero {'for these values' if self.of_values else 'whatever is fed'}" if self.is_zero else ""
        return f"{what} is {name} {self.kind}, along {count}{zero}"


def _became(step: GradientStep) -> tuple[str, str]:
    names = [node if isinstance(node, _Omitted) else f"{node.name} ({node.op})" for node in _ends(step.backward, _MOST_NAMES)]
    became = ", ".join(map(str, names)) or ("passed on as it is" if step.is_tried else "differentiated in the body")
    return f"-> {became}", "" if step.source is None else step.source.where


def _origin(part: GradientPart) -> str:
    return f"input {part.input} of '{part.node}'" if part.node else "y itself"


class _Omitted(msgspec.Struct, frozen=True):
    """Stands for the omitted middle of a long list."""

    count: int

    def __str__(self) -> str:
        return f"... {self.count:,} more ..."


def _ends(items: Sequence[_T], most: int = _MOST_ROWS) -> list[_T | _Omitted]:
    """The list itself; of more than `most` items the first half and the last half."""
    if len(items) <= most:
        return list(items)
    half = most // 2
    return [*items[:half], _Omitted(len(items) - 2 * half), *items[-half:]]


def _path_text(path: Sequence[str]) -> str:
    return " -> ".join(map(str, _ends(path, _MOST_NAMES)))


def _sum_lines(item: GradientSum) -> list[str]:
    parts = [part if isinstance(part, _Omitted) else f"{part.gradient}  from {_origin(part)}" for part in _ends(item.parts)]
    return [f"gradients of '{item.tensor}' are summed: {item.gradient}", *[f"    {part}" for part in parts]]


def _aligned(rows: Sequence[Sequence[str] | _Omitted]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*[row for row in rows if not isinstance(row, _Omitted)], strict=True)]
    lines = []
    for row in rows:
        cells = [str(row)] if isinstance(row, _Omitted) else [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        lines.append("  " + "  ".join(cells).rstrip())
    return lines


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    left = ' style="text-align: left; vertical-align: top"'
    body = "".join([_row(row, left, len(head)) for row in _ends(rows)])
    return f"<table><thead><tr>{''.join([f'<th{left}>{html_text(name)}</th>' for name in head])}</tr></thead><tbody>{body}</tbody></table>"


def _row(row: Sequence[str] | _Omitted, left: str, columns: int) -> str:
    if isinstance(row, _Omitted):
        return f'<tr><td colspan="{columns}"{left}>{row}</td></tr>'
    return "<tr>" + "".join([f"<td{left}>{_breakable(cell)}</td>" for cell in row]) + "</tr>"


def _breakable(text: str) -> str:
    """Allow line breaks after slashes, so that narrow tables show their last column."""
    return html_text(text).replace("/", "/<wbr>")
