"""The values lens: the statistics of a recorded run on boxes, and its health."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

import numpy as np

from graphcore.frontends.record import foreign_of, is_earlier
from graphcore.runtime.core.node_times import without_repeats
from graphcore.runtime.core.tracing import last_trace
from widgets.inspection import Values
from widgets.recorded_values import GradientMagnitude, HealthRow, RunHealth, RunValues
from widgets.scene.run_names import RunNames, run_names, split_name
from widgets.scene.types import LensMark
from widgets.scene.values import page_of
from widgets.scene.words import counted

if TYPE_CHECKING:
    from graphcore.graph import Graph, Node
    from graphcore.runtime import Trace, ValueRecords
    from graphcore.runtime.core.tensor_stats import Detail, TensorStats

CLASSES: Final = ("NaN", "Inf", "all zero", "beyond 10,000", "finite")
"""The classes of values, the worst first."""
TONES: Final = (7, 2, 5, 4, 1)
NOT_RECORDED: Final = "No values are recorded: use %graph values, or options=gc.RunOptions(values=True)"
NOT_RUN: Final = "No values are recorded: %graph values model(x), or gc.run(model, x), runs it once with its values"
EARLIER: Final = "The values of the last run are of an earlier version of the model: %graph values records those of this one"
WAITING: Final = "No values are recorded yet: the next session.run records them"
_HUGE: Final = 10_000
_MOST_RUNS: Final = 12
_MOST_ROWS: Final = 100
_LAST: Final = len(CLASSES) - 1
_WEIGHTS: Final = frozenset({"constant", "variable"})


class _Tensor:
    """The statistics of one output of a node over all its runs."""

    def __init__(self) -> None:
        self.runs: list[TensorStats] = []

    @property
    def kind(self) -> int:
        """The place of its class in `CLASSES`."""
        if any(one.nan for one in self.runs):
            return 0
        if any(one.inf for one in self.runs):
            return 1
        magnitudes = [one.magnitude for one in self.runs if one.magnitude is not None]
        if magnitudes and max(magnitudes) == 0 and self.runs[-1].size > 1:
            return 2
        return 3 if magnitudes and max(magnitudes) >= _HUGE else _LAST

    @property
    def words(self) -> str:
        """The statistics of all runs together, in words."""
        last = self.runs[-1]
        if len(self.runs) == 1:
            return last.words
        lows, highs = (
            [value for value in column if value is not None] for column in zip(*[(one.min, one.max) for one in self.runs], strict=True)
        )
        bad = [
            f"{count:,} {what}"
            for count, what in ((sum(one.nan for one in self.runs), "NaN"), (sum(one.inf for one in self.runs), "Inf"))
            if count
        ]
        span = [f"{min(lows):.4g} to {max(highs):.4g}"] if lows and highs else []
        return ", ".join([*bad, *span, f"{len(self.runs):,} runs"])


class RecordedValues:
    """The recorded values of a graph, by the names of nodes in views."""

    def __init__(self, values: RunValues) -> None:
        self.values = values
        names = [values.prefixes[place] + name for place, name in zip(values.places, values.names, strict=True)]
        self._rows = {name: row for row, name in enumerate(names)}

    def row_of(self, node: Node) -> int | None:
        """The row of a node, None if it has no values."""
        return self._rows.get(node.name)

    def mark(self, nodes: Sequence[Node]) -> LensMark | None:
        """The mark of a box with these nodes, None if none has values."""
        rows = [row for row in map(self.row_of, nodes) if row is not None]
        if not rows:
            return None
        classes = Counter(self.values.classes[row] for row in rows)
        worst = min(classes)
        if len(nodes) == 1:
            return LensMark(text=self.values.words[rows[0]], tone=TONES[worst])
        return LensMark(text=", ".join([f"{CLASSES[kind]} × {classes[kind]:,}" for kind in sorted(classes)]), tone=TONES[worst])


_recorded: WeakKeyDictionary[Graph, tuple[Trace, int, RecordedValues | None]] = WeakKeyDictionary()


def recorded_values(graph: Graph) -> RecordedValues | None:
    """The values of the last recorded run of a graph's sessions, None if there are none."""
    trace = last_trace(graph)
    if trace is None:
        return None
    cached = _recorded.get(graph)
    if cached is None or cached[0] is not trace or cached[1] != graph.version:
        values = None if trace.values is None else RecordedValues(run_values(graph, trace, trace.values))
        cached = _recorded[graph] = (trace, graph.version, values)
    return cached[2]


def run_values(graph: Graph, trace: Trace, records: ValueRecords) -> RunValues:
    """The statistics of a recorded run, by the names of nodes in views."""
    names = run_names(graph, trace)
    nodes: dict[str, dict[int, _Tensor]] = {}
    for one in records:
        name, is_shown = names.name_of(without_repeats(one.call), one.node) if one.call else (one.node, True)
        if is_shown:
            nodes.setdefault(name, {}).setdefault(one.output, _Tensor()).runs.append(one)
    for node in graph.op_nodes():  # those without a kernel have the values of others
        if node.name in nodes:
            continue
        for tensor in node.outputs:
            summary = records.find(tensor)
            if summary is not None:
                nodes.setdefault(node.name, {}).setdefault(tensor.index, _Tensor()).runs.append(summary)
    prefixes: dict[str, int] = {}
    split = [split_name(name) for name in nodes]
    tensors = list(nodes.values())
    pages = {row: page for row, outputs in enumerate(tensors) if (page := _page(outputs)) is not None}
    return RunValues(
        health=_health(graph, records, names, nodes),
        places=[prefixes.setdefault(prefix, len(prefixes)) for prefix, _ in split],
        prefixes=list(prefixes),
        names=[name for _, name in split],
        classes=[min(tensor.kind for tensor in outputs.values()) for outputs in tensors],
        words=["; ".join([outputs[output].words for output in sorted(outputs)]) for outputs in tensors],
        rows=[_rows(outputs) for outputs in tensors],
        details=pages,
    )


