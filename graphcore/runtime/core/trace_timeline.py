"""The timeline of a recorded run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from graphcore.graph.model.node import Node
from graphcore.placement.timeline import ARROW, Clock, Held, Span, Timeline, make_timeline, peak
from graphcore.plumbing import SEND
from graphcore.runtime.core.events import SKIPPED, ArrayLife, Event
from graphcore.runtime.core.kernel_checks import shown_name
from graphcore.runtime.core.tokens import Token, Tokens, is_transfer, link_of, transfer_key

NodeRun = tuple[Event, Event]
"""The start and the end of a kernel."""


def recorded_timeline(
    runs: Iterable[NodeRun],
    events: Sequence[Event],
    nodes: Sequence[Node],
    clock: Clock,
    simulated: Sequence[str],
    local: str,
    arrays: Sequence[ArrayLife] = (),
) -> Timeline:
    """The timeline of a recorded run.

    Args:
        runs: the start and the end of each kernel.
        events: all events, by time.
        nodes: the nodes of the run.
        clock: the clock of the events.
        simulated: the names of the simulated devices.
        local: the device of events without one.
        arrays: the arrays that were alive, unless the clock is virtual.
    """
    return _Recorded(events, nodes, local).timeline(runs, clock, simulated, arrays)


class _Recorded:
    def __init__(self, events: Sequence[Event], nodes: Sequence[Node], local: str) -> None:
        self.events = events
        self.local = local
        self.origin = min([event.ns for event in events], default=0)
        self.tokens = Tokens(nodes)
        self.spans: list[Span] = []
        self.alive: dict[Token, list[float]] = {}
        self.devices: dict[Token, str] = {}
        self.names: dict[Token, str] = {}

    def timeline(self, runs: Iterable[NodeRun], clock: Clock, simulated: Sequence[str], arrays: Sequence[ArrayLife]) -> Timeline:
        self._add_copies()
        for start, end in runs:
            if end.how not in SKIPPED:
                self._add_run(start, end)
        memory = self._by_tokens() if clock == "virtual clock" else self._by_arrays(arrays)
        by_device: dict[str, list[tuple[float, float, int]]] = defaultdict(list)
        for held in memory:
            by_device[held.device].append((held.start, held.end, held.bytes))
        peaks = {event.device or self.local: 0 for event in self.events} | {device: peak(lives) for device, lives in by_device.items()}
        return make_timeline(clock, self.spans, peaks, simulated, memory=memory)

    def _by_tokens(self) -> list[Held]:
        return [
            Held(self.devices[token], self.names[token], first, last, int(size))
            for token, (first, last, size) in self.alive.items()
            if size
        ]

    def _by_arrays(self, arrays: Sequence[ArrayLife]) -> list[Held]:
        devices = {event.node: event.device for event in self.events if event.kind == "end" and not event.call}
        held = []
        for array in arrays:
            outermost = array.call.partition(":")[0] if array.call else array.node
            device = array.device or devices.get(outermost) or self.local
            start, end = ((time - self.origin) / 1e9 for time in (array.start, array.end))
            held.append(Held(device, array.node, start, end, array.bytes, array.call))
        return held

    def _seconds(self, event: Event) -> float:
        return (event.ns - self.origin) / 1e9

    def _add_copies(self) -> None:
        """Add a span for each tensor that went from one device to another."""
        sent: dict[tuple[Any, ...], Event] = {}
        live: set[tuple[Any, ...]] = set()
        for event in self.events:
            if event.kind not in {"start", "sent", "received"}:
                continue
            node = self.tokens.node_of(event)
            if node is None or not is_transfer(node):
                continue
            key = transfer_key(node, event)
            if event.kind == "start":
                if node.op in SEND:
                    live.add(key)
            elif event.kind == "sent":
                sent[key] = event
            elif key in live and key in sent:
                self._add_copy(node, sent[key], event)

    def _add_copy(self, node: Node, sent: Event, received: Event) -> None:
        sender = self.tokens.node_of(sent)
        assert sender is not None
        start, end = self._seconds(sent), self._seconds(received)
        self.spans.append(
            Span(ARROW.join(link_of(node)), shown_name(sender.inputs[0]), start, end, sent.bytes, sent.frame, sent.iteration, sent.call)
        )
        self._use(sender, sent, end)
        token = self.tokens.output(node, received)
        self.alive[token] = [start, end, received.bytes]
        self.names[token] = shown_name(sender.inputs[0])
        self.devices[token] = received.device or self.local

    def _add_run(self, begin: Event, finish: Event) -> None:
        node = self.tokens.node_of(finish)
        if is_transfer(node):
            return
        start, end, lane = self._seconds(begin), self._seconds(finish), finish.device or self.local
        self.spans.append(Span(lane, finish.node, start, end, finish.bytes, finish.frame, finish.iteration, finish.call))
        if node is None:
            return
        self._use(node, begin, end)
        if finish.bytes:
            token = self.tokens.output(node, finish)
            self.alive[token] = [start, end, finish.bytes]
            self.names[token] = finish.node
            self.devices[token] = lane

    def _use(self, node: Node, event: Event, end: float) -> None:
        """Keep the inputs of a node run alive until its end."""
        for token in self.tokens.inputs(node, event):
            interval = self.alive.get(token)
            if interval is not None:
                interval[1] = max(interval[1], end)
