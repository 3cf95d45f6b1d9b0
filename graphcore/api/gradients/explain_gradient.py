"""`gc.explain_gradient`: the path of a gradient, or the nodes that cut it."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from functools import partial
from importlib import import_module
from types import FunctionType, MethodType
from typing import Any, Final

from graphcore import dtypes
from graphcore.api.gradients.described_cuts import described
from graphcore.api.gradients.explain_within import explain_across
from graphcore.api.gradients.explanation import (
    BackwardNode,
    GradientCut,
    GradientExplanation,
    GradientPart,
    GradientStep,
    GradientSum,
)
from graphcore.api.gradients.gradients import result_name, tensors_of
from graphcore.api.gradients.of_jax.arrays import is_of_jax
from graphcore.api.gradients.variable_reads import check_read_outside
from graphcore.api.gradients.within_bodies import check_in_reach
from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.frontends.frontend import Call
from graphcore.frontends.torch_reader.objects import is_class
from graphcore.graph import FunctionGraph, Node, Tensor
from graphcore.graph.model.topological_order import renew_stale_ranks
from graphcore.passes.gradients.bodies.variable_reads import reads_of
from graphcore.passes.gradients.explanation.cuts_in_functions import cut_inside, kept_inside
from graphcore.passes.gradients.explanation.flow import Cut, Flow
from graphcore.passes.gradients.explanation.partial_cuts import partial_cut
from graphcore.passes.gradients.explanation.paths import MOST_COUNTED, GradientPaths
from graphcore.passes.gradients.node_gradients import DIFFERENTIABLE
from graphcore.passes.gradients.slices import Part, Slices, combined, gradients_of_reads
from graphcore.passes.gradients.trace import GradientTrace
from graphcore.passes.infra.zero_analysis import is_zeros
from graphcore.support.gc_pause import paused_collector

_SCOPE: Final = "gradients"
_MOST_PATHS: Final = 4
_NOT_OF_A_STEP: Final = frozenset({"sum", "seed", "zeros"})


def explain_gradient(y: Any, x: Any, *, stop_gradients: Any = None, optimizer: Any = None) -> GradientExplanation:
    """Explain the gradient of `y` with respect to `x`: its path, or the nodes that cut it.

    Args:
        y: a tensor. For PyTorch a function without arguments that computes the loss, which is called once on copies of all modules and tensors; or
            a tensor of PyTorch, whose record names no lines. For JAX such a function too, or a `functools.partial` of a function or of its
            `jax.grad` with all arguments; it is computed once, equation by equation.
        x: a tensor or variable of the same graph; for a resource variable all reads that `y` uses, and their sum. For PyTorch a tensor, or the
            dotted name of one in a module, such as "fc.weight". For JAX an array that the function uses, or its name, such as "params['w']".
        stop_gradients: that of `gc.gradients`.
        optimizer: for PyTorch the optimizer that is to change `x`: a note says where its steps leave it as it is.

    Returns:
        An explanation that prints as text and shows as tables in a notebook. For a gradient that is None, it lists every cut with the
        responsible node and line; otherwise the forward nodes with their backward nodes, and the sums. The graph is unchanged.

    Raises:
        InvalidArgumentError: `y` or `x` is no single tensor, or they are of different graphs.

    Example:
        >>> x = gc.constant(2.0, name="x")
        >>> y = gc.square(gc.stop_gradient(x, name="stop"), name="y")
        >>> print(gc.explain_gradient(y, x))
        the gradient of 'y:0' by 'x:0' is None
          stop_gradient: 'stop' stops gradients: that is what gc.stop_gradient is for ...
              x -> stop -> y
    """
    is_torch = isinstance(y, Call | FunctionType | MethodType | partial) or is_class(y, "Tensor", "torch")
    if optimizer is not None and (is_of_jax(y, x) or not is_torch):
        raise InvalidArgumentError(f"explain_gradient takes an optimizer for gradients of PyTorch; y is a {type(y).__name__}")
    if is_of_jax(y, x):
        of_jax: GradientExplanation = import_module("graphcore.api.gradients.of_jax.explain").explain_jax(y, x)
        return of_jax
    if is_torch:
        if "torch" not in sys.modules:
            raise InvalidArgumentError(f"explain_gradient requires a tensor, or a function where torch is imported, got {type(y).__name__}")
        explained: GradientExplanation = import_module("graphcore.api.gradients.of_torch.explain").explain_torch(y, x, optimizer)
        return explained
    with paused_collector():
        return _explained(y, x, stop_gradients)


def _explained(y: Any, x: Any, stop_gradients: Any) -> GradientExplanation:
    """See `explain_gradient`."""
    (y_tensor,), (x_tensor,) = _single(y, "y"), _single(x, "x")
    graph = y_tensor.graph.building()
    stop = tensors_of(stop_gradients or [], "stop_gradients")
    if (
        isinstance(graph, FunctionGraph)
        and y_tensor.dtype in DIFFERENTIABLE
        and (x_tensor.graph is not graph or y_tensor.graph is not graph)
    ):
        check_in_reach(graph, [x_tensor, y_tensor, *stop])
        y_within = graph.as_graph_element(y_tensor)
        assert isinstance(y_within, Tensor)
        return explain_across(graph, y_within, x, x_tensor, getattr(x, "name", x_tensor.name), stop)
    graph.settle()
    graph.as_graph_element(x_tensor)
    flow = Flow(y_tensor, stop)
    handle = getattr(x, "handle", None)
    variable = handle if isinstance(handle, Tensor) and handle.dtype is dtypes.resource else None
    reads = [x_tensor] if variable is None else reads_that_count(x_tensor, variable, flow)
    name = (
        variable.name
        if variable is not None and (len(reads) > 1 or reads[0].node.registration.traits.reads_variable == "rows")
        else reads[0].name
    )
    if y_tensor.dtype not in DIFFERENTIABLE:
        reason = f"gives '{y_tensor.name}', which is {y_tensor.dtype.text}: only floating and complex tensors have gradients"
        return GradientExplanation(y=y_tensor.name, x=name, cuts=(described(Cut("dtype", y_tensor.node, reason, ())),))
    cuts = tuple(dict.fromkeys([described(cut) for read in reads for cut in flow.cuts(read)]))
    if variable is not None:
        try:
            check_read_outside([y_tensor], variable)
        except GraphError as error:
            return GradientExplanation(y=y_tensor.name, x=name, error=error.message, cuts=cuts)
    return _Trial(y_tensor, name, result_name(x), reads, variable, stop, is_variable=isinstance(handle, Tensor)).explanation(flow, cuts)


def reads_that_count(first: Tensor, handle: Tensor, flow: Flow) -> list[Tensor]:
    """The reads of a variable that `y` depends on, in the order in which gradients are summed.

    If there are none, the variable's value.
    """
    reads = dict.fromkeys([first, *reads_of(handle)])
    return [read for read in reads if read is flow.y or read.node in flow.upstream] or [first]


class _UndoError(Exception):
    """Ends the transaction of a trial gradient."""


class _Trial:
    """A gradient built on trial, examined and rolled back.

    Args:
        y: the tensor to differentiate.
        name: the name of x.
        result: the name of the gradient within the scope of its call.
        xs: the tensors to differentiate with respect to: one, or the reads of a variable.
        variable: the handle of that variable, None for another tensor, or a reference.
        is_variable: True for a variable, reference or resource.
        stop: the `stop_gradients` of `gc.gradients`.
    """

    def __init__(
        self, y: Tensor, name: str, result: str, xs: Sequence[Tensor], variable: Tensor | None, stop: Sequence[Tensor], *, is_variable: bool
    ) -> None:
        self.graph = y.graph
        self.result = result
        self.y = y
        self.name = name
        self.xs = xs
        self.variable = variable
        self.is_variable = is_variable
        self.stop = stop

    def explanation(self, flow: Flow, cuts: tuple[GradientCut, ...]) -> GradientExplanation:
        explanations: list[GradientExplanation] = []
        try:
            with self.graph.transaction():
                self.graph.finalized = False  # the transaction restores it
                explanations.append(self._look(flow, cuts))
                raise _UndoError
        except _UndoError:
            return explanations[0]

    def _look(self, flow: Flow, cuts: tuple[GradientCut, ...]) -> GradientExplanation:
        graph, names = self.graph, (self.y.name, self.name)
        graph.drop_unmade([self.y, *self.xs, *self.stop])
        built = self._built_before()
        trace = GradientTrace()
        records_before, first_new = set(graph.gradient_records), graph.num_node_ids
        with graph.name_scope(None), graph.control_dependencies(None):
            scope = graph.unique_name(_SCOPE) + "/"
            try:
                parts = gradients_of_reads(
                    graph,
                    [self.y],
                    self.xs,
                    [None],
                    of_variables=range(len(self.xs)) if self.is_variable else (),
                    name=scope,
                    stop_gradients=self.stop,
                    simplify=True,
                    trace=trace,
                )
                new_names = self._made_since(records_before)
                whole = combined(graph, parts, scope)
                gradient = whole.values if isinstance(whole, Slices) else whole
            except GraphError as error:
                return GradientExplanation(y=names[0], x=names[1], error=error.message, cuts=cuts)
        kept = {x: kept_inside(x, flow, trace) for x in self.xs}
        inside = [described(cut_inside(x, flow, node, slot)) for x in self.xs for node, slot in kept[x]]
        dropped = [described(Cut("dropped", node, f"has op {node.op}; {reason}", ())) for node, reason in trace.dropped.items()]
        cuts = tuple(dict.fromkeys([*cuts, *inside, *dropped]))
        if gradient is None:
            return GradientExplanation(y=names[0], x=names[1], cuts=cuts)
        old = next((old for old in built if all(old + name.removeprefix(scope) in records_before for name in new_names)), None)
        namer = _Namer(scope, old)
        path_sets = [GradientPaths(x, self.y, flow, kept[x]) for x, part in zip(self.xs, parts, strict=True) if part is not None]
        partial = [partial_cut(node, paths.slots(node), paths.x, flow) for paths in path_sets for node in paths.nodes if paths.slots(node)]
        cuts = tuple(dict.fromkeys([*cuts, *[described(cut) for cut in partial if cut is not None]]))
        backward = self._backward(self._made_since(records_before), namer)
        slots = {node: sorted({slot for paths in path_sets for slot in paths.slots(node)}) for node in _consumers_first(path_sets)}
        slots.update(
            {
                paths.x.node: [0]
                for paths in path_sets
                if self.variable is not None and paths.x.node.registration.traits.reads_variable == "rows"
            }
        )
        tensors = frozenset[Tensor]().union(*[paths.tensors for paths in path_sets])
        sums = [_sum(tensor, total, trace, namer) for tensor, total in trace.sums.items() if tensor in tensors]
        result = graph.find(namer(scope + self.result))
        return GradientExplanation(
            y=names[0],
            x=names[1],
            gradient=namer(gradient.name) if old is not None and result is None else f"{namer(scope + self.result)}:0",
            kind=f"{gradient.dtype.text} {gradient.shape}{', slices' if isinstance(whole, Slices) else ''}",
            built=graph.get_tensor_by_name(namer(gradient.name)).node.id < first_new,
            is_zero=is_zeros(gradient),
            path_count=min(sum(paths.count for paths in path_sets), MOST_COUNTED),
            paths=_shortest(path_sets),
            steps=tuple(
                [
                    GradientStep(
                        node=node.name, op=node.op, inputs=tuple(taken), backward=tuple(backward.get(node.name, ())), source=node.source
                    )
                    for node, taken in slots.items()
                ]
            ),
            sums=(*sums, *self._sum_of_reads(parts, gradient, namer)),
            cuts=cuts,
        )

    def _made_since(self, before: Collection[str]) -> list[str]:
        """The nodes of gradients that were not there `before`."""
        return [name for name in self.graph.gradient_records if name not in before]

    def _sum_of_reads(self, parts: Sequence[Part], total: Tensor, namer: _Namer) -> list[GradientSum]:
        """The sum over a variable's reads: each read passes the gradient of its value to its input 0."""
        summed_parts = [
            GradientPart(gradient=namer((part.values if isinstance(part, Slices) else part).name), node=x.node.name, input=0)
            for x, part in zip(self.xs, parts, strict=True)
            if part is not None
        ]
        if len(summed_parts) < 2:
            return []
        return [GradientSum(tensor=self.name, gradient=namer(total.name), parts=tuple(summed_parts))]

    def _built_before(self) -> list[str]:
        """The scopes of earlier backward passes from y, the latest first."""
        records = self.graph.gradient_records.items()
        seeds = [name for name, record in records if record.body_node == "seed" and record.forward == self.y.node.name]
        return [name.rpartition("/")[0] + "/" for name in reversed(seeds)]

    def _backward(self, names: Sequence[str], namer: _Namer) -> dict[str, list[BackwardNode]]:
        """The backward nodes by the name of their forward node."""
        backward_nodes: dict[str, list[BackwardNode]] = {}
        for name in names:
            record, node = self.graph.gradient_records[name], self.graph.find(name)
            if node is not None and record.body_node not in _NOT_OF_A_STEP:
                backward_nodes.setdefault(record.forward, []).append(BackwardNode(name=namer(name), op=node.op, body_node=record.body_node))
        return backward_nodes


