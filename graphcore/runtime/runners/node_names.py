"""The names of the nodes of a source in the graph that shows it, in functions too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from urllib.parse import quote, unquote

from graphcore.runtime.core.value_records import Bodies

Inner = Callable[[str], "tuple[str, Mapping[str, str]] | None"]
"""Gives the name in the graph of a function of the source, and the names of its nodes; None if the graph has no such function."""


def inner_call(around: str, node: str, function: str, number: int = 1) -> str:
    """The `call` of nodes in a function, as a `Watch` takes it.

    It is like `Event.call`, with the names of the source, in which `:`, `>` and `#` are encoded.

    Args:
        around: the `call` of the node that calls, "" outside of functions.
        node: that node, by its name in the source.
        function: the key of the function.
        number: the number of the function's run by that run of the node, from 1.
    """
    segment = f"{quote(node, safe='/')}:{quote(function, safe='/')}{f'#{number}' if number > 1 else ''}"
    return f"{around} > {segment}" if around else segment


class NodeNames:
    """The names of nodes in a graph, by those in its source.

    Args:
        names: those outside of functions; a node that has none keeps its own.
        inner: gives those in functions.
        bodies: gives the nodes of a function of the graph by its name there.
    """

    def __init__(self, names: Mapping[str, str], inner: Inner | None = None, bodies: Bodies | None = None) -> None:
        self.bodies = bodies
        self._inner = inner
        self._calls: dict[str, tuple[str, Mapping[str, str]]] = {"": ("", names)}

    def place(self, call: str, node: str) -> tuple[str, str]:
        """The surrounding calls and the name of a node in the graph.

        Args:
            call: the surrounding calls in the source, as of `inner_call`.
            node: the name in the source.
        """
        shown, names = self._around(call)
        return shown, names.get(node, node)

    def outermost(self, call: str, node: str) -> str:
        """The node of the graph itself in which a node runs."""
        return self.place("", unquote(call.partition(":")[0]))[1] if call else self.place("", node)[1]

    def _around(self, call: str) -> tuple[str, Mapping[str, str]]:
        cached = self._calls.get(call)
        if cached is None:
            around, _, segment = call.rpartition(" > ")
            shown, names = self._around(around)
            caller, _, function = segment.partition(":")
            key, mark, number = function.partition("#")
            caller, key = unquote(caller), unquote(key)
            title, inner = (None if self._inner is None else self._inner(key)) or (key, {})
            text = f"{names.get(caller, caller)}:{title}{mark}{number}"
            cached = self._calls[call] = f"{shown} > {text}" if shown else text, inner
        return cached
