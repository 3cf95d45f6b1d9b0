"""Dask's collections and graphs, of which nothing is computed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from graphcore.errors import InvalidArgumentError, ResourceExhaustedError
from graphcore.frontends.object_reader.plain import PlainNode, attr_of, callable_name, plain_graph

if TYPE_CHECKING:
    from graphcore.frontends.foreign import ForeignGraph

_TOKEN: Final = re.compile(r"-?([0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$")
_MAX_TASKS: Final = 200_000
_MAX_DEPTH: Final = 10
_MAX_ARGS: Final = 20


def is_dask(value: object) -> bool:
    """True iff a value is a collection of Dask, or one of its graphs of layers."""
    kind = type(value)
    return callable(getattr(kind, "__dask_graph__", None)) or (kind.__name__ == "HighLevelGraph" and kind.__module__.startswith("dask."))


def read_dask(value: Any) -> ForeignGraph:
    """The tasks of a collection, those of a layer within its scope.

    Raises:
        InvalidArgumentError: the collection has no graph.
        ResourceExhaustedError: it has too many tasks.
    """
    graph = value.__dask_graph__() if hasattr(type(value), "__dask_graph__") else value
    if not isinstance(graph, Mapping):
        raise InvalidArgumentError(f"Required a Dask collection with a graph, got a {type(value).__qualname__} without one")
    layers = getattr(graph, "layers", None)
    named_layers = [(str(name), layer) for name, layer in layers.items()] if isinstance(layers, Mapping) else [("", graph)]
    tasks: dict[Any, Any] = {}
    places: dict[Any, str] = {}
    for name, layer in named_layers:
        for key, task in layer.items():
            tasks[key] = task
            places[key] = name
            if len(tasks) > _MAX_TASKS:
                raise ResourceExhaustedError(f"The graph has more than {_MAX_TASKS:,} tasks, the limit of what is shown")
    short = _short([_base(key) for key in tasks] + list(places.values()))
    labels = _labels(tasks, short)
    nodes: dict[str, PlainNode] = {}
    for key, task in tasks.items():
        op, arguments = _called(task)
        needed: list[Any] = []
        _needed(task, tasks, needed, 0)
        sources = [labels[other] for other in dict.fromkeys(needed) if other != key]
        attrs = {f"argument {number}": attr_of(item) for number, item in enumerate(arguments[:_MAX_ARGS]) if _is_plain(item)}
        layer = short[places[key]]
        nodes[labels[key]] = PlainNode(
            f"dask.{op}", {"key": _key_text(key), **attrs}, (layer,) if layer else (), sources, [""] * len(sources)
        )
    facts = {"tasks": f"{len(tasks):,}", "layers": f"{len(named_layers):,}"} if layers else {"tasks": f"{len(tasks):,}"}
    kind = f"Dask {type(value).__name__}"
    return plain_graph(kind, nodes, producer="dask", name=type(value).__name__, facts=facts)


def _base(key: Any) -> str:
    """The part of a key that names the collection."""
    return str(key[0]) if isinstance(key, tuple) and key else str(key)


def _key_text(key: Any) -> str:
    if isinstance(key, tuple) and len(key) > 1:
        return f"{key[0]}({','.join([str(part) for part in key[1:]])})"
    return _base(key)


def _short(names: list[str]) -> dict[str, str]:
    """The names without the tokens that Dask appends; with a number where several would be one."""
    short: dict[str, str] = {}
    taken: dict[str, int] = {}
    for name in dict.fromkeys(names):
        base = _TOKEN.sub("", name) or name
        taken[base] = taken.get(base, 0) + 1
        short[name] = base if taken[base] == 1 else f"{base}_{taken[base]}"
    return short


def _labels(tasks: Mapping[Any, Any], short: Mapping[str, str]) -> dict[Any, str]:
    """The names of tasks."""
    labels: dict[Any, str] = {}
    taken: set[str] = set()
    for key in tasks:
        base = short[_base(key)]
        parts = ",".join([str(part) for part in key[1:]]) if isinstance(key, tuple) else ""
        label = f"{base}({parts})" if parts else base
        while label in taken:
            label += "_"
        taken.add(label)
        labels[key] = label
    return labels


def _called(task: Any) -> tuple[str, tuple[Any, ...]]:
    """The name of the function of a task, and its arguments."""
    function = getattr(task, "func", None)
    if function is not None:
        return _function(function), tuple(getattr(task, "args", ()) or ())
    if isinstance(task, tuple) and task and callable(task[0]):
        return _function(task[0]), task[1:]
    name = type(task).__name__
    return (name if name in {"Alias", "DataNode"} else "Data"), ()


def _function(function: Any) -> str:
    for _ in range(_MAX_DEPTH):
        name = callable_name(function)
        if name:
            return name
        inner = getattr(function, "func", None)
        if inner is None:
            break
        function = inner
    return type(function).__name__


def _needed(task: Any, tasks: Mapping[Any, Any], needed: list[Any], depth: int) -> None:
    """Add the keys that a task needs."""
    dependencies = getattr(task, "dependencies", None)
    if isinstance(dependencies, set | frozenset):
        needed.extend(sorted([key for key in dependencies if key in tasks], key=str))
        return
    if depth > _MAX_DEPTH:
        return
    if isinstance(task, tuple) and task and callable(task[0]):
        for item in task[1:]:
            _needed(item, tasks, needed, depth + 1)
    elif isinstance(task, list):
        for item in task:
            _needed(item, tasks, needed, depth + 1)
    elif isinstance(task, str | tuple):
        try:
            if task in tasks:
                needed.append(task)
        except TypeError:  # a tuple of what cannot be a key
            return


def _is_plain(value: Any) -> bool:
    return isinstance(value, bool | int | float | str) or (isinstance(value, list | tuple) and all(isinstance(item, int) for item in value))
