"""The inputs of node definitions taken apart, and the consumers of each node."""

from __future__ import annotations

from functools import lru_cache

from graphcore.difference.state import GraphState

CONTROL = "^"
"""The output of a node that its control edges come from, and the slot that they lead to."""


@lru_cache(maxsize=200_000)
def parse_input(text: str) -> tuple[str, str]:
    """Producer and output of an input.

    `("x", "1")` for `x:1`, `("x", "y:0")` for a body's `x:y:0`, `("x", "^")` for `^x`.
    """
    if text[:1] == CONTROL:
        return text[1:], CONTROL
    name, _, output = text.partition(":")
    return name, output or "0"


def input_text(name: str, output: str) -> str:
    """The text of an input: the inverse of `parse_input`."""
    if output == CONTROL:
        return CONTROL + name
    return name if output == "0" else f"{name}:{output}"


class Wiring:
    """The edges of a state by both of their ends.

    Attributes:
        inputs: the data inputs of each node as pairs of producer and output, in the order of slots.
        controls: the producers of its control inputs.
        consumers: for each producer its consumers, with their slot (-1 for control edges) and the output that they use.
    """

    def __init__(self, state: GraphState) -> None:
        self.inputs: dict[str, list[tuple[str, str]]] = {}
        self.controls: dict[str, list[str]] = {}
        self.consumers: dict[str, list[tuple[str, int, str]]] = {}
        for name, node in state.nodes.items():
            data: list[tuple[str, str]] = []
            controls: list[str] = []
            for text in node.node_def.input:
                producer, output = pair = parse_input(text)
                if output == CONTROL:
                    controls.append(producer)
                    self.consumers.setdefault(producer, []).append((name, -1, output))
                else:
                    self.consumers.setdefault(producer, []).append((name, len(data), output))
                    data.append(pair)
            self.inputs[name] = data
            self.controls[name] = controls
