"""Gradients of tensors with respect to tensors and variables."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from graphcore.api.gradients.places import put_beside_forward_nodes
from graphcore.api.gradients.variable_reads import check_read_outside, handles_of_references
from graphcore.api.gradients.within_bodies import GradientsWithin, check_in_reach
from graphcore.brief import brief
from graphcore.dtypes import resource
from graphcore.errors import InvalidArgumentError
from graphcore.graph import FunctionGraph, Graph, Node, Tensor, convert_to_tensor, get_default_graph
from graphcore.graph.graph import outermost
from graphcore.passes.gradients.bodies.variable_reads import reads_of
from graphcore.passes.gradients.bodies.writer import GradientWriter
from graphcore.passes.gradients.slices import Part, Slices, combined, gradients_of_reads
from graphcore.remarks import remark
from graphcore.source import caller_location, cell_run, gradient_calls
from graphcore.tf1.indexed_slices import IndexedSlices


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,  # noqa: ARG001 - each gradient is computed once anyway
    aggregation_method: Any = None,  # noqa: ARG001 - sums have one form
    stop_gradients: Any = None,
    unconnected_gradients: Any = "none",
    simplify: bool = True,
) -> list[Any]:
    """Add the nodes that compute the derivatives of `sum(ys)` with respect to each of `xs`.

    Args:
        ys, xs: a tensor, a variable, or a list of them.
        grad_ys: for each y the incoming gradient, of the y's shape and dtype: a tensor, numbers, or None for ones.
        name: the name scope of the new nodes.
        colocate_gradients_with_ops: request the device of the differentiated node for its gradient nodes, and put them into its groups of
            nodes that share a device; otherwise they get what is requested around the call.
        gate_gradients, aggregation_method: TF1's hints, without effect.
        stop_gradients: tensors that gradients do not flow through.
        unconnected_gradients: "none" gives None for an x that no y depends on, "zero" zeros; or one of `gc.UnconnectedGradients`.
        simplify: False inlines the registered gradient bodies unsimplified.

    Returns:
        One gradient for each x, named after the x in the name scope; None if no y depends on it, or none of a floating or complex dtype. It is a tensor of the shape of the x, but
        `gc.IndexedSlices` for a variable from which a y gathers rows (`gc.gather`, `gc.nn.embedding_lookup`) outside of loops and branches.

    After a later change of a node that the gradients depend on, the nodes behind these tensors are derived again before the next run; the
    tensors stay. Where a gradient turns into None or into slices, or back, its tensor is marked and refuses to run.

    The nodes are added atomically, even if Ctrl-C interrupts; other threads that build the graph wait meanwhile.

    Raises:
        NotFoundError: an op between them has no gradient.
        InvalidArgumentError: wrong dtypes, counts or graphs.
        FailedPreconditionError: something that a y depends on has an error.

    Example:
        >>> x = gc.constant(3.0, name="x")
        >>> y = x * x + 2 * x
        >>> dy_dx, = gc.gradients(y, [x])
        >>> print(gc.Session().run(dy_dx))
        8.0
    """
    y_tensors = tensors_of(ys, "ys")
    x_list = _as_list(xs)
    tensors_of(x_list, "xs")
    if not y_tensors:
        raise InvalidArgumentError("gradients needs at least one y")
    if not x_list:
        return []
    if cell_run() is not None:
        gradient_calls[caller_location()] += 1
    graph = y_tensors[0].graph.building()
    seeds = _seeds(y_tensors, grad_ys)
    if isinstance(graph, FunctionGraph):  # the body being traced is derived again as a whole
        stop = tensors_of(stop_gradients or [], "stop_gradients")
        return _in_body(graph, y_tensors, x_list, seeds, stop, name, simplify=simplify, zeros=_gives_zeros(unconnected_gradients))
    call = GradientCall(graph, y_tensors, x_list, seeds, tensors_of(stop_gradients or [], "stop_gradients"), name, simplify)
    call.zeros = _gives_zeros(unconnected_gradients)
    call.beside_ops = bool(colocate_gradients_with_ops)
    graph.settle()
    call.check()
    what = f"the gradients of {', '.join([repr(y.name) for y in y_tensors])}"
    results: list[Any] = graph.derivations.derive(
        what, call.build, depends_on=[*y_tensors, *(g for g in seeds if g is not None)], keeps_result=True, about=call
    )
    if not call.zeros and all(gradient is None for gradient in results):
        remark(_nothing_depends(y_tensors, x_list))
    return list(results)


def _nothing_depends(ys: list[Tensor], xs: list[Any]) -> str:
    """The remark when all gradients are None."""
    x, y = tensors_of(xs[0], "xs")[0], ys[0]
    which = f"the x '{x.name}'" if len(xs) == 1 else f"any of {len(xs)} xs ('{x.name}' ...)"
    of = f"'{y.name}'" if len(ys) == 1 else f"the ys ('{y.name}' ...)"
    return f"gradients gives None: {of} does not depend on {which}, or the gradient stops before. `gc.explain_gradient(y, x)` says where."


def _seeds(ys: Sequence[Tensor], grad_ys: Any) -> list[Tensor | None]:
    """The incoming gradient of each y as a tensor; None for ones."""
    if grad_ys is None:
        return [None] * len(ys)
    seeds = _as_list(grad_ys)
    if len(seeds) != len(ys):
        raise InvalidArgumentError(f"grad_ys must have one item a y: required {len(ys)}, got {len(seeds)}")
    return [None if seed is None else _seed(y, seed) for y, seed in zip(ys, seeds, strict=True)]


def _seed(y: Tensor, seed: Any) -> Tensor:
    is_of_graph = isinstance(seed, str | Node | Tensor | IndexedSlices) or hasattr(seed, "as_graph_element")
    return (
        tensors_of(seed, "grad_ys")[0]
        if is_of_graph
        else convert_to_tensor(y.graph.building(), seed, y.dtype.base, f"the gradient of '{y.name}'")
    )


def _in_body(
    body: FunctionGraph,
    ys: list[Tensor],
    xs: list[Any],
    outer_seeds: list[Tensor | None],
    stop: list[Tensor],
    name: str,
    *,
    simplify: bool,
    zeros: bool,
) -> list[Any]:
    """The gradients in a body that is being built, of tensors there or outside."""
    tensors = [tensors_of(x, "xs")[0] for x in xs]
    check_in_reach(body, [*ys, *tensors, *stop])
    inside = [_captured(body, y) for y in ys]
    seeds = [None if seed is None else _captured(body, seed) for seed in outer_seeds]
    _check_seeds(inside, seeds)
    outermost(body).settle()
    results = GradientsWithin(body, inside, xs, tensors).find(seeds, stop, name, simplify=simplify)
    writer = GradientWriter(body)
    return [
        _public(gradient)
        if gradient is not None
        else writer.zeros_like(body.scopes.name + "zeros", _captured(body, tensor), tensor.node.name)
        if zeros
        else None
        for gradient, tensor in zip(results, tensors, strict=True)
    ]


def _captured(body: FunctionGraph, tensor: Tensor) -> Tensor:
    element = body.as_graph_element(tensor)
    assert isinstance(element, Tensor)
    return element


def _public(gradient: Part) -> Tensor | IndexedSlices | None:
    return IndexedSlices(*gradient) if isinstance(gradient, Slices) else gradient


def _gives_zeros(unconnected_gradients: Any) -> bool:
    """True iff gradients that would be None are to be zeros.

    Raises:
        InvalidArgumentError: neither "none" nor "zero".
    """
    text = getattr(unconnected_gradients, "value", unconnected_gradients)
    if text not in {"none", "zero"}:
        raise InvalidArgumentError(f"unconnected_gradients: required 'none' or 'zero', got {unconnected_gradients!r}")
    return bool(text == "zero")


class GradientCall:
    """One call of `gradients`: builds its nodes, and rebuilds them after changes.

    Attributes:
        zeros: True if gradients that would be None are zeros.
        beside_ops: True to put gradient nodes on the devices of what they differentiate.
    """

    def __init__(
        self, graph: Graph, ys: list[Tensor], xs: list[Any], seeds: list[Tensor | None], stop: list[Tensor], name: str, simplify: bool
    ) -> None:
        self.graph = graph
        self.ys = ys
        self.xs = xs
        self.given = seeds
        self.stop = stop
        self.name = name
        self.simplify = simplify
        self.zeros = False
        self.beside_ops = False

    def check(self) -> None:
        """Check that the tensors are of one graph, and that the seeds fit.

        Raises:
            InvalidArgumentError: they are not or do not.
        """
        for tensor in (*self.ys, *tensors_of(self.xs, "xs"), *(g for g in self.given if g is not None)):
            self.graph.as_graph_element(tensor)
        _check_seeds(self.ys, self.given)

    def build(self) -> list[Tensor | IndexedSlices | None]:
        """The gradients, each an alias node named after its x; it stays when the rest is derived again."""
        graph = self.graph
        self.ys = [graph.present(tensor) for tensor in self.ys]
        self.xs = [graph.present(x) if isinstance(x, Tensor) else x for x in self.xs]
        self.given = [None if g is None else graph.present(g) for g in self.given]
        self.stop = [graph.present(tensor) for tensor in self.stop if tensor in graph or graph.find(tensor.node.name) is not None]
        with graph.transaction(), graph.name_scope(self.name) as scope:
            # The names are reserved before the nodes behind them are made.
            names = [self._reserved(f"{scope}{result_name(x)}") for x in self.xs]
            results = self._results(names, self.find(scope))
            if self.beside_ops:
                put_beside_forward_nodes(graph, scope)
            return results

    def _results(self, names: Sequence[str], gradient_parts: Sequence[Part]) -> list[Tensor | IndexedSlices | None]:
        """Nodes with the reserved `names` for the gradients that exist."""
        writer = GradientWriter(self.graph)
        results: list[Tensor | IndexedSlices | None] = []
        for name, x, gradient in zip(names, self.xs, gradient_parts, strict=True):
            forward = tensors_of(x, "xs")[0].node.name
            if gradient is None:
                self.graph.names.free(name)
                results.append(self.zeros_like(x, name))
            elif isinstance(gradient, Slices):
                values = writer.result(name, gradient.values, forward)
                rest = [writer.alias(f"{name}_{part}", getattr(gradient, part), forward) for part in ("indices", "dense_shape")]
                results.append(IndexedSlices(values, *rest))
            else:
                results.append(writer.result(name, gradient, forward))
        return results

    def zeros_like(self, x: Any, name: str | None = None) -> Tensor | None:
        """Zeros for an x that no y depends on, or None, as the call wants."""
        if not self.zeros:
            return None
        tensor = tensors_of(x, "xs")[0]
        return GradientWriter(self.graph).zeros_like(name or self.graph.scopes.name + "zeros", tensor, tensor.node.name)

    def _reserved(self, wanted: str) -> str:
        name = self.graph.names.unique(wanted)
        self.graph.names.take(name)
        return name

    def find(self, scope: str | None = None) -> list[Part]:
        """Compute the gradients in the given scope or a new one."""
        graph, name = self.graph, scope or self.name
        counts, reads, of_variables = _with_reads(self.ys, self.xs)
        gradient_parts = gradients_of_reads(
            graph,
            self.ys,
            reads,
            self.given,
            of_variables=of_variables,
            name=name,
            stop_gradients=self.stop,
            simplify=self.simplify,
        )
        if len(counts) == len(gradient_parts):
            return gradient_parts
        parts = iter(gradient_parts)
        return [combined(graph, list(islice(parts, count)), name) for count in counts]


def result_name(x: Any) -> str:
    """The name of the gradient with respect to a tensor or variable, within the scope of the call."""
    handle = getattr(x, "handle", None)
    tensor = handle if isinstance(handle, Tensor) else tensors_of(x, "xs")[0]
    return tensor.node.name if tensor.index == 0 else f"{tensor.node.name}_{tensor.index}"


def _with_reads(ys: list[Tensor], xs: list[Any]) -> tuple[list[int], list[Tensor], list[int]]:
    """Replace resource variables by their reads.

    Returns:
        The number of tensors for each x, the tensors, and the indices of those that belong to variables.

    Raises:
        UnimplementedError: a variable is read within a function that a y depends on, or in a loop.
    """
    counts: list[int] = []
    tensors: list[Tensor] = []
    of_variables: list[int] = []
    aliases = handles_of_references(ys[0].graph if ys else get_default_graph())
    for x in xs:
        handle = getattr(x, "handle", None)
        x_tensors = tensors_of(x, "xs")
        if isinstance(handle, Tensor):
            if handle.dtype is resource:
                x_tensors += [read for read in reads_of(handle) if read not in x_tensors]
                check_read_outside(ys, handle)
            for alias in aliases.get(handle.node.name, ()):
                check_read_outside(ys, alias)
            of_variables += range(len(tensors), len(tensors) + len(x_tensors))
        counts.append(len(x_tensors))
        tensors += x_tensors
    return counts, tensors, of_variables


def _check_seeds(ys: list[Tensor], seeds: Sequence[Tensor | None]) -> None:
    for y, seed in zip(ys, seeds, strict=True):
        if seed is None:
            continue
        if seed.dtype.base is not y.dtype.base or not seed.shape.is_compatible_with(y.shape):
            raise InvalidArgumentError.at(
                y.node,
                f"The gradient given for '{y.name}' must be {y.dtype.base.text} {y.shape}, got '{seed.name}' {seed.dtype.text} {seed.shape}",
            )


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def tensors_of(value: Any, what: str) -> list[Tensor]:
    """Convert tensors, slices, variables, names and nodes with one output to tensors.

    Args:
        what: the name of the argument in errors.

    Raises:
        InvalidArgumentError: something else.
    """
    result = []
    for item in _as_list(value):
        element = item if isinstance(item, Tensor) else item.as_graph_element() if hasattr(item, "as_graph_element") else None
        if element is None and isinstance(item, str):
            element = get_default_graph().get_tensor_by_name(item)
        if isinstance(item, Node) and len(item.outputs) == 1:
            element = item.outputs[0]
        if isinstance(item, IndexedSlices):
            element = item.as_tensor()
        if not isinstance(element, Tensor):
            raise InvalidArgumentError(f"{what} must hold tensors or variables, got {brief(item)}")
        result.append(element)
    return result
