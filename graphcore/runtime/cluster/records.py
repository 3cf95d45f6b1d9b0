"""The records of a step's parts, put together as those of one run."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from graphcore.runtime.cluster.links import Link
from graphcore.runtime.cluster.messages import Outcome, Records
from graphcore.runtime.core.events import ArrayLife
from graphcore.runtime.core.program import Step
from graphcore.runtime.core.value_records import RunKey


def merge_records(step: Step, outcomes: Mapping[Link, Outcome]) -> None:
    """Enter the records of a step's parts into its recorder, with times on its clock."""
    recorder = step.recorder
    assert recorder is not None
    parts = [_shifted(outcome.records, link.clock) for link, outcome in outcomes.items() if outcome.records is not None]
    events = [event for part in parts for event in part.events]
    arrays = [life for part in parts for life in part.arrays]
    recorder.add(events, arrays)
    step.peak_bytes = _peak(arrays)
    if recorder.values is not None:
        ends: dict[RunKey, int] = {
            (event.node, (event.frame, event.iteration, event.around, event.call)): event.ns for event in events if event.kind == "end"
        }
        recorder.values.merge([part.values for part in parts], ends)


def _shifted(records: Records, clock: int) -> Records:
    if not clock:
        return records
    events = [msgspec.structs.replace(event, ns=event.ns + clock) for event in records.events]
    arrays = [msgspec.structs.replace(life, start=life.start + clock, end=life.end + clock) for life in records.arrays]
    return Records(events, arrays, records.values)


def _peak(arrays: list[ArrayLife]) -> int:
    """The most bytes alive at once."""
    changes = sorted([(life.end, -life.bytes) for life in arrays] + [(life.start, life.bytes) for life in arrays])
    held = peak = 0
    for _, size in changes:
        held += size
        peak = max(peak, held)
    return peak
