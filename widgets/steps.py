"""The recorded run of a graph, node by node: sent in messages and stored in pages."""

from __future__ import annotations

import msgspec


class StepRuns(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of nodes by start, as columns of equal length.

    `labels` are places in `RecordedSteps.nodes`; `states` are 0 for a node that ran, 1 for a dead one, 2 if its kernel failed, 3 if it was fed. `lasts` is the last run within a call, the run itself for
    other nodes. `loops` are places in `RecordedSteps.loops`, -1 outside of loops; `turns` count from 0. `texts` are places in
    `RecordedSteps.texts`, -1 without a recorded value, and `lows`, `highs` and `means` are statistics of the first output, None if unknown.
    `nans` and `infs` are numbers of elements. `takes` are the runs whose values a run takes: `counts` says how many for each run.
    """

    labels: list[int] = []
    states: list[int] = []
    lasts: list[int] = []
    loops: list[int] = []
    turns: list[int] = []
    texts: list[int] = []
    lows: list[float | None] = []
    highs: list[float | None] = []
    means: list[float | None] = []
    nans: list[int] = []
    infs: list[int] = []
    counts: list[int] = []
    takes: list[int] = []


class RecordedSteps(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded run.

    `nodes` are names as views have them, those in functions by their names in open calls; `ops` are their ops, "" if unknown. `loops` are in words.
    `notes` say what is missing.
    """

    nodes: list[str] = []
    ops: list[str] = []
    loops: list[str] = []
    texts: list[str] = []
    runs: StepRuns = StepRuns()
    notes: list[str] = []
