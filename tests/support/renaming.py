"""Graphs with other names."""

from __future__ import annotations

import random

import msgspec

import graphcore as gc


def renamed(graph: gc.Graph, seed: int = 1) -> gc.Graph:
    """The same graph with random names."""
    draw = random.Random(seed)
    definition = graph.as_graph_def()
    names = {node.name: f"n{draw.getrandbits(40):010x}" for node in definition.node}

    def of(text: str) -> str:
        name, colon, slot = text.removeprefix("^").partition(":")
        return ("^" if text.startswith("^") else "") + names[name] + colon + slot

    nodes = [
        msgspec.structs.replace(
            node,
            name=names[node.name],
            input=tuple([of(text) for text in node.input]),
            attr={key: value for key, value in node.attr.items() if key != "_class"},
        )
        for node in definition.node
    ]
    result = gc.Graph()
    gc.import_graph_def(msgspec.structs.replace(definition, node=tuple(nodes)), result, allow_unknown_ops=True, prefix="")
    return result
