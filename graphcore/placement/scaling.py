"""Data-parallel training on many workers, on paper."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from graphcore.errors import InvalidArgumentError
from graphcore.graph.model.argument_errors import refuse
from graphcore.placement.cost_model import CostModel, model_of
from graphcore.placement.device import Device
from graphcore.placement.exchange import EXCHANGES, ExchangedStep, Machines, Reduce, Variables, exchanged
from graphcore.placement.placer import node_behind
from graphcore.placement.replica import replicas_of
from graphcore.placement.simulated import simulated_devices
from graphcore.support.shown import html_text

WORKERS: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000)
_MOST_WORKERS: Final = 1_000_000


class ScalingRow(msgspec.Struct, frozen=True):
    """The predicted step with a number of workers.

    Args:
        workers: their number; each computes a batch.
        seconds: the time of a step.
        computing: the seconds of it in which a worker computes gradients.
        busiest: the link that is in use for the longest, in words; "" without one.
        busy: the seconds in which it is in use.
        speed_up: the batches per second, divided by those of one machine that holds the parameters itself.
        best_variables, best_reduce: the fastest of the ways to exchange parameters and gradients.
        best_seconds: the time of a step with them.
    """

    workers: int
    seconds: float
    computing: float
    busiest: str
    busy: float
    speed_up: float
    best_variables: str
    best_reduce: str
    best_seconds: float

    @property
    def saturated(self) -> bool:
        """True if the busiest link is in use for longer than a worker computes."""
        return self.busy > self.computing

    @property
    def efficiency(self) -> float:
        """The speed-up for each worker: 1 where the exchange costs nothing."""
        return self.speed_up / self.workers

    @property
    def gain(self) -> float:
        """The time of a step divided by that with the fastest exchange; 1 if it is this one."""
        return self.seconds / self.best_seconds


class Scaling(msgspec.Struct, frozen=True):
    """The predicted steps of data-parallel training, by the number of workers.

    Args:
        variables: "ps" or "mirrored".
        reduce: the way to sum gradients: "tree", "ring" or "auto".
        servers: the number of servers of "ps".
        bytes: the size of all gradients of a worker.
        rows: by the number of workers.
        simulated: True for simulated devices: the times are those of a virtual clock.
        notes: the assumptions, in words.
        is_bound: True if sizes are unknown: the computation is then a lower bound, and `notes` says what is unknown.
    """

    variables: str
    reduce: str
    servers: int
    bytes: int
    rows: tuple[ScalingRow, ...]
    simulated: bool
    notes: tuple[str, ...] = ()
    is_bound: bool = False

    @property
    def saturated(self) -> ScalingRow | None:
        """The row with the fewest workers in which a link is saturated; None if there is none."""
        return next((row for row in self.rows if row.saturated), None)

    def __getitem__(self, workers: int) -> ScalingRow:
        """The row of a number of workers.

        Raises:
            InvalidArgumentError: it was not predicted.
        """
        for row in self.rows:
            if row.workers == workers:
                return row
        raise InvalidArgumentError(f"Required one of {', '.join([str(row.workers) for row in self.rows])} workers, got {workers!r}")

    def __repr__(self) -> str:
        return f"<gc.Scaling {self._title()}: {len(self.rows)} numbers of workers>"

    def __str__(self) -> str:
        cells = [_HEADER, *map(_cells, self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = ["  ".join([cell.rjust(width) for cell, width in zip(row, widths, strict=True)]).rstrip() for row in cells]
        return "\n".join([self._title(), *lines, *self._end()])

    def _repr_html_(self) -> str:
        rows = [_html_row(_HEADER, "th"), *[_html_row(_cells(row), "td") for row in self.rows]]
        paragraphs = [f"<p>{html_text(line)}</p>" for line in (self._title(), *self._end())]
        return f"{paragraphs[0]}<table><thead>{rows[0]}</thead><tbody>{''.join(rows[1:])}</tbody></table>{''.join(paragraphs[1:])}"

    def _title(self) -> str:
        plural = "" if self.servers == 1 else "s"
        servers = f" on {self.servers} server{plural}" if self.variables == "ps" else ""
        clock = " on the virtual clock of simulated devices" if self.simulated else ""
        return f"predicted step{clock}, variables '{self.variables}'{servers}, reduce '{self.reduce}', {self.bytes:,} bytes of gradients a worker"

    def _end(self) -> tuple[str, ...]:
        times = list(dict.fromkeys([_milliseconds(row.computing) for row in self.rows]))
        least = "at least " if self.is_bound else ""
        computing = f"a worker computes for {least}{' to '.join(dict.fromkeys((times[0], times[-1])))} ms"
        row = self.saturated
        until = "no link is saturated" if row is None else f"saturated from {row.workers:,} workers on: the link {row.busiest}"
        return (computing, until, *self.notes)


_HEADER: Final = ("workers", "step ms", "speed-up", "efficiency", "busiest link", "in use", "fastest", "ms")


def _cells(row: ScalingRow) -> tuple[str, ...]:
    return (
        f"{row.workers:,}",
        _milliseconds(row.seconds),
        f"{row.speed_up:,.2f}",
        f"{row.efficiency:.0%}",
        row.busiest,
        f"{row.busy / row.seconds:.0%}" if row.busiest else "",
        f"{row.best_variables}, {row.best_reduce}",
        _milliseconds(row.best_seconds),
    )


def _html_row(cells: Iterable[str], tag: str) -> str:
    return f"<tr>{''.join([f'<{tag}>{html_text(cell)}</{tag}>' for cell in cells])}</tr>"


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:,.{3 if seconds < 0.1 else 1}f}"


def predict_scaling(
    step: Any,
    workers: Iterable[int] = WORKERS,
    *,
    variables: Variables = "ps",
    reduce: Reduce = "auto",
    servers: int = 1,
    worker: Device | None = None,
    server: Device | None = None,
    model: CostModel | None = None,
    cores: int = 0,
) -> Scaling:
    """Predict the step of data-parallel training by the number of workers, and the link that limits it.

    Each worker computes the gradients of its own batch. The batch has the size in the graph, or else that of its last runs' feeds. What is still
    unknown is said in `notes`, and the computation is then a lower bound. The gradients are summed, and each variable changes once in
    a step. Copies overlap with the computation as far as they can: the first parameters arrive while others are on their way, and
    the gradients of the last layers leave first. Each machine has one port to the network: it sends one tensor at a time, and receives one.

        gc.predict_scaling(train_op, [1, 10, 100], variables="mirrored")

    No replica is built: the step of one is scheduled, and the rest follows from the sizes of parameters. `gc.train.replicate` builds the graphs, by the
    same `variables` and `reduce`; there the batch is divided, and here each worker has its own data. For 2 and 4 workers the result is within 20 % of
    what `predict_step(..., one_port=True)` says of such a graph.

    Args:
        step: the training step of one worker, as `minimize` of an optimizer returns it, or its name.
        workers: the numbers of workers.
        variables: "ps" for variables on servers, which send them to all workers in each step; "mirrored" for a copy on each worker.
        reduce: "tree" adds the gradients of pairs of workers, then pairs of sums; "ring" sends equal parts of them around; "auto" takes
            rings for the larger gradients, so that the step is the fastest. Gradients that are rows are listed one after the other, whatever the way.
        servers: the number of servers of "ps", each a machine of its own.
        worker: the device of a worker, with its throughput in operations and its bandwidth in bytes per second; a simulated GPU by default.
        server: the device of a server; a simulated CPU by default.
        model: the times of nodes and the latency of copies; by default from shapes, and the numbers of runs from the last recorded run.
        cores: the cores that workers share as processes of one machine, for their work and for the copies between them; 0 for machines of
            their own.

    Raises:
        InvalidArgumentError: the step changes no variable by a gradient, a variable has no known shape, or an argument is of another kind.
    """
    numbers = sorted({_count("workers", number, _MOST_WORKERS) for number in workers})
    if not numbers:
        raise InvalidArgumentError("workers: required at least one number, got none")
    if (variables, reduce) not in EXCHANGES:
        names = sorted({name for name, _ in EXCHANGES}), sorted({way for _, way in EXCHANGES})
        refuse("variables and reduce", f"one of {', '.join(names[0])} and one of {', '.join(names[1])}", (variables, reduce))
    _count("servers", servers, _MOST_WORKERS)
    _count("cores", cores, _MOST_WORKERS, 0)
    here = worker or simulated_devices("1 gpu").devices[0]
    there = server or simulated_devices("1 cpu", job="ps").devices[0]
    node = node_behind(step)
    times = model or model_of(node.graph)
    replicas = dict(zip(("mirrored", "ps"), replicas_of(node, times, here, (here, there)), strict=True))
    alone = exchanged(replicas["mirrored"], Machines(here, there, 1, servers, times), "mirrored", "tree").seconds
    rows = []
    for many in numbers:
        machines = Machines(here, there, many, servers, times, max(1.0, many / cores) if cores else 1.0)
        slowed = {name: replica.stretched(machines.slowed) for name, replica in replicas.items()}
        steps = {(name, way): exchanged(slowed[name], machines, name, way) for name, way in EXCHANGES}
        rows.append(_row(many, steps, steps[variables, reduce], slowed[variables].seconds, alone))
    size = sum([parameter.gradient_bytes for parameter in replicas[variables].parameters])
    one = replicas[variables]
    return Scaling(variables, reduce, servers, size, tuple(rows), here.simulated, one.notes, one.is_bound)


def _row(
    many: int, steps: dict[tuple[Variables, Reduce], ExchangedStep], chosen: ExchangedStep, computing: float, alone: float
) -> ScalingRow:
    busiest = max(chosen.links, key=chosen.links.__getitem__, default="")
    best = min(steps, key=lambda names: steps[names].seconds)
    return ScalingRow(
        many,
        chosen.seconds,
        computing,
        busiest,
        chosen.links.get(busiest, 0.0),
        many * alone / chosen.seconds,
        best[0],
        best[1],
        steps[best].seconds,
    )


def _count(name: str, value: Any, most: int, least: int = 1) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        refuse(name, f"numbers from {least} to {most:,}" if name == "workers" else f"a number from {least} to {most:,}", value)
    return value
