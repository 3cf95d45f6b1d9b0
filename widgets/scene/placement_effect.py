"""The effect of a requested device on the nodes of boxes, for the inspector."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from graphcore.device_spec import DeviceSpec
from graphcore.placement import PlacementEffect, what_if
from graphcore.placement.device import LOCAL, DeviceSet
from graphcore.placement.placer import last_placer, withdraw_placement
from graphcore.runtime import live_sessions
from widgets.inspection import DeviceChoice, Effect, EffectRow, RequestLine, WhatIf, WhyStep
from widgets.scene.shapes.clashes import source_row
from widgets.scene.words import byte_count, counted

if TYPE_CHECKING:
    from graphcore.graph import Graph, Node
    from graphcore.placement.copies import Copy

MAX_ROWS: Final = 12
"""Nodes that are listed; the others are counted."""


def what_if_for(graph: Graph, ids: Sequence[str], names: Sequence[str], device: str | None, *, apply: bool = False) -> WhatIf:
    """The devices to choose from for some boxes, and the effect of one of them. Its steps have no places.

    The devices are those of the last placement or session of the graph; the step is the last run of its last session.

    Args:
        graph: the graph.
        ids: the boxes and frames.
        names: the names of their nodes. Those in bodies of calls are left out.
        device: the device to request, "" to withdraw requests, None for no choice yet.
        apply: make the request, and place the graph again.
    """
    nodes = [node for node in map(graph.find, names) if node is not None]
    if not nodes:
        return WhatIf(ids=list(ids), note="The body of a function runs on the device of its call: choose a device for the call")
    placer = last_placer.of(graph)
    entries = DeviceSet([LOCAL]) if placer is None else placer.options.devices
    devices = [DeviceChoice(name=entry.name, label=str(entry)) for entry in entries]
    answer = WhatIf(ids=list(ids), devices=devices, requested=_requested(nodes))
    if device is None:
        return answer
    fetches = _fetches(graph)
    effect = what_if(nodes, device, fetches=fetches or None)
    if apply:
        effect.apply(graph)
        if placer is not None:
            withdraw_placement(graph)
            placer.run()
    described = _effect(effect, nodes, fetches)
    return msgspec.structs.replace(answer, requested=_requested(nodes), device=device, effect=described, applied=apply)


def _requested(nodes: Iterable[Node]) -> str:
    """The device that all nodes request, "" if they differ."""
    requests = {node.device for node in nodes}
    return requests.pop() if len(requests) == 1 else ""


def _fetches(graph: Graph) -> list[Node]:
    """The fetches of the last session of a graph; one with devices goes before others."""
    sessions = [session for session in live_sessions() if session.graph is graph]
    divided = [session for session in sessions if session.devices is not None]
    return (divided or sessions)[-1].last_fetches if sessions else []


def _effect(effect: PlacementEffect, nodes: Sequence[Node], fetches: Sequence[Node]) -> Effect:
    def step(name: str, text: str) -> WhyStep:
        return WhyStep(text=text, name=name, depth=1)

    conflict = [step(entry.name, f"{entry.op} {entry.device} {entry.where}".strip()) for entry in effect.conflict]
    moved = [step(entry.name, f"{entry.source} to {entry.destination}{'' if entry.requested else ', follows'}") for entry in effect.moved]
    notes = []
    if effect.ignored:
        notes.append(f"The placer ignores the request for {counted(len(effect.ignored), 'node')}, such as {effect.ignored[0]}")
    if effect.after is not None:
        which = f"the last run, of {', '.join(node.name for node in fetches[:3])}" if fetches else "all nodes"
        notes.append(f"Times and memory: {which}{effect.after.clock}")
    if unknown := sum(copy.bytes is None for copy in effect.copies_after):
        notes.append(f"{counted(unknown, 'copy', 'copies')} of unknown size not counted")
    sources = {node.name: node.source for node in nodes}
    lines = [
        RequestLine(source=source_row(sources[line.nodes[0]]), code=line.code, nodes=list(line.nodes), others=line.others)
        for line in effect.lines
    ]
    return Effect(
        error=effect.error,
        conflict=conflict,
        rows=list(_rows(effect)),
        moved=moved[:MAX_ROWS],
        more=max(0, len(moved) - MAX_ROWS),
        notes=notes,
        lines=lines,
    )


def _rows(effect: PlacementEffect) -> Iterator[EffectRow]:
    after, before = effect.after, effect.before
    if after is None:
        return
    yield EffectRow(
        what="predicted step",
        before="cannot be placed" if before is None else _milliseconds(before.makespan),
        after=_milliseconds(after.makespan),
        change="" if before is None else _change(before.makespan, after.makespan),
    )
    yield EffectRow(what="copies", before=_copied(effect.copies_before), after=_copied(effect.copies_after))
    peaks = {} if before is None else before.peak_bytes
    for name in sorted({*peaks, *after.peak_bytes}):
        sizes = peaks.get(name, 0), after.peak_bytes.get(name, 0)
        if sizes[0] != sizes[1]:
            yield EffectRow(what=f"peak memory of {_short(name)}", before=byte_count(sizes[0]), after=byte_count(sizes[1]))


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:,.3f} ms"


def _change(before: float, after: float) -> str:
    if not before:
        return ""
    percent = round(100 * (after - before) / before)
    return f"{abs(percent)} % {'longer' if percent > 0 else 'shorter'}" if percent else "as long"


def _copied(copies: Sequence[Copy]) -> str:
    size = sum([copy.bytes for copy in copies if copy.bytes is not None])
    return f"{len(copies)}, {byte_count(size)}" if copies else "none"


def _short(name: str) -> str:
    """A device's name without the parts that are the same for most."""
    spec = DeviceSpec.parse(name)
    task = f"task {spec.task} " if spec.task is not None else ""
    return f"{task}{spec.type}:{spec.id}"
