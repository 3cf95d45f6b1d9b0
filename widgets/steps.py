"""The recorded run of a graph, node by node: sent in messages and stored in pages."""

from __future__ import annotations

from typing import Literal

import msgspec

Quantity = Literal["min", "max", "mean", "nan", "inf", "iteration", "dead", "failed", "name"]
Comparison = Literal["", "<", ">", "<=", ">=", "==", "!="]


class StepRuns(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of nodes by start, as columns of equal length.

    `labels` are places in `RecordedSteps.nodes`; `states` are 0 for a node that ran, 1 for a dead one, 2 if its kernel failed, 3 if it was fed, 4 while it runs. `lasts` is the last run within a call, the run itself for
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
    `carried` are the nodes, as places in `nodes`, whose values go from one iteration of a loop to the next. `notes` say what is missing.
    """

    nodes: list[str] = []
    ops: list[str] = []
    carried: list[int] = []
    loops: list[str] = []
    texts: list[str] = []
    runs: StepRuns = StepRuns()
    notes: list[str] = []


class LiveRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that is stepped through: the run waits before a node, a node runs, or all is over.

    `next` is the node before which it waits, "" otherwise. `row` is the run of the node that was last, or at which it was stopped; -1 before
    the first. `is_on_way` is True if the time of a request was too short to do all of it. `waiting` are runs with nodes that will take their values. `error` says why the run
    has failed.
    """

    state: Literal["waits", "runs", "over"]
    next: str = ""
    row: int = -1
    is_on_way: bool = False
    waiting: list[tuple[int, str]] = []
    error: str = ""


class StepTest(msgspec.Struct, frozen=True, kw_only=True):
    """A condition on the run of a node.

    `quantity` is `min`, `max`, `mean`, `nan`, `inf` or `iteration`, which is compared with `number`; `dead`; `failed`; or `name`, of which
    `text` is a part, whatever the case.
    """

    quantity: Quantity
    operator: Comparison = ""
    number: float = 0.0
    text: str = ""
