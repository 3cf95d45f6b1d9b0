"""Explanations of gradients in bodies under construction, with respect to tensors outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from graphcore.api.gradients.described_cuts import described
from graphcore.api.gradients.explanation import GradientCut, GradientExplanation, GradientStep
from graphcore.api.gradients.within_bodies import GradientsWithin
from graphcore.errors import GraphError
from graphcore.graph import FunctionGraph, Graph, Node, Tensor
from graphcore.passes.gradients.explanation.flow import Flow
from graphcore.passes.gradients.explanation.partial_cuts import partial_cut
from graphcore.passes.gradients.explanation.paths import MOST_COUNTED, GradientPaths

_MOST_PATHS: Final = 4
_Path = tuple[str, ...]


class _Way(NamedTuple):
    """The ways from the x to one tensor.

    Attributes:
        number: the number of paths along which the gradient flows.
        paths: the shortest of them.
        slots: the nodes on them, with the inputs by which the gradient goes on.
        cuts: the places where it stops on others.
    """

    number: int
    paths: list[_Path]
    slots: dict[Node, set[int]]
    cuts: list[GradientCut]


def explain_across(body: FunctionGraph, y: Tensor, x: Any, x_tensor: Tensor, name: str, stop: Sequence[Tensor]) -> GradientExplanation:
    """Explain the gradient of `y`, in a body under construction, with respect to `x` outside of it.

    Args:
        body: the body.
        y: a tensor of the body.
        x: a tensor or variable of a graph around it.
        x_tensor: its tensor.
        name: its name.
        stop: tensors that gradients do not flow through.
    """
    within = GradientsWithin(body, [y], [x], [x_tensor])
    try:
        within.check(body, [y])
    except GraphError as error:
        return GradientExplanation(y=y.name, x=name, error=error.message)
    way = _Explainer(within, stop).way(body, y)
    cuts = tuple(dict.fromkeys(way.cuts))
    if not way.number:
        none = GradientCut(kind="no path", node="", op="", reason=f"'{y.name}' does not depend on '{name}'")
        return GradientExplanation(y=y.name, x=name, cuts=cuts or (none,))
    steps = [
        GradientStep(node=node.name, op=node.op, inputs=tuple(sorted(slots)), backward=(), source=node.source, is_tried=False)
        for node, slots in way.slots.items()
        if node.op != "_Arg"
    ]
    return GradientExplanation(
        y=y.name,
        x=name,
        gradient=f"gradients/{x_tensor.node.name}:0",
        kind=f"{x_tensor.dtype.base.text} {x_tensor.shape}",
        path_count=min(way.number, MOST_COUNTED),
        paths=tuple(sorted(way.paths, key=len)[:_MOST_PATHS]),
        steps=tuple(steps),
        cuts=cuts,
    )


class _Explainer:
    def __init__(self, within: GradientsWithin, stop: Sequence[Tensor]) -> None:
        self.within = within
        self.stop = stop

    def way(self, graph: Graph, y: Tensor) -> _Way:
        """The ways from the x to `y`, a tensor of `graph`, in it and outside."""
        flow = Flow(y, [tensor for tensor in self.stop if tensor.graph is graph])
        total = _Way(0, [], {}, [])
        for read in self.within.reads[graph][0]:
            total = _joined(total, self._inside(flow, y, read), _Way(1, [(read.node.name,)], {}, []))
        captures = graph.captures.items() if isinstance(graph, FunctionGraph) and graph.outer is not None else ()
        own = set(self.within.reads[graph][0])
        for outer, argument in captures:
            if argument in own or argument.node not in flow.upstream:
                continue
            outside = self.way(outer.graph, outer)
            if outside.number or outside.cuts:
                total = _joined(total, self._inside(flow, y, argument), outside)
        return total

    def _inside(self, flow: Flow, y: Tensor, x: Tensor) -> _Way:
        """The ways from a read or an argument to `y`, of the same graph."""
        if x is not y and x not in flow.consumers:
            return _Way(0, [], {}, [])
        paths = GradientPaths(x, y, flow)
        partial = [partial_cut(node, paths.slots(node), x, flow) for node in paths.nodes if paths.slots(node)]
        cuts = [described(cut) for cut in [*flow.cuts(x), *partial] if cut is not None and cut.node is not None]
        shortest = [tuple([node.name for node in path]) for path in paths.shortest(_MOST_PATHS)]
        return _Way(paths.count, shortest, {node: set(paths.slots(node)) for node in paths.nodes}, cuts)


def _joined(total: _Way, inside: _Way, outside: _Way) -> _Way:
    """`total` with the ways that go through `outside`, and then through `inside`."""
    count = inside.number * outside.number
    cuts = [*total.cuts, *(inside.cuts if outside.number else []), *(outside.cuts if inside.number else [])]
    if not count:
        return total._replace(cuts=cuts)
    slots = {node: set(node_slots) for node, node_slots in total.slots.items()}
    for part in (inside.slots, outside.slots):
        for node, node_slots in part.items():
            slots.setdefault(node, set()).update(node_slots)
    paths = [(*before, *after[1:]) for before in outside.paths for after in inside.paths]
    return _Way(total.number + count, [*total.paths, *paths], slots, cuts)
