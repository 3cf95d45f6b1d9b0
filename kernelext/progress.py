"""Progress of a loop with recorded values, drawn below the cell and kept in the saved notebook."""

from __future__ import annotations

import base64
import math
import time
from collections.abc import Iterator
from typing import Any, ClassVar, Final

import numpy as np
from IPython.display import DisplayHandle, display

from graphcore.errors import InvalidArgumentError
from graphcore.support.shown import html_text, shown
from kernelext.curve import curve_svg
from widgets.render.static_display import THEMES

_SECONDS_BETWEEN_PICTURES: Final = 0.2


class Progress:
    """Counts `steps` steps and draws the recorded values.

        progress = Progress(300, title="training")
        for step in progress:
            _, value = session.run([train, loss], feeds)
            progress.record(loss=value)

    In the loop it also draws the scalars that a `gc.summary.FileWriter` writes. Drawing is limited to five pictures a second, so that a fast loop stays fast. A loop that is left early or fails keeps its last picture.

    Args:
        steps: the number of steps.
        title: a word or two.

    Raises:
        InvalidArgumentError: a negative number of steps.
    """

    running: ClassVar[list[Progress]] = []
    """Those whose loops are under way, the innermost last."""

    def __init__(self, steps: int, title: str = "progress") -> None:
        if steps < 0:
            raise InvalidArgumentError(f"Progress needs a number of steps >= 0, got {steps}")
        self.steps = steps
        self.title = title
        self.done = 0
        self.series: dict[str, list[tuple[int, float]]] = {}
        self.ended = False
        self._started = 0.0
        self._drawn = 0.0
        self._handle: DisplayHandle | None = None

    def __iter__(self) -> Iterator[int]:
        self._begin()
        Progress.running.append(self)
        try:
            for step in range(self.steps):
                self.done = step
                yield step
                self.done = step + 1
                self._draw_if_due()
        finally:
            Progress.running.remove(self)
            self._end()

    def _begin(self) -> None:
        self.done = 0
        self.series = {}
        self.ended = False
        self._started = time.monotonic()
        self._show()

    def _show(self) -> None:
        self._handle = display(self, display_id=True)
        self._drawn = time.monotonic()

    def _end(self) -> None:
        self.ended = True
        self._draw()

    def __len__(self) -> int:
        return self.steps

    def record(self, **values: Any) -> None:
        """Record values of this step: scalars, or arrays of one element."""
        for name, value in values.items():
            self.series.setdefault(name, []).append((self.done, float(np.asarray(value).item())))

    def _draw_if_due(self) -> None:
        if time.monotonic() - self._drawn >= _SECONDS_BETWEEN_PICTURES:
            self._draw()

    def _draw(self) -> None:
        self._drawn = time.monotonic()
        if self._handle is not None:
            self._handle.update(self)

    # ---- pictures ---------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return shown(" · ".join([f"{self.title}: {self._count()}", *self._latest()]))

    def _count(self) -> str:
        if self.ended and self.done < self.steps:
            return f"stopped at step {self.done} of {self.steps}"
        return f"{self.done} of {self.steps} steps, {self._time()}"

    def _time(self) -> str:
        spent = time.monotonic() - self._started
        if self.ended or not self.done:
            return f"{spent:.1f} s"
        return f"{spent / self.done * (self.steps - self.done):.1f} s left"

    def _latest(self) -> list[str]:
        return [_describe(name, points) for name, points in self.series.items() if points]

    def _repr_html_(self) -> str:
        latest = "".join(f" · {html_text(text)}" for text in self._latest())
        html = (
            f'<div class="graphloupe-progress">{THEMES}{self._bar()}<div>{html_text(self.title)}: {html_text(self._count())}{latest}</div>'
        )
        if any(self.series.values()):
            svg = base64.b64encode(curve_svg(self.series, self.steps).encode()).decode()
            html += f'<img alt="{html_text(self._words())}" src="data:image/svg+xml;base64,{svg}" style="max-width:100%"/>'
        return html + "</div>"

    def _bar(self) -> str:
        return (
            f'<progress max="{max(self.steps, 1)}" value="{self.done}" style="width:100%;max-width:560px"'
            f' aria-label="{html_text(self.title)}"></progress>'
        )

    def _words(self) -> str:
        """The curves in words, for screen readers."""
        parts = []
        for name, points in self.series.items():
            finite = [value for _, value in points if math.isfinite(value)]
            if finite:
                parts.append(f"{name} from {finite[0]:.4g} to {finite[-1]:.4g}, lowest {min(finite):.4g}, highest {max(finite):.4g}")
        return f"Curves over {self.done} steps: " + "; ".join(parts)


def _describe(name: str, points: list[tuple[int, float]]) -> str:
    step, value = points[-1]
    if math.isfinite(value):
        return f"{name} {value:.4g}"
    first = next(at for at, earlier in points if not math.isfinite(earlier))
    return f"{name} is not finite since step {first}" if first < step else f"{name} is not finite"
