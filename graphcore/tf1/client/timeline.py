"""`Timeline` of TensorFlow 1: a recorded run as a file of `chrome://tracing`."""

from __future__ import annotations

import json
from typing import Any

from graphcore.errors import InvalidArgumentError

__all__ = ["Timeline"]


class Timeline:
    """A recorded run.

    Args:
        step_stats: `run_metadata.step_stats` after a run with `gc.RunOptions(trace_level=gc.RunOptions.FULL_TRACE)`.
        graph: has no effect.
    """

    def __init__(self, step_stats: Any, graph: Any = None) -> None:  # noqa: ARG002 - TensorFlow's argument
        if not hasattr(step_stats, "dev_stats"):
            raise InvalidArgumentError(
                f"A timeline needs the step_stats of a run with gc.RunOptions(trace_level=gc.RunOptions.FULL_TRACE), got {step_stats!r}"
            )
        self._stats = step_stats

    def generate_chrome_trace_format(self, show_dataflow: bool = True, show_memory: bool = False) -> str:  # noqa: ARG002 - TensorFlow's
        """The run in the Trace Event Format, with times in microseconds from the first node, as JSON text."""
        entries: list[dict[str, Any]] = []
        starts = [stats.all_start_nanos for device in self._stats.dev_stats for stats in device.node_stats]
        for number, device in enumerate(self._stats.dev_stats):
            entries.append({"ph": "M", "name": "process_name", "pid": number, "args": {"name": device.device}})
            entries += [
                {
                    "ph": "X",
                    "cat": "Op",
                    "name": stats.node_name,
                    "pid": number,
                    "tid": stats.thread_id,
                    "ts": (stats.all_start_nanos - min(starts) + stats.op_start_rel_nanos) / 1000,
                    "dur": (stats.op_end_rel_nanos - stats.op_start_rel_nanos) / 1000,
                    "args": {"name": stats.node_name},
                }
                for stats in device.node_stats
            ]
        return json.dumps({"traceEvents": entries})
