"""Arguments of nodes: which of them are inputs, attrs or bodies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from graphcore.frontends.foreign import Attr, InputRef

_MAX_DEPTH: Final = 20


@dataclass(frozen=True, slots=True)
class Named:
    """A value of the graph by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class Body:
    """A graph that a node calls, by its key."""

    key: str


@dataclass(slots=True)
class Collected:
    """The arguments of a node.

    Attributes:
        inputs, names: the inputs and the names of their arguments.
        attrs: the other arguments.
        bodies: the keys of called graphs in order.
        before: the number of inputs before the last of these.
    """

    inputs: list[InputRef] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    attrs: dict[str, Attr] = field(default_factory=dict)
    bodies: list[str] = field(default_factory=list)
    before: int = 0


def collect(arguments: Iterable[tuple[str, object]], ref: Callable[[str], InputRef], shown: Mapping[str, str]) -> Collected:
    """Sort the arguments of a node.

    Args:
        arguments: names and values: `Named`, `Body`, plain values, and lists and tables of these.
        ref: the node and output behind the name of a value.
        shown: texts for values that are symbolic sizes.
    """
    collected = Collected()
    for number, (name, value) in enumerate(arguments):
        _add(collected, name, value, ref, shown, number, 0)
    return collected


def _add(
    collected: Collected,
    name: str,
    value: object,
    ref: Callable[[str], InputRef],
    shown: Mapping[str, str],
    number: int,
    depth: int,
) -> None:
    if value is None or depth > _MAX_DEPTH:
        return
    if isinstance(value, Named):
        collected.inputs.append(ref(value.name))
        collected.names.append(name)
        if value.name in shown and name:
            collected.attrs[name] = shown[value.name]
    elif isinstance(value, Body):
        collected.bodies.append(value.key)
        collected.before = len(collected.inputs)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            _add(collected, f"{name}[{key}]" if name else str(key), item, ref, shown, number, depth + 1)
    elif isinstance(value, list | tuple):
        if not _holds_values(value, 0):
            collected.attrs[name or f"argument {number}"] = _plain(value, shown, 0)
            return
        for index, item in enumerate(value):
            if isinstance(item, Named | list | tuple | Mapping | Body):
                _add(collected, f"{name}[{index}]" if name else "", item, ref, {}, number, depth + 1)
        if any(item is not None and not isinstance(item, Named | list | tuple) for item in value):
            collected.attrs[name or f"argument {number}"] = _plain(value, shown, 0)
    else:
        collected.attrs[name or f"argument {number}"] = _plain(value, shown, 0)


def _holds_values(value: object, depth: int) -> bool:
    if isinstance(value, Named | Body):
        return True
    if isinstance(value, Mapping):
        value = list(value.values())
    return isinstance(value, list | tuple) and depth < _MAX_DEPTH and any(_holds_values(item, depth + 1) for item in value)


def _plain(value: object, shown: Mapping[str, str], depth: int) -> Attr:
    """A value as that of an attr: values of the graph by their names, sizes by their symbols."""
    if isinstance(value, Named):
        return shown.get(value.name, value.name)
    if isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, list | tuple) and depth < _MAX_DEPTH:
        return [_plain(item, shown, depth + 1) for item in value]
    return "None" if value is None else str(value)[:200]


def arguments_of_body(collected: Collected, count: int) -> tuple[int, ...]:
    """The inputs of a node that are the arguments of a body that takes `count`."""
    after = len(collected.inputs) - collected.before
    if after == count:
        return tuple(range(collected.before, len(collected.inputs)))
    if len(collected.inputs) == count:
        return tuple(range(count))
    return (-1,) * count
