"""The timelines of a graph: its predicted step, and its last recorded run."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

import msgspec

from graphcore.device_spec import DeviceSpec
from graphcore.errors import GraphError
from graphcore.placement import Device, Timeline, predict_step
from graphcore.placement.device import LOCAL
from graphcore.placement.placer import last_placement, last_placer
from graphcore.placement.timeline import ARROW
from graphcore.plumbing import FEEDABLE
from graphcore.runtime.core.node_times import without_repeats
from graphcore.runtime.core.tracing import last_trace
from widgets.scene.run_names import run_names
from widgets.timelines import StepTimeline, TimelineLane, TimelineMemory, TimelineSpans

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from graphcore.graph import Graph, Node
    from graphcore.placement import Lane, Span
    from graphcore.placement.timeline import Held
    from graphcore.runtime import Trace
    from widgets.scene.run_names import RunNames

MAX_SPANS: Final = 100_000
"""The most spans of a timeline in a view."""
MAX_PAGE_SPANS: Final = 20_000
"""The most spans of a timeline in a page."""
MAX_PREDICTED: Final = 20_000
"""The most nodes of a predicted step: kernels answer requests between cells."""
MAX_SAVED_EVENTS: Final = 30_000
"""The most events of a recorded run in a saved notebook: it is packed between cells."""
CLOCKS: Final = {
    "prediction": "Predicted by the cost model",
    "wall clock": "Recorded by the wall clock",
    "virtual clock": "Recorded by the virtual clock of simulated devices",
}
"""The origin of the times of a timeline, in words."""
WITH_VALUES: Final = "the values were recorded too, which takes time between the nodes"


def timelines_key(graph: Graph) -> str:
    """A text that changes when the timelines of a graph may have changed."""
    placement = last_placement(graph)
    return f"{id(graph)} {graph.version} {id(placement)} {id(graph.trace)}"


def timelines_of(graph: Graph, most: int = MAX_SPANS) -> list[StepTimeline]:
    """The last recorded run of a graph's sessions, if there is one, and the predicted step.

    The prediction is of the nodes of the recorded run, or else of all nodes, on the devices of the last placement.

    Args:
        most: the most spans of each.
    """
    trace = last_trace(graph)
    recorded = [] if trace is None else [_recorded(graph, trace, most)]
    return [*recorded, _predicted(graph, trace, most)]


def box_around(node: str, boxes: Mapping[str, str]) -> str:
    """The box of a node, or that of the closed call that contains it; "" if there is none.

    Args:
        node: a name of `StepTimeline.nodes`.
        boxes: the boxes of nodes by name.
    """
    while node not in boxes and ":" in node:
        node = node.rpartition(":")[0]
    return boxes.get(node, "")


def page_timelines(graph: Graph) -> list[StepTimeline]:
    """The timelines that a page carries: none for a graph that was neither placed nor recorded."""
    return timelines_of(graph, MAX_PAGE_SPANS) if graph.trace is not None or last_placer.of(graph) is not None else []


def saved_timelines(graph: Graph) -> list[StepTimeline]:
    """The recorded run that a saved notebook carries, unless it is long."""
    trace = last_trace(graph)
    if trace is None or len(trace.events) > MAX_SAVED_EVENTS:
        return []
    return [_recorded(graph, trace, MAX_PAGE_SPANS)]


def _recorded(graph: Graph, trace: Trace, most: int) -> StepTimeline:
    timeline = to_view("Recorded run", trace.timeline(), most, run_names(graph, trace))
    return msgspec.structs.replace(timeline, notes=[*timeline.notes, *clock_notes(trace)])


def clock_notes(trace: Trace) -> list[str]:
    """Notes on the times of a recorded run."""
    return [WITH_VALUES] if trace.has_values and not trace.simulated else []


def to_view(title: str, timeline: Timeline, most: int = MAX_SPANS, names: RunNames | None = None) -> StepTimeline:
    """A timeline as views draw it.

    Args:
        title: its title.
        timeline: the timeline.
        most: the most spans, and the most tensors of its memory, which are then the largest.
        names: the names of nodes in functions; without them such nodes belong to their callers.
    """
    spans = timeline.spans[:most]
    memory = timeline.memory
    notes = list(timeline.notes)
    if len(spans) < len(timeline.spans):
        notes.append(f"the first {most:,} of {len(timeline.spans):,} spans")
    if len(memory) > most:
        memory = tuple(sorted(sorted(memory, key=lambda held: -held.bytes)[:most], key=lambda held: held.start))
        notes.append(f"the memory of the {most:,} largest of {len(timeline.memory):,} tensors")
    lanes = {lane.name: place for place, lane in enumerate(timeline.lanes)}
    labels: dict[tuple[str, str], int] = {}
    numbers = [labels.setdefault((_label(span), _node(span, names)), len(labels)) for span in spans]
    held_numbers = [labels.setdefault((_held_label(held), _held_node(held, names)), len(labels)) for held in memory]
    clock = CLOCKS[timeline.clock]
    if timeline.clock == "prediction" and any(lane.simulated for lane in timeline.lanes):
        clock += " for the virtual clock of simulated devices"
    return StepTimeline(
        title=title,
        clock=clock,
        notes=notes,
        length=round(timeline.makespan * 1e9),
        lanes=[_lane(lane) for lane in timeline.lanes],
        labels=[label for label, _ in labels],
        nodes=[node for _, node in labels],
        spans=TimelineSpans(
            lanes=[lanes[span.lane] for span in spans],
            labels=numbers,
            starts=[round(span.start * 1e9) for span in spans],
            lasting=[round((span.end - span.start) * 1e9) for span in spans],
            sizes=[span.bytes for span in spans],
            iterations=[span.iteration if span.frame else -1 for span in spans],
        ),
        memory=TimelineMemory(
            lanes=[lanes[held.device] for held in memory],
            labels=held_numbers,
            starts=[round(held.start * 1e9) for held in memory],
            lasting=[round((held.end - held.start) * 1e9) for held in memory],
            sizes=[held.bytes for held in memory],
        ),
    )


def _predicted(graph: Graph, trace: Trace | None, most: int) -> StepTimeline:
    """The predicted step; an empty timeline with the reason if it cannot be predicted."""
    runs = None if trace is None else trace.node_runs()
    nodes = list(graph.op_nodes()) if runs is None else _step_nodes(graph, runs)
    if len(nodes) > MAX_PREDICTED:
        reason = f"the step has {len(nodes):,} nodes, and a view predicts up to {MAX_PREDICTED:,}; see gc.predict_step"
        return StepTimeline(title="Prediction", clock="Not predicted", notes=[reason])
    placement = last_placement(graph)
    local = Device(LOCAL)
    devices = {node: placement.devices.get(node, local) if placement else local for node in nodes}
    try:
        prediction = predict_step(devices)
    except GraphError as error:
        return StepTimeline(title="Prediction", clock="Not predicted", notes=[error.message])
    return to_view("Prediction, at least" if prediction.is_bound else "Prediction", prediction.timeline(), most)


def _step_nodes(graph: Graph, names: Iterable[str]) -> list[Node]:
    """The nodes of a step by name, with those that were fed."""
    nodes = [node for node in map(graph.find, names) if node is not None]
    fed = [tensor.node for node in nodes for tensor in node.inputs if tensor.node.op in FEEDABLE]
    return list(dict.fromkeys([*fed, *nodes]))


def _label(span: Span) -> str:
    name = f"{span.call} > {span.name}" if span.call else span.name
    return name if span.times == 1 else f"{name} ({span.times:g} times)"


def _node(span: Span, names: RunNames | None) -> str:
    """The node that a span belongs to."""
    if span.call:
        return _inner(span.call, span.name, names)
    return span.name.rpartition(":")[0] if span.is_copy else span.name


def _held_node(held: Held, names: RunNames | None) -> str:
    return _inner(held.call, held.name, names) if held.call else held.name.partition(":")[0]


def _held_label(held: Held) -> str:
    return f"{_once(held.call)} > {held.name}" if held.call else held.name


def _inner(call: str, node: str, names: RunNames | None) -> str:
    """The name of a node in a function in open calls, or without names its caller."""
    return call.partition(" > ")[0].partition(":")[0] if names is None else names.name_of(_once(call), node)[0]


@lru_cache(maxsize=4096)
def _once(call: str) -> str:
    return without_repeats(call)


def _lane(lane: Lane) -> TimelineLane:
    ends = [_short(device) for device in lane.name.split(ARROW)]
    if len({task for task, _ in ends}) == 1:
        ends[1:] = [("", device) for _, device in ends[1:]]
    text = " → ".join([f"{task}, {device}" if task else device for task, device in ends])
    return TimelineLane(
        name=str(lane),
        text=f"{text} (simulated)" if lane.simulated else text,
        link=lane.is_link,
        busy=round(lane.busy * 1e9),
        peak=-1 if lane.peak_bytes is None else lane.peak_bytes,
    )


def device_text(device: str, *, simulated: bool) -> str:
    """A device in few words: `worker 1, gpu:0 (simulated)`."""
    task, name = _short(device)
    return f"{f'{task}, ' if task else ''}{name}{' (simulated)' if simulated else ''}"


def _short(device: str) -> tuple[str, str]:
    """`worker 1` and `gpu:0`; the first is "" for a device of this process."""
    spec = DeviceSpec.parse(device)
    return "" if spec.job in {None, "localhost"} else f"{spec.job} {spec.task}", f"{(spec.type or '').lower()}:{spec.id}"
