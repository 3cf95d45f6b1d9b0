"""A recorded run as a few lines of text: its duration, and the slowest nodes."""

from __future__ import annotations

from typing import Final

from graphcore.runtime import DeviceStepStats, RunMetadata, StepStats, Trace
from graphcore.runtime.core.node_times import without_repeats

_MOST_ROWS: Final = 12
_UNITS: Final = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns"))


def duration(ns: int) -> str:
    """`22.6 ms`: three digits in the largest unit that gives at least 1."""
    size, unit = next(((size, unit) for size, unit in _UNITS if ns >= size), _UNITS[-1])
    return f"{ns / size:.3g} {unit}" if ns < 999.5 * size else f"{ns / size:,.0f} {unit}"


def trace_text(trace: Trace) -> str:
    """The line of `repr`, and the duration of each node, the longest first."""
    return "\n".join([repr(trace), *_rows(trace.step_stats(), {node.name: node.op for node in trace.nodes})])


def stats_text(stats: StepStats) -> str:
    """The duration of each node, the longest first; abbreviated for a notebook."""
    entries = sum(len(device.node_stats) for device in stats.dev_stats)
    return "\n".join(
        [
            f"<gc.StepStats {entries:,} node runs on {', '.join(map(_device, stats.dev_stats)) or 'no device'}>",
            *_rows(stats, {}),
        ]
    )


def _device(stats: DeviceStepStats) -> str:
    return f"{stats.device} (simulated)" if stats.simulated else stats.device


def metadata_text(metadata: RunMetadata) -> str:
    """The trace in the metadata, or the way to get one."""
    if metadata.trace is None:
        return "<gc.RunMetadata without a trace: run with options=gc.RunOptions(trace=True)>"
    return "<gc.RunMetadata with a trace>\n" + trace_text(metadata.trace)


def _rows(stats: StepStats, ops: dict[str, str]) -> list[str]:
    taken: dict[str, list[int]] = {}
    for device in stats.dev_stats:
        for entry in device.node_stats:
            name = f"{without_repeats(entry.call)} > {entry.node_name}" if entry.call else entry.node_name
            total = taken.setdefault(name, [0, 0, 0])
            total[0] += entry.op_end_rel_nanos - entry.op_start_rel_nanos
            total[1] += 1
            total[2] += entry.output_bytes
    ranked = sorted(taken.items(), key=lambda item: -item[1][0])
    shown = ranked[:_MOST_ROWS]
    wide = max((len(name) for name, _ in shown), default=0)
    rows = [
        f"  {name:{wide}}  {duration(ns):>8}  {f'{size:,} B':>10}  {ops.get(name, '')}{f'{times:,} times' if times > 1 else ''}".rstrip()
        for name, (ns, times, size) in shown
    ]
    if len(ranked) > len(shown):
        rest = sum(total[0] for _, total in ranked[len(shown) :])
        rows.append(f"  and {len(ranked) - len(shown):,} more nodes, {duration(rest)} in all")
    return rows
