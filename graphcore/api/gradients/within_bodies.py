"""Gradients taken within branches, loops and functions, also of what is outside of these."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from graphcore.api.gradients.variable_reads import check_read_outside
from graphcore.dtypes import resource
from graphcore.errors import UnimplementedError
from graphcore.graph import FunctionGraph, Graph, Tensor
from graphcore.graph.graph import surrounding
from graphcore.passes.gradients.around_bodies import OuterPass, tensors_between
from graphcore.passes.gradients.bodies.variable_reads import reads_of
from graphcore.passes.gradients.node_gradients import DIFFERENTIABLE
from graphcore.passes.gradients.slices import Part, combined, gradients_of_reads
from graphcore.plumbing import IDENTITY


class GradientsWithin:
    """The gradients of tensors in a body, or around it, by nodes of the body.

    A gradient goes on outside where the body captures a tensor. Through loop variables it does not: their values in other rounds count as
    constants, and a start that depends on an x is refused, as in TensorFlow 1.

    Args:
        body: the body that is being built.
        ys: tensors of the body.
        xs: tensors and variables of the body, and of the graphs around it.
        tensors: for each x its tensor.

    Attributes:
        reads: for each graph, the tensors there that are an x, or reads of it, by the number of the x.
    """

    def __init__(self, body: FunctionGraph, ys: Sequence[Tensor], xs: Sequence[Any], tensors: Sequence[Tensor]) -> None:
        self.body = body
        self.ys = list(ys)
        self.xs = list(xs)
        self.tensors = list(tensors)
        self.levels: list[Graph] = [body, *surrounding(body)]
        self.reads: dict[Graph, list[list[Tensor]]] = {}
        self._captures: dict[Graph, list[tuple[Tensor, Tensor]]] = {}
        self._targets: dict[Graph, list[Tensor]] = {}
        for graph in reversed(self.levels):
            self.reads[graph] = [self._reads_of(graph, number) for number in range(len(self.xs))]
            self._captures[graph] = self._captures_of_interest(graph)
            own = [read for reads in self.reads[graph] for read in reads]
            self._targets[graph] = own + [argument for _, argument in self._captures[graph]]

    def find(self, seeds: Sequence[Tensor | None], stop: Sequence[Tensor], name: str, *, simplify: bool) -> list[Part]:
        """The gradient of each x.

        Args:
            seeds: the gradients of the ys, None for ones.
            stop: tensors that gradients do not flow through.
            name: the name scope.
            simplify: that of `gc.gradients`.
        """
        parts: list[list[Part]] = [[] for _ in self.xs]
        arriving: dict[Tensor, Tensor] = {}
        for graph in self.levels:
            inside = graph is self.body
            if not inside and not arriving:
                break
            captures, reads, wanted = self._captures[graph], self.reads[graph], self._targets[graph]
            owners = [x for x, tensors in zip(self.xs, reads, strict=True) for _ in tensors]
            of_variables = [i for i, x in enumerate(owners) if _is_variable(x)]
            if inside:
                self.check(graph, self.ys)
                results = gradients_of_reads(
                    self.body,
                    self.ys,
                    wanted,
                    seeds,
                    of_variables=of_variables,
                    name=name,
                    stop_gradients=[tensor for tensor in stop if tensor.graph is graph],
                    simplify=simplify,
                )
            else:
                self.check(graph, list(arriving))
                outer = OuterPass(self.body, graph, arriving, wanted, of_variables)
                results = outer.run([tensor for tensor in stop if tensor.graph is graph], name, simplify=simplify)
                self.body.note_outside(graph, outer.used)
            remaining = iter(results)
            for mine, tensors in zip(parts, reads, strict=True):
                mine += islice(remaining, len(tensors))
            arriving = {outer: gradient for (outer, _), gradient in zip(captures, remaining, strict=True) if isinstance(gradient, Tensor)}
        return [combined(self.body, part, name) for part in parts]

    # ---- where gradients go ------------------------------------------------------------------------------------------

    def _reads_of(self, graph: Graph, number: int) -> list[Tensor]:
        """The tensors of one graph that are an x, or reads of it."""
        x, tensor = self.xs[number], self.tensors[number]
        own = [tensor] if tensor.graph is graph else []
        if not _is_variable(x):
            return own
        handle = self._handle(graph, x)
        own += [read for read in reads_of(handle) if read not in own] if handle is not None else []
        captures = graph.captures if isinstance(graph, FunctionGraph) else {}
        outside = [] if graph.outer is None else [copy for read in self.reads[graph.outer][number] for copy in _with_copies(read)]
        others = {other for i, other in enumerate(self.tensors) if i != number}
        return own + [captures[read] for read in outside if read in captures and read not in others]

    def _handle(self, graph: Graph, x: Any) -> Tensor | None:
        """The handle of a resource, or of a reference variable that the body changes, as it is in a graph."""
        handle = getattr(x, "handle", None)
        if not isinstance(handle, Tensor):
            return None
        if handle.dtype is not resource:
            handle = next((body.references.get(x.snapshot) for body in self.levels if isinstance(body, FunctionGraph)), None)
        return None if handle is None else _within(graph, handle)

    def _captures_of_interest(self, graph: Graph) -> list[tuple[Tensor, Tensor]]:
        """The captured tensors outside that depend on an x there, with their arguments."""
        if not isinstance(graph, FunctionGraph) or graph.outer is None or graph.outer not in self._targets:
            return []
        targets = self._targets[graph.outer]
        flowing = [(outer, argument) for outer, argument in graph.captures.items() if outer.dtype in DIFFERENTIABLE]
        wanted = frozenset(targets)
        between = tensors_between(targets, [outer for outer, _ in flowing]) if targets else set()
        own = {read for reads in self.reads[graph] for read in reads}
        return [pair for pair in flowing if pair[1] not in own and (pair[0] in wanted or pair[0] in between)]

    def check(self, graph: Graph, ys: Sequence[Tensor]) -> None:
        """Refuse what gradients would miss.

        Raises:
            UnimplementedError: a function reads a variable by its handle, or a loop variable begins with what depends on an x.
        """
        for x in self.xs:
            handle = self._handle(graph, x)
            if handle is not None:
                check_read_outside(list(ys), handle)
        starts = graph.starts if isinstance(graph, FunctionGraph) else {}
        outer = graph.outer
        if not starts or outer is None or not self._targets[outer]:
            return
        targets = frozenset(self._targets[outer])
        between = tensors_between(targets, list(starts.values()))
        through = [argument for argument, start in starts.items() if start in targets or start in between]
        for argument in through:
            if argument in ys or not tensors_between([argument], ys).isdisjoint(ys):
                names = ", ".join([repr(tensor.name) for tensor in self.tensors if tensor.graph is not graph])
                raise UnimplementedError.at(
                    starts[argument].node,
                    f"Cannot compute gradients in {graph.place} with respect to {names}: they go through the initial value of a loop variable, "
                    f"'{starts[argument].name}'",
                ).advise(
                    "Differentiate by the loop variable, or by what the loop does not change; or take the gradient of the result of the loop, "
                    "outside.",
                    required="an x that no loop variable begins with",
                    came=names,
                )


def _with_copies(read: Tensor) -> list[Tensor]:
    """A read of a variable, and if that is a reference the values read from it."""
    if not read.dtype.is_ref:
        return [read]
    consumers = read.graph.tensor_consumers(read)
    return [read, *[node.outputs[0] for node, slot in consumers if slot == 0 and node.op == IDENTITY]]


def _is_variable(x: Any) -> bool:
    return isinstance(getattr(x, "handle", None), Tensor)


def _within(graph: Graph, tensor: Tensor) -> Tensor | None:
    """The argument of a body for a tensor outside, or the tensor itself in its graph; None for none."""
    if tensor.graph is graph:
        return tensor
    if not isinstance(graph, FunctionGraph) or graph.outer is None:
        return None
    outside = _within(graph.outer, tensor)
    return None if outside is None else graph.captures.get(outside)


def check_in_reach(body: FunctionGraph, tensors: Sequence[Tensor]) -> None:
    """Check that tensors are of a body or of a graph around it.

    Raises:
        InvalidArgumentError: one is of another graph, or no longer there.
    """
    around = [body, *surrounding(body)]
    for tensor in tensors:
        if tensor.graph in around:
            tensor.graph.owned(tensor)
        else:
            body.as_graph_element(tensor)
