"""Overlays: numbers of a user on a graph, by node, tensor, module or scope."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

from graphcore.brief import brief
from graphcore.costing import Costs
from graphcore.errors import InvalidArgumentError, NotFoundError
from graphcore.frontends.record import ForeignRecord, foreign_of
from graphcore.graph import Node, Tensor
from graphcore.graph.attached import Attached
from graphcore.runtime import Trace
from widgets.overlays import Combine, Overlay, Scale
from widgets.scene.lenses import lens_names
from widgets.scene.overlay_files import read_numbers
from widgets.scene.overlay_jax import of_jax
from widgets.scene.overlay_profiles import MICROSECONDS, modules_by_number, of_averages, of_trace
from widgets.scene.overlay_tables import Numbers, of_table
from widgets.scene.run_names import split_name

if TYPE_CHECKING:
    from graphcore.graph import Graph

_overlays: Final[Attached[tuple[Overlay, ...]]] = Attached()
_MOST_NAMED: Final = 3
_BLOCKED: Final = "_nchwc"
"""The end of names in profiles of ONNX Runtime: of nodes that it runs on blocks of channels, called by their tensors."""


def overlays_of(graph: Graph) -> list[Overlay]:
    """The overlays of a graph, in the order in which they were added."""
    return list(_overlays.of(graph) or ())


def lens_names_of(graph: Graph) -> tuple[str, ...]:
    """The names of all lenses of a graph, its overlays among them."""
    return (*lens_names(), *[overlay.name for overlay in overlays_of(graph)])


def add_overlay(
    graph: Graph,
    numbers: Any,
    *,
    title: str = "Numbers",
    unit: str = "",
    combine: Combine = "sum",
    scale: Scale = "log",
    thresholds: Sequence[float] = (),
) -> Overlay:
    """Put numbers on a graph: each becomes a colour and a text on boxes, in a lens called by the title.

    Closed scopes and repeats show the numbers in them combined. Views show it with their next picture; pages and saved notebooks keep it.

    Args:
        graph: the graph.
        numbers: numbers by node, by tensor (`h:0`), by module (`layer1.0.conv1`) or by scope, as a dict, a pandas Series, or a table of two columns of
            pandas or polars; or `gc.Costs`, for its multiply-adds; a recorded run (`graph.trace`), for the time of each node itself, or with the unit `B` for
            the bytes of its results; a profiler of PyTorch or its `key_averages()`, for the mean time of a call of each op; or the path of a
            file: a JSON object or CSV of names and numbers, a profile of ONNX Runtime, a trace in Chrome's format (of PyTorch with `with_stack=True`, for
            the time of each module), a table of ops of XProf (with names of JAX such as `jit(f)/layer/tanh`, too), or node data of Model Explorer. The number
            of a scope stands for all that is in it.
            The execution providers in a profile of ONNX Runtime become the devices of the nodes.
        title: the title in the list of lenses; an overlay of the same title is replaced.
        unit: the unit of the numbers, as in `ms`; by default that of a profile.
        combine: "sum", "max" or "mean" of the numbers in a box.
        scale: "log" for colours that change by halves of the greatest number, "linear" for equal steps.
        thresholds: the least absolute numbers of the colours, hottest first, at most 5; in place of a scale.

    Returns:
        The overlay.

    Raises:
        InvalidArgumentError: they are no numbers, none has the name of something in the graph, or an option is none of those named.
        NotFoundError: there is no such file.
    """
    _check(combine, scale, thresholds)
    name = re.sub(r"\W+", "_", title).strip("_").lower() or "numbers"
    if name in lens_names():
        raise InvalidArgumentError(f"Required a title that is not the name of a lens, got {title!r}: there are {', '.join(lens_names())}")
    taken = _numbers(graph, numbers, unit)
    values = of_jax(graph, taken.values)
    names = _Names(graph, values)
    rows = _rows(names, values)
    _assign(graph, {row: device for name, device in taken.devices.items() if (row := names.of(name)) is not None})
    split = [split_name(row) for row in rows]
    prefixes: dict[str, int] = {}
    overlay = Overlay(
        name=name,
        title=title,
        unit=unit or taken.unit,
        combine=combine,
        scale=scale,
        bounds=[float(bound) for bound in thresholds],
        places=[prefixes.setdefault(prefix, len(prefixes)) for prefix, _ in split],
        prefixes=list(prefixes),
        names=[inner for _, inner in split],
        values=list(rows.values()),
    )
    _overlays.set(graph, (*[other for other in overlays_of(graph) if other.name != name], overlay))
    return overlay


def remove_overlay(graph: Graph, title: str) -> None:
    """Remove an overlay.

    Raises:
        NotFoundError: there is none of this title.
    """
    left = tuple([overlay for overlay in overlays_of(graph) if overlay.title != title])
    if len(left) == len(overlays_of(graph)):
        raise NotFoundError(f"Required the title of an overlay, got {title!r}: there are {_listed(o.title for o in overlays_of(graph))}")
    _overlays.set(graph, left)


def _check(combine: str, scale: str, thresholds: Sequence[float]) -> None:
    for name, value, choices in (("combine", combine, get_args(Combine)), ("scale", scale, get_args(Scale))):
        if value not in choices:
            raise InvalidArgumentError(f"Required {name} to be {' or '.join(choices)}, got {value!r}")
    if len(thresholds) > 5 or list(thresholds) != sorted(thresholds, reverse=True):
        raise InvalidArgumentError(f"Required at most 5 thresholds, the greatest first, got {list(thresholds)}")


def _assign(graph: Graph, devices: Mapping[str, str]) -> None:
    """Say on which devices nodes ran."""
    for name, device in devices.items():
        node = graph.find(name)
        if node is not None:
            node.assigned_device = device


def _numbers(graph: Graph, numbers: Any, unit: str) -> Numbers:
    """The names and numbers of what a user gives.

    Raises:
        InvalidArgumentError: it has none.
    """
    if isinstance(numbers, str | Path):
        taken = read_numbers(Path(numbers))
        of_ops = of_averages(graph, taken.calls)
        return Numbers(of_ops, MICROSECONDS) if of_ops else taken
    if isinstance(numbers, Trace):
        return Numbers(of_trace(graph, numbers, unit), MICROSECONDS)
    if hasattr(numbers, "key_averages") and not isinstance(numbers, list):  # a profiler of PyTorch
        numbers = numbers.key_averages(group_by_input_shape=True)
    if isinstance(numbers, list) and numbers and all(hasattr(row, "key") and hasattr(row, "cpu_time_total") for row in numbers):
        return Numbers(of_averages(graph, numbers), MICROSECONDS)
    if isinstance(numbers, Costs):
        amounts = [(name, cost.multiply_adds) for name, cost in numbers.nodes.items()]
        return Numbers({name: amount.value(dict.fromkeys(amount.names, 1)) for name, amount in amounts if amount.terms})
    if hasattr(numbers, "iter_rows"):  # a table of polars
        return of_table([list(numbers.columns), *numbers.iter_rows()])
    if hasattr(numbers, "columns") and hasattr(numbers, "itertuples"):  # a table of pandas
        return of_table([[numbers.index.name or "", *numbers.columns], *[list(row) for row in numbers.itertuples()]])
    if isinstance(numbers, Mapping) or hasattr(numbers, "items"):
        return Numbers(dict(numbers.items()))
    raise InvalidArgumentError(f"Required numbers by name (a dict, a table of two columns, or a file), got {brief(numbers)}")


def _rows(names: _Names, numbers: Mapping[Any, Any]) -> dict[str, float]:
    """The numbers by the names of nodes and scopes in views."""
    rows: dict[str, float] = {}
    unknown = []
    for key, value in numbers.items():
        if isinstance(value, bool) or not hasattr(value, "__float__"):
            raise InvalidArgumentError(f"Required a number for {brief(key)}, got {brief(value)}")
        row = names.of(key)
        if row is None:
            unknown.append(str(key))
        elif math.isinf(float(value)):
            raise InvalidArgumentError(f"Required a finite number for {brief(key)}, got {value}")
        elif not math.isnan(float(value)):
            rows[row] = float(value)
    if not rows:
        raise InvalidArgumentError(
            f"Required numbers by the names of nodes, tensors, modules or scopes of the graph, got {len(numbers):,} of which none is in it"
            + (f", such as {_listed(unknown)}" if unknown else "")
        )
    return rows


class _Names:
    """Finds the nodes and scopes of a graph by the names that people give."""

    def __init__(self, graph: Graph, names: Iterable[Any]) -> None:
        self._graph = graph
        self._scopes = _scopes(graph)
        foreign = foreign_of(graph)
        self._sources = {} if foreign is None else {record.name: name for name, record in foreign.nodes.items()}
        self._modules = {} if foreign is None else {module: path.removesuffix("/") for path, module in foreign.modules.items()}
        self._tensors = {} if foreign is None else _tensors(foreign)
        numbered = modules_by_number(graph, [name for name in names if isinstance(name, str)])
        self._modules |= {name: self._modules.get(path, path.replace(".", "/")) for name, path in numbered.items()}

    def of(self, key: Any) -> str | None:
        """The name of a node or scope in views, None if the graph has none."""
        if isinstance(key, Tensor | Node):
            key = key.node.name if isinstance(key, Tensor) else key.name
        text = str(key)
        if self._graph.find(text) is not None or ":" in text.rpartition("/")[0]:  # within an open call
            return text
        tensor, _, index = text.rpartition(":")
        if index.isdigit() and self._graph.find(tensor) is not None:
            return tensor
        result = self._tensors.get(text) or self._tensors.get(text.removesuffix(_BLOCKED))
        for name in (self._sources.get(text), self._modules.get(text), result, text.removesuffix("/"), text.replace(".", "/")):
            if name is not None and (name in self._scopes or self._graph.find(name) is not None):
                return name
        return None


def _tensors(foreign: ForeignRecord) -> dict[str, str]:
    """The nodes by the names of their results in the source, without names of several results."""
    named = [(port.name, name) for name, record in foreign.nodes.items() for port in record.outputs if port.name]
    counts = Counter([tensor for tensor, _ in named])
    return {tensor: name for tensor, name in named if counts[tensor] == 1}


def _scopes(graph: Graph) -> set[str]:
    """The scopes around the nodes of a graph."""
    scopes: set[str] = set()
    for node in graph.op_nodes():
        scope = node.name.rpartition("/")[0]
        while scope and scope not in scopes:
            scopes.add(scope)
            scope = scope.rpartition("/")[0]
    return scopes


def _listed(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - _MOST_NAMED:,} more" if len(listed) > _MOST_NAMED else ""
    return f"{', '.join(listed[:_MOST_NAMED])}{more}" if listed else "none"
