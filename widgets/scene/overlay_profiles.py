"""Numbers in profiles: traces in Chrome's format, PyTorch's averages, and our own recorded runs."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from graphcore.frontends.record import foreign_of
from widgets.scene.time_lens import run_times

if TYPE_CHECKING:
    from graphcore.graph import Graph, Node
    from graphcore.runtime import Trace

MICROSECONDS: Final = "µs"
_NODE: Final = "_kernel_time"
"""The end of the names of nodes in a profile of ONNX Runtime."""
_MODULE: Final = "nn.Module: "
"""The start of the names of modules in a trace of PyTorch; the class and a number follow, as in `Linear_3`."""
_MODULE_NAME: Final = re.compile(rf"{_MODULE}(\w+)_(\d{{1,9}})")
_OP: Final = "aten::"
_ON_DEVICE: Final = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})


def providers_of(events: Iterable[Any]) -> dict[str, str]:
    """The execution providers of nodes in a profile of ONNX Runtime, by node."""
    providers = {}
    for event in events:
        name, args = (event.get("name"), event.get("args")) if isinstance(event, Mapping) else ("", None)
        if isinstance(name, str) and name.endswith(_NODE) and isinstance(args, Mapping) and args.get("provider"):
            providers[name.removesuffix(_NODE)] = str(args["provider"])
    return providers


def of_events(events: Iterable[Any]) -> dict[str, float]:
    """The microseconds of nodes of ONNX Runtime, of modules of PyTorch, else of events by name.

    The time of a module is that of the kernels on a GPU that were started in it, if there are any, else that of its calls.
    """
    timed = [event for event in events if isinstance(event, Mapping) and isinstance(event.get("dur"), int | float)]
    nodes: dict[str, float] = defaultdict(float)
    modules: dict[str, float] = defaultdict(float)
    others: dict[str, float] = defaultdict(float)
    for event in timed:
        name = str(event.get("name", ""))
        if name.endswith(_NODE):
            nodes[name.removesuffix(_NODE)] += event["dur"]
        elif name.startswith(_MODULE):
            modules[name] += event["dur"]
        else:
            others[name] += event["dur"]
    return nodes or (modules and _on_device(timed, _module_of)) or modules or others


class OpCalls(msgspec.Struct, frozen=True):
    """The calls of an op of PyTorch with inputs of certain shapes, as its averages have them."""

    key: str
    count: int
    cpu_time_total: float
    device_time_total: float
    input_shapes: list[Any]


def calls_in(events: Iterable[Any]) -> list[OpCalls]:
    """The calls of ops in a trace of PyTorch without modules."""
    timed = [event for event in events if isinstance(event, Mapping) and isinstance(event.get("dur"), int | float)]
    if any(_module_of(event) for event in timed):
        return []
    times: dict[str, list[float]] = defaultdict(list)
    for event in timed:
        label = _op_of(event)
        if label:
            times[label].append(event["dur"])
    on_device = _on_device(timed, _op_of) if times else {}
    labels = [(json.loads(label), durations, on_device.get(label, 0.0)) for label, durations in times.items()]
    return [OpCalls(key, len(durations), sum(durations), device, shapes) for (key, shapes), durations, device in labels]


def _module_of(event: Mapping[str, Any]) -> str:
    name = str(event.get("name", ""))
    return name if name.startswith(_MODULE) else ""


def _op_of(event: Mapping[str, Any]) -> str:
    """The op and the shapes of its inputs as text, "" for anything else."""
    name = str(event.get("name", ""))
    return json.dumps([name, (event.get("args") or {}).get("Input Dims") or []]) if name.startswith(_OP) else ""


def _on_device(events: Iterable[Mapping[str, Any]], label_of: Callable[[Mapping[str, Any]], str]) -> dict[str, float]:
    """The microseconds on a GPU by the labels of the calls in which they were started."""
    taken: dict[object, float] = defaultdict(float)
    calls = []
    for event in events:
        key = (event.get("args") or {}).get("correlation")
        if event.get("cat") in _ON_DEVICE:
            taken[key] += event["dur"]
        elif key is not None or label_of(event):
            calls.append((event.get("tid"), event["ts"], -event["dur"], label_of(event), key))
    sums: dict[str, float] = defaultdict(float)
    around: list[tuple[float, object, str]] = []
    for thread, start, minus, label, key in sorted(calls, key=lambda call: (str(call[0]), *call[1:3])):
        around = [(end, other, outer) for end, other, outer in around if other == thread and end > start]
        if label:
            around.append((start - minus, thread, label))
        for outer in {outer for _, _, outer in around} if key in taken else ():
            sums[outer] += taken[key]
    return sums


def modules_by_number(graph: Graph, names: Iterable[str]) -> dict[str, str]:
    """The scopes of the modules that a trace of PyTorch calls `nn.Module: Linear_3`.

    The number is that of the module among those of its class, in the order of first calls. A class with another number of modules in the graph than in the trace is left out.
    """
    called: dict[str, dict[str, None]] = defaultdict(dict)
    for path, type_name in _modules(graph):
        called[type_name].setdefault(path)
    numbers: dict[str, dict[int, str]] = defaultdict(dict)
    for name in names:
        match = _MODULE_NAME.fullmatch(name)
        if match:
            numbers[match[1]][int(match[2])] = name
    return {
        name: path
        for type_name, named in numbers.items()
        if max(named) + 1 == len(called[type_name])
        for number, path in enumerate(called[type_name])
        if path and (name := named.get(number, ""))
    }


def _modules(graph: Graph) -> Iterator[tuple[str, str]]:
    """The paths and classes of modules in the order of the nodes in them; "" is the path of the whole."""
    foreign = foreign_of(graph)
    for record in () if foreign is None else foreign.nodes.values():
        for module in record.modules:
            yield module.path, module.type_name


def of_averages(graph: Graph, averages: Iterable[Any]) -> dict[str, float]:
    """The microseconds of a call of each node, by PyTorch's averages over ops.

    Each node has the mean of the calls of its op, or with shapes of those with the shapes of its inputs. What is not an op of PyTorch, such as
    `record_function("encoder")`, has the sum of its calls.
    """
    rows = list(averages)
    is_on_device = any(getattr(row, "device_time_total", 0) for row in rows)
    numbers: dict[str, float] = {}
    means: dict[str, list[tuple[list[Any], float]]] = defaultdict(list)
    for row in rows:
        time = float(row.device_time_total if is_on_device else row.cpu_time_total)
        if "::" not in row.key:
            numbers[row.key] = numbers.get(row.key, 0.0) + time
        elif row.count:
            shapes = [list(shape) for shape in (getattr(row, "input_shapes", None) or ()) if shape]
            means[row.key.rpartition("::")[2]].append((shapes, time / row.count))
    for node in graph.op_nodes():
        time_of_call = _mean_of(node, means.get(_word(node.op), []))
        if time_of_call is not None:
            numbers[node.name] = time_of_call
    return numbers


def _word(op: str) -> str:
    """The op without its domain and overload, as `linear` of `aten.linear.default`."""
    parts = op.split(".")
    return parts[1] if parts[0] == "aten" and len(parts) > 1 else parts[-1]


def _mean_of(node: Node, means: list[tuple[list[Any], float]]) -> float | None:
    if len(means) == 1:
        return means[0][1]
    shapes = [list(tensor.shape) for tensor in node.inputs if tensor.shape.rank]
    return next((mean for other, mean in means if other == shapes), None)


def of_trace(graph: Graph, trace: Trace, unit: str) -> dict[str, float]:
    """The own microseconds of each node in a recorded run, or for the unit `B` the bytes of its results."""
    times = run_times(graph, trace)
    names = [times.prefixes[place] + name for place, name in zip(times.places, times.names, strict=True)]
    if unit == "B":
        return dict(zip(names, map(float, times.sizes), strict=True))
    return {name: own / 1_000 for name, own in zip(names, times.own, strict=True)}
