"""The operations of differentiated programs of JAX at which gradients end for all values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from graphcore.frontends.foreign import GradientEnd
from graphcore.frontends.jax_reader.backward import GRADIENTS

if TYPE_CHECKING:
    from graphcore.frontends.foreign import ForeignFunction, ForeignGraph, ForeignNode, InputRef

FLAT: Final[Mapping[str, str]] = {
    "round": "rounds",
    "floor": "rounds down",
    "ceil": "rounds up",
    "sign": "gives the sign",
    "is_finite": "compares",
}
"""Operations whose derivative is zero, with what they do."""
_STOP: Final = "stop_gradient"
_MOST: Final = 8
_MAX_DEPTH: Final = 20


def zero_gradients(graph: ForeignGraph, count: int) -> dict[str, list[GradientEnd]]:
    """The arguments whose gradients are zero for all values, with the operations at which these end.

    Args:
        graph: a program whose last results are gradients by its floating arguments.
        count: the number of gradients.
    """
    main = graph.main
    nodes = {node.name: node for node in main.nodes}
    inputs = [node for node in main.nodes if node.kind == "input" and _is_floating(node)]
    if not count or len(inputs) != count:
        return {}
    ways = _Ways(main, len(main.outputs) - count)
    gradients = zip(inputs, main.outputs[-count:], strict=True)
    return {node.name: ways.ends(node, graph.functions) for node, gradient in gradients if _is_zero(nodes, gradient)}


class _Ways:
    """The forward operations of a program.

    Args:
        main: the program.
        results: the number of its results that are no gradients.
    """

    def __init__(self, main: ForeignFunction, results: int) -> None:
        self._forward = [node for node in main.nodes if node.modules[:1] != GRADIENTS[:1]]
        self._takers: dict[str, list[ForeignNode]] = {}
        for node in self._forward:
            for name in dict.fromkeys([ref[0] for ref in node.inputs if ref is not None]):
                self._takers.setdefault(name, []).append(node)
        self._results = {ref[0] for ref in main.outputs[:results] if ref is not None}

    def ends(self, argument: ForeignNode, functions: Mapping[str, ForeignFunction]) -> list[GradientEnd]:
        """The operations at which the gradient by an argument ends on its way from the results."""
        carrying, ended, inside = {argument.name}, [], []
        for node in self._forward:
            if not any(ref is not None and ref[0] in carrying for ref in node.inputs):
                continue
            kind, reason = _reason(node)
            if kind:
                ended.append((node.name, kind, reason))
                continue
            carrying.add(node.name)
            within = next(_within(node, functions, 0), "")
            if within:
                inside.append((node.name, "not differentiable", within))
        ends = [
            GradientEnd(kind, name, reason, (argument.name, *way)) for name, kind, reason in ended or inside if (way := self._way(name))
        ]
        if ends:
            return ends[:_MOST]
        text = "is used by no operation on the way to the result"
        return [GradientEnd("no path", argument.name, text)]

    def _way(self, start: str) -> tuple[str, ...]:
        """A shortest way from a node to a result, none if there is none."""
        before, waiting = {start: ""}, [start]
        for name in waiting:
            if name in self._results:
                way = [name]
                while before[way[-1]]:
                    way.append(before[way[-1]])
                return tuple(reversed(way))
            for taker in self._takers.get(name, ()):
                if taker.name not in before:
                    before[taker.name] = name
                    waiting.append(taker.name)
        return ()


def _reason(node: ForeignNode) -> tuple[str, str]:
    """The kind and the reason of the end of gradients at an operation, "" if they pass it."""
    word = node.op.removeprefix("jax.")
    if word == _STOP:
        return "stop_gradient", "is jax.lax.stop_gradient, which ends gradients"
    if word in FLAT:
        return "not differentiable", f"{FLAT[word]}, so its derivative is zero"
    if node.outputs and not _is_floating(node):
        return "dtype", f"gives {node.outputs[0].dtype}: gradients flow through floating and complex arrays only"
    return "", ""


def _within(node: ForeignNode, functions: Mapping[str, ForeignFunction], depth: int) -> Iterator[str]:
    """The operations in the bodies of a node that end gradients, in words."""
    for key in node.bodies.values() if depth < _MAX_DEPTH else ():
        for inner in functions[key].nodes if key in functions else ():
            word = inner.op.removeprefix("jax.")
            if word == _STOP or word in FLAT:
                reason = "ends gradients" if word == _STOP else f"{FLAT[word]}, so its derivative is zero"
                yield f"passes nothing on: '{word}' in its body {reason}"
            yield from _within(inner, functions, depth + 1)


def _is_zero(nodes: Mapping[str, ForeignNode], ref: InputRef) -> bool:
    """True iff a gradient is zero by the program alone: a literal, or one in another shape."""
    node = None if ref is None else nodes[ref[0]]
    while node is not None and node.op == "jax.broadcast_in_dim" and len(node.inputs) == 1 and node.inputs[0] is not None:
        node = nodes[node.inputs[0][0]]
    return node is not None and node.op == "jax.literal" and str(node.attrs.get("value")) in {"0", "0.0"}


def _is_floating(node: ForeignNode) -> bool:
    return any(port.dtype.startswith(("float", "bfloat", "complex")) for port in node.outputs)
