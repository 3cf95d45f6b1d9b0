"""Names of XLA's profiles on pictures of JAX: `jit(f)/jvp(layer)/dot_general` is a node or several."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from graphcore.frontends.jax_reader.backward import is_backward, without_words
from graphcore.frontends.record import foreign_of

if TYPE_CHECKING:
    from graphcore.graph import Graph

_START: Final = ("jit(", "pjit(")
_CALL: Final = re.compile(r"p?jit\((.*)\)")
_NUMBER: Final = re.compile(r"_\d+$")
_LOOPS: Final = {"while": ("jax.while", "jax.scan")}
"""The ops that XLA runs as a loop."""


def of_jax(graph: Graph, numbers: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Numbers by node, where their names are those of XLA; others stay.

    What XLA does in a function or a loop counts for the node that calls it. Equations of one op in one scope have one name there: each gets
    an equal part of its number.

    Args:
        graph: the graph.
        numbers: the numbers of a profile, by name.
    """
    foreign = foreign_of(graph)
    if foreign is None or foreign.source.kind != "JAX program":
        return numbers
    nodes: dict[str, list[str]] = defaultdict(list)
    for name, record in foreign.nodes.items():
        if record.kind == "op":
            nodes[_NUMBER.sub("", name)].append(name)
            scope = name.rpartition("/")[0]
            for word, ops in _LOOPS.items():
                if record.op in ops and name.rpartition("/")[2] != word:
                    nodes[f"{scope}/{word}" if scope else word].append(name)
    sums: dict[Any, Any] = {}
    for name, number in numbers.items():
        called = _nodes_of(name, nodes) if isinstance(name, str) and name.startswith(_START) else []
        for node in called:
            sums[node] = sums.get(node, 0.0) + number / len(called)
        if not called:
            sums[name] = number
    return sums


def _nodes_of(name: str, nodes: Mapping[str, list[str]]) -> list[str]:
    """The nodes that a name stands for, none if the graph has no such one."""
    prefixes = ("gradients/", "") if is_backward(name) else ("",)
    words = [without_words(part) for part in name.split("/")[1:]]
    calls = [_CALL.fullmatch(word) for word in words]
    plain = [word if call is None else call[1] for word, call in zip(words, calls, strict=True) if word]
    if plain[:1] == ["main"]:
        del plain[0]
    for prefix in prefixes:
        for end in range(1, len(plain) + 1):
            called = nodes.get(prefix + "/".join(plain[:end]))
            if called:
                return called
    return []