def _rows(outputs: dict[int, _Tensor]) -> list[tuple[str, str]]:
    rows = []
    for output in sorted(outputs):
        tensor = outputs[output]
        last = tensor.runs[-1]
        rows.append((f"output {output}", f"{last.dtype} [{','.join(map(str, last.shape))}]: {tensor.words}"))
        if len(tensor.runs) == 1:
            continue
        for number, one in list(enumerate(tensor.runs))[-_MOST_RUNS:]:
            turn = f"iteration {', '.join(map(str, one.iterations))}" if one.frame else f"run {number + 1}"
            rows.append((turn, one.words))
    return rows


def _page(outputs: dict[int, _Tensor]) -> Values | None:
    """The full statistics of the largest output that has any."""
    detailed = [(output, outputs[output].runs[-1]) for output in sorted(outputs) if outputs[output].runs[-1].detail is not None]
    if not detailed:
        return None
    output, last = max(detailed, key=lambda one: one[1].size)
    return None if last.detail is None else _detail_page(output, last, last.detail)


def _detail_page(output: int, last: TensorStats, detail: Detail) -> Values:
    notes = [f"Output {output} of the last recorded run"]
    if detail.sampled:
        notes.append(f"std, zeros and histogram are sampled from {detail.sampled:,} of {last.size:,} values")
    facts = [
        (what, f"{value:.6g}")
        for what, value in (("min", last.min), ("max", last.max), ("mean", last.mean), ("std", detail.std))
        if value is not None
    ]
    facts += [("NaN", f"{last.nan:,}"), ("Inf", f"{last.inf:,}")]
    if detail.zeros is not None:
        facts.append(("zeros", f"{detail.zeros:.1%}"))
    shape = f"[{','.join(map(str, last.shape))}]"
    page = None if detail.values is None else page_of(detail.values, last.dtype, "; ".join(notes))
    return Values(
        note="; ".join(notes),
        dtype=last.dtype,
        shape=shape,
        statistics=facts,
        bins=list(detail.bins),
        rows=[] if page is None else page.rows,
        total=0 if page is None else len(page.rows),
        page=0 if page is None else page.page,
        picture=_grey(detail),
        pictures=detail.pictures,
    )


def _grey(detail: Detail) -> list[list[int]]:
    """The picture of a tensor in grey levels, 0 to 255."""
    picture = detail.picture
    if picture is None:
        return []
    finite = picture[np.isfinite(picture)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    scale = 255 / (high - low) if high > low else 0.0
    levels = ((np.nan_to_num(picture, nan=low, posinf=high, neginf=low) - low) * scale).clip(0, 255).astype(int)
    return [[int(level) for level in row] for row in levels]


def _health(graph: Graph, records: ValueRecords, names: RunNames, nodes: dict[str, dict[int, _Tensor]]) -> RunHealth:
    def row(one: TensorStats, cause: str = "") -> HealthRow:
        text = f"{one.words}; {cause}" if cause else one.words
        return HealthRow(node=names.name_of(without_repeats(one.call), one.node)[0], text=text)

    first = records.first_bad
    bad = [name for name, outputs in nodes.items() if min(tensor.kind for tensor in outputs.values()) <= 1]
    zeros = [name for name, outputs in nodes.items() if all(tensor.kind == 2 for tensor in outputs.values()) and _is_computed(graph, name)]
    magnitudes = [
        GradientMagnitude(
            node=one.node,
            depth=one.depth,
            text="no finite values" if one.value is None else f"{one.value:.4g}",
            level=math.log10(one.value) if one.value else None,
            bad=not one.is_finite,
            weight=one.weight,
        )
        for one in records.gradient_magnitudes(graph)
    ]
    return RunHealth(
        summary=_summary(first is not None and f"{first.tensor.name}: {first.tensor.words}", len(bad), len(zeros)),
        first=None if first is None else row(first.tensor, first.cause),
        inputs=[] if first is None else [row(one) for one in first.inputs],
        bad=[_said(name, nodes[name]) for name in bad[:_MOST_ROWS]],
        zeros=[_said(name, nodes[name]) for name in zeros[:_MOST_ROWS]],
        more_bad=max(0, len(bad) - _MOST_ROWS),
        more_zeros=max(0, len(zeros) - _MOST_ROWS),
        magnitudes=magnitudes,
    )


def _is_computed(graph: Graph, name: str) -> bool:
    """True for a node that computes floating-point values: zeros of constants and variables are no fault."""
    node = graph.find(name)
    if node is None:
        return ":" in name
    if node.registration.is_alias:  # such as the reads of variables
        return False
    return bool(node.inputs) and node.registration.traits.role not in _WEIGHTS and any(t.base.is_floating for t in node.output_types)


def _said(name: str, outputs: dict[int, _Tensor]) -> HealthRow:
    worst = min(outputs, key=lambda output: outputs[output].kind)
    return HealthRow(node=name, text=outputs[worst].words)


def _summary(first: str | bool, bad: int, zeros: int) -> str:
    parts = [f"The first NaN or Inf: {first}. {counted(bad, 'node')} with NaN or Inf" if first else "All values are finite"]
    if zeros:
        parts.append(f"{counted(zeros, 'computed node')} with zeros only")
    return "; ".join(parts)


def values_note(graph: Graph) -> str:
    """The reason if no values are recorded."""
    if foreign_of(graph) is not None:
        return EARLIER if is_earlier.of(graph) else NOT_RUN
    return WAITING if graph.recording and graph.recording.values else NOT_RECORDED
