"""gc.explain_gradient: the path of a gradient, or the exact cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from graphcore import dtypes
from graphcore.api.gradient_explanation import (
    BackwardNode,
    GradientCut,
    GradientExplanation,
    GradientPart,
    GradientStep,
    GradientSum,
)
from graphcore.api.gradients import tensors_of
from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.graph import Graph, Tensor, constant_value
from graphcore.passes.gradient_flow import Cut, Flow
from graphcore.passes.gradient_inside import cut_inside, kept_inside
from graphcore.passes.gradient_paths import GradientPaths
from graphcore.passes.gradient_trace import GradientTrace
from graphcore.passes.gradients import DIFFERENTIABLE, build_gradients
from graphcore.passes.gradients_of_reads import reads_of

_SCOPE: Final = "gradients"
_MOST_PATHS: Final = 4
_NOT_OF_A_STEP: Final = frozenset({"sum", "seed", "zeros"})


def explain_gradient(y: Any, x: Any, *, stop_gradients: Any = None) -> GradientExplanation:
    """Why the gradient of `y` by `x` is what it is: the path it takes, or what cuts it.

    Args:
        y: a tensor.
        x: a tensor or variable of the same graph.
        stop_gradients: as given to `gc.gradients`.

    Returns:
        What prints as text and shows as tables in a notebook. For a gradient that is None, every cut with the node and line that is the
        reason; otherwise the forward nodes with their backward nodes, and the sums. The graph stays as it is.

    Raises:
        InvalidArgumentError: `y` or `x` is no single tensor, or they are of different graphs.
    """
    (y_tensor,), (x_tensor,) = _single(y, "y"), _single(x, "x")
    graph = y_tensor.graph
    graph.as_graph_element(x_tensor)
    stop = tensors_of(stop_gradients or [], "stop_gradients")
    flow = Flow(y_tensor, stop)
    handle = getattr(x, "handle", None)
    if isinstance(handle, Tensor) and handle.dtype is dtypes.resource and x_tensor.node not in flow.upstream:
        # It is read in several places: one that counts is explained.
        x_tensor = next((read for read in reads_of(handle) if read.node in flow.upstream), x_tensor)
    cuts = tuple([_described(cut) for cut in flow.cuts(x_tensor)])
    if y_tensor.dtype not in DIFFERENTIABLE:
        error = f"'{y_tensor.name}' is {y_tensor.dtype.name}: only tensors of floating or complex dtype can be differentiated"
        return GradientExplanation(y=y_tensor.name, x=x_tensor.name, error=error)
    return _Trial(graph, y_tensor, x_tensor, stop).explanation(flow, cuts)


class _UndoError(Exception):
    """Ends the transaction in which a gradient is built to be looked at."""


class _Trial:
    """The gradient built, looked at and taken back."""

    def __init__(self, graph: Graph, y: Tensor, x: Tensor, stop: Sequence[Tensor]) -> None:
        self.graph = graph
        self.y = y
        self.x = x
        self.stop = stop

    def explanation(self, flow: Flow, cuts: tuple[GradientCut, ...]) -> GradientExplanation:
        found: list[GradientExplanation] = []
        try:
            with self.graph.transaction():
                self.graph.finalized = False  # the transaction brings it back
                found.append(self._look(flow, cuts))
                raise _UndoError
        except _UndoError:
            return found[0]

    def _look(self, flow: Flow, cuts: tuple[GradientCut, ...]) -> GradientExplanation:
        graph, names = self.graph, (self.y.name, self.x.name)
        built = self._built_before()
        trace = GradientTrace()
        known = set(graph.gradient_records)
        with graph.name_scope(None), graph.control_dependencies(None):
            scope = graph.unique_name(_SCOPE) + "/"
            try:
                (gradient,) = build_gradients(graph, [self.y], [self.x], [None], stop_gradients=self.stop, trace=trace)
            except GraphError as error:
                return GradientExplanation(y=names[0], x=names[1], error=error.message, cuts=cuts)
        kept = kept_inside(self.x, flow, trace)
        cuts = (*cuts, *[_described(cut_inside(self.x, flow, node, slot)) for node, slot in kept])
        if gradient is None:
            return GradientExplanation(y=names[0], x=names[1], cuts=cuts)
        made = [name for name in graph.gradient_records if name not in known]
        namer = _Namer(scope, next((old for old in built if all(old + name.removeprefix(scope) in known for name in made)), None))
        paths = GradientPaths(self.x, self.y, flow, kept)
        backward = self._backward(made, namer)
        return GradientExplanation(
            y=names[0],
            x=names[1],
            gradient=namer(gradient.name),
            kind=f"{gradient.dtype.name} {gradient.shape}",
            built=namer.old is not None or not made,
            is_zero=_is_zero(gradient),
            path_count=paths.count,
            paths=tuple([tuple([node.name for node in path]) for path in paths.shortest(_MOST_PATHS)]),
            steps=tuple(
                [
                    GradientStep(
                        node=node.name,
                        op=node.op,
                        inputs=paths.slots(node),
                        backward=tuple(backward.get(node.name, ())),
                        source=node.source,
                    )
                    for node in paths.nodes
                ]
            ),
            sums=tuple([_sum(tensor, total, trace, namer) for tensor, total in trace.sums.items() if tensor in paths.tensors]),
            cuts=cuts,
        )

    def _built_before(self) -> list[str]:
        """The scopes of earlier backward passes from y, the latest first."""
        records = self.graph.gradient_records.items()
        seeds = [name for name, record in records if record.body_node == "seed" and record.forward == self.y.node.name]
        return [name.rpartition("/")[0] + "/" for name in reversed(seeds)]

    def _backward(self, made: Sequence[str], namer: _Namer) -> dict[str, list[BackwardNode]]:
        """By the name of a forward node what it became."""
        found: dict[str, list[BackwardNode]] = {}
        for name in made:
            record, node = self.graph.gradient_records[name], self.graph.find(name)
            if node is not None and record.body_node not in _NOT_OF_A_STEP:
                found.setdefault(record.forward, []).append(BackwardNode(name=namer(name), op=node.op, body_node=record.body_node))
        return found


class _Namer:
    """The names that nodes of the trial have in the graph, or would have."""

    def __init__(self, scope: str, old: str | None) -> None:
        self.scope = scope
        self.old = old

    def __call__(self, name: str) -> str:
        if self.old is None or not name.startswith(self.scope):
            return name
        return self.old + name.removeprefix(self.scope)


def _sum(tensor: Tensor, total: Tensor, trace: GradientTrace, namer: _Namer) -> GradientSum:
    summed = set(total.node.inputs)  # what is known to be zero is not among it
    parts = [
        GradientPart(gradient=namer(gradient.name), node="" if node is None else node.name, input=slot)
        for gradient, node, slot in trace.contributions[tensor]
        if gradient in summed
    ]
    return GradientSum(tensor=tensor.name, gradient=namer(total.name), parts=tuple(parts))


def _described(cut: Cut) -> GradientCut:
    node = cut.node
    return GradientCut(
        kind=cut.kind,
        node="" if node is None else node.name,
        op="" if node is None else node.op,
        reason=cut.reason,
        source=None if node is None else node.source,
        path=tuple([step.name for step in cut.path]),
    )


def _is_zero(gradient: Tensor) -> bool:
    node = gradient.node
    if node.op == "ZerosLike":
        return True
    if node.op == "Fill":
        return _is_zero_value(node.inputs[1])
    return _is_zero_value(gradient)


def _is_zero_value(tensor: Tensor) -> bool:
    value = constant_value(tensor)
    return value is not None and value.size > 0 and not np.any(value)


def _single(value: Any, what: str) -> list[Tensor]:
    tensors = tensors_of(value, what)
    if len(tensors) != 1:
        raise InvalidArgumentError(f"explain_gradient requires one {what}, got {len(tensors)}")
    return tensors
