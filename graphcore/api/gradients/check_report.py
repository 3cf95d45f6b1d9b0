"""The results of comparing gradients with central differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from graphcore.shapes import Shape
from graphcore.support.shown import html_text


class InputCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The comparison of one gradient with central differences.

    Attributes:
        name, dtype, shape: the input; its dtype in the graph, the shape of its value.
        has_gradient: False if `gc.gradients` returns None, which is compared as zeros.
        checked, elements: the number of elements compared, and of all elements.
        error: the largest relative error; differences within rounding count as none.
        worst: the index of that element, None if there are no elements.
        gradient, difference: the two values there.
        passed: True if the error is within the tolerance.
        kinks: the number of elements at which the function has a kink, so that there is no derivative to compare with.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    has_gradient: bool
    checked: int
    elements: int
    error: float
    worst: tuple[int, ...] | None
    gradient: complex | float
    difference: complex | float
    passed: bool
    kinks: int = 0


class GradientCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `gc.check_gradient`; true iff all inputs passed.

    Attributes:
        y: the differentiated tensor.
        inputs: one row for each input.
        delta: the step of the differences, for elements of size 1 and below.
        tolerance: the largest relative error that passes.
        dtype: the floating dtype of `y` in the computation.
    """

    y: str
    inputs: tuple[InputCheck, ...]
    delta: float
    tolerance: float
    dtype: str

    @property
    def passed(self) -> bool:
        """True iff every input's error is within the tolerance."""
        return all(row.passed for row in self.inputs)

    @property
    def error(self) -> float:
        """The largest relative error of all inputs."""
        return max([row.error for row in self.inputs])

    def __bool__(self) -> bool:
        return self.passed

    def __repr__(self) -> str:
        rows = [_HEADER, *[_cells(row) for row in self.inputs]]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([self._heading(), *[f"  {line}" for line in lines], *self._remarks()])

    def _repr_html_(self) -> str:
        head = _html_row(_HEADER, "th")
        body = "".join([_html_row(_cells(row), "td") for row in self.inputs])
        remarks = "".join([f"<p>{html_text(line)}</p>" for line in self._remarks()])
        return f"<p>{html_text(self._heading())}</p><table><thead>{head}</thead><tbody>{body}</tbody></table>{remarks}"

    def _remarks(self) -> list[str]:
        kinks = sum([row.kinks for row in self.inputs])
        lines = []
        if kinks:
            lines.append(
                f"{kinks:,} of the elements are at a kink, where the slope changes at once, as that of relu does at 0: there is no derivative "
                "to compare with, and the gradient lies between the slopes of both sides"
            )
        if not self.passed and self.dtype != "double":
            lines.append(
                f"differences in {self.dtype} take large steps, which may reach beyond kinks (points where the slope changes at once, as that "
                "of relu does at 0); an op here takes no doubles, in which they are precise"
            )
        return lines

    def _heading(self) -> str:
        verdict = "passed" if self.passed else "FAILED"
        return f"gradient of {self.y} against central differences: {verdict} (delta {self.delta:g}, tolerance {self.tolerance:g}, {self.dtype})"


_HEADER = ("input", "dtype", "shape", "checked", "error", "", "worst at", "gradient", "difference")


def _cells(row: InputCheck) -> tuple[str, ...]:
    checked = f"{row.checked:,}" if row.checked == row.elements else f"{row.checked:,} of {row.elements:,}"
    return (
        row.name,
        row.dtype,
        str(Shape(row.shape)),
        checked,
        f"{row.error:.2g}",
        "ok" if row.passed else "WRONG",
        "" if row.worst is None else str(list(row.worst)),
        _number(row.gradient) if row.has_gradient else "None",
        _number(row.difference),
    )


def _number(value: Any) -> str:
    return f"{value:.6g}"


def _html_row(cells: Sequence[str], tag: str) -> str:
    # Wide tables scroll; a number broken over two lines would be read as two.
    return "<tr>" + "".join([f'<{tag} style="white-space: nowrap">{html_text(cell)}</{tag}>' for cell in cells]) + "</tr>"