class _Namer:
    """The names of the trial's tensors and nodes in the graph, or the names they would get.

    Args:
        scope: the scope of the trial's backward pass.
        old: the scope of an equal pass that was built before, None if there is none.
    """

    def __init__(self, scope: str, old: str | None) -> None:
        self.scope = scope
        self.old = old

    def __call__(self, name: str) -> str:
        return self.old + name.removeprefix(self.scope) if self.old is not None and name.startswith(self.scope) else name


def _consumers_first(path_sets: Sequence[GradientPaths]) -> list[Node]:
    """The nodes on any of several sets of paths, consumers before producers."""
    if len(path_sets) == 1:
        return path_sets[0].nodes
    renew_stale_ranks(path_sets[0].x.graph)
    return sorted({node for paths in path_sets for node in paths.nodes}, key=lambda node: node.rank, reverse=True)


def _shortest(path_sets: Sequence[GradientPaths]) -> tuple[tuple[str, ...], ...]:
    shortest = sorted([path for paths in path_sets for path in paths.shortest(_MOST_PATHS)], key=len)
    return tuple([tuple([node.name for node in path]) for path in shortest[:_MOST_PATHS]])


def _sum(tensor: Tensor, total: Tensor, trace: GradientTrace, namer: _Namer) -> GradientSum:
    summed = set(total.node.inputs)  # terms known to be zero are left out
    parts = [
        GradientPart(gradient=namer(gradient.name), node="" if node is None else node.name, input=slot)
        for gradient, node, slot in trace.contributions[tensor]
        if gradient in summed
    ]
    return GradientSum(tensor=tensor.name, gradient=namer(total.name), parts=tuple(parts))


def _single(value: Any, what: str) -> list[Tensor]:
    tensors = tensors_of(value, what)
    if len(tensors) != 1:
        raise InvalidArgumentError(f"explain_gradient requires one {what}, got {len(tensors)}")
    return tensors
