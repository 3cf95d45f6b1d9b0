"""Symbolic shapes with names for unknown sizes: `[batch,2*n1+1]`. Merges are kept as equations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from graphcore.errors import InvalidArgumentError
from graphcore.graph.control_flow.analysis import uncertain_nodes
from graphcore.graph.model.node import Node
from graphcore.graph.model.plain_graph import PlainGraph
from graphcore.graph.shapes.live_refiner import Explainer, LiveContext, LiveRefiner
from graphcore.graph.shapes.shape_refiner import ExtendedInferenceContext
from graphcore.graph.shapes.shaped_graph import ShapedGraph
from graphcore.inference import DimensionHandle, InferenceContext, ShapeHandle
from graphcore.inference.dimensions import DimensionOrConstant
from graphcore.inference.expressions import Expression, constant, expression_of, symbol, unknown_result
from graphcore.plumbing import FEEDABLE

Equation = tuple[Expression, Expression]


class _NamedArithmetic(InferenceContext):
    """Arithmetic with expressions for unknown results."""

    __slots__ = ()

    is_symbolic = True

    def add(self, first: DimensionHandle, second: DimensionOrConstant) -> DimensionHandle:
        """The sum, as an expression if it is unknown."""
        return self._named("+", super().add(first, second), first, second)

    def subtract(self, first: DimensionHandle, second: DimensionOrConstant) -> DimensionHandle:
        """The difference, as an expression if it is unknown."""
        return self._named("-", super().subtract(first, second), first, second)

    def multiply(self, first: DimensionHandle, second: DimensionOrConstant) -> DimensionHandle:
        """The product, as an expression if it is unknown."""
        return self._named("*", super().multiply(first, second), first, second)

    def divide(self, dividend: DimensionHandle, divisor: DimensionOrConstant, evenly_divisible: bool) -> DimensionHandle:
        """The quotient, as an expression if it is unknown."""
        return self._named("/", super().divide(dividend, divisor, evenly_divisible), dividend, divisor)

    @staticmethod
    def _named(operator: str, result: DimensionHandle, first: DimensionHandle, second: DimensionOrConstant) -> DimensionHandle:
        if result.value >= 0 or result.origin is not None or result is first or result is second:
            return result
        return unknown_result(operator, first, second)


class _InBody(_NamedArithmetic, ExtendedInferenceContext):
    """The context of nodes in a called function: names enter with arguments and leave with results."""

    __slots__ = ()


class SymbolicContext(_NamedArithmetic, LiveContext):
    """A context with symbolic arithmetic."""

    __slots__ = ()

    within = _InBody


_InBody.within = _InBody


class SymbolicRefiner(LiveRefiner):
    """Keeps a name for every unknown size, and the equations found at every node.

    Names hold in every run, with one exception: where two sizes of a tensor are 0 and a Reshape computes one of them, it counts sizes of 0
    as 1.
    """

    context_type = SymbolicContext
    is_direct = False

    def __init__(self, graph_def_version: int, explain: Explainer | None = None) -> None:
        super().__init__(graph_def_version, explain)
        self._taken: dict[str, int] = {}
        self._equations: dict[Node, list[Equation]] = {}
        self.symbols: tuple[int, Symbols | None] = (-1, None)

    def finish(self, context: LiveContext) -> None:
        """Name unnamed sizes, and store the merges."""
        node = context.node
        equations = _equations_of(context)
        super().finish(context)
        for index, handle in enumerate(node.output_handles):
            for position, dim in enumerate(handle.dims or ()):
                if dim.value < 0 and dim.origin is None:
                    dim.origin = symbol(self._new_name(node, index, position))
        if equations:
            self._equations[node] = equations
        else:
            self._equations.pop(node, None)

    def _new_name(self, node: Node, index: int, position: int) -> str:
        """`batch` for the first dimension of a placeholder, `n1`, `n2`, ... for all others."""
        stem = "batch" if node.op in FEEDABLE and index == position == 0 else "n"
        number = self._taken[stem] = self._taken.get(stem, 0) + 1
        return stem if stem == "batch" and number == 1 else f"{stem}{number}"

    def state(self) -> Any:
        """A snapshot for `restore`."""
        return super().state(), dict(self._equations)

    def restore(self, state: Any) -> None:
        """Return to the snapshot `state`. Names given since are not reused."""
        super().restore(state[0])
        self._equations = state[1]

    def copy_from(self, other: LiveRefiner, copies: Mapping[Node, Node]) -> None:
        """Copy names and equations."""
        super().copy_from(other, copies)
        if isinstance(other, SymbolicRefiner):
            self._taken = dict(other._taken)
            self._equations = {copies[node]: equations for node, equations in other._equations.items() if node in copies}

    def equations_in(self, graph: PlainGraph) -> list[Equation]:
        """The equations found at the nodes of `graph`.

        Those on branches, which may not be taken, and in loops, which hold for one iteration only, do not count.
        """
        self._equations = {node: equations for node, equations in self._equations.items() if node in graph}
        if not self._equations:
            return []
        uncertain = uncertain_nodes(graph)
        return [equation for node in graph.op_nodes() if node not in uncertain for equation in self._equations.get(node, ())]


class BodyRefiner(SymbolicRefiner):
    """The refiner of a function body for one call: the caller's names are used, and no new ones given.

    Args:
        caller: the graph of the call.
    """

    def __init__(self, caller: ShapedGraph) -> None:
        super().__init__(caller.refiner.graph_def_version, caller.refiner.explain)
        self.caller = caller

    def finish(self, context: LiveContext) -> None:
        """Store the shapes. Equations in here do not hold for the caller: the body may not run, or run repeatedly."""
        LiveRefiner.finish(self, context)


def refiner_within(caller: ShapedGraph) -> LiveRefiner:
    """The refiner of a function body called from `caller`. It knows the results of calls that the caller's refiner knows."""
    outer = caller.refiner
    refiner = BodyRefiner(caller) if isinstance(outer, SymbolicRefiner) else LiveRefiner(outer.graph_def_version, outer.explain)
    if refiner.require_shape_inference_fns == outer.require_shape_inference_fns:
        refiner.bodies = outer.bodies
    return refiner


def refiner_for(infer: str, graph_def_version: int, explain: Explainer) -> LiveRefiner:
    """The refiner of a graph for an inference mode: "" or "symbolic".

    Raises:
        InvalidArgumentError: there is no such mode.
    """
    if infer not in {"", "symbolic"}:
        raise InvalidArgumentError(f"Required infer='symbolic' or nothing, got infer={infer!r}")
    return SymbolicRefiner(graph_def_version, explain) if infer else LiveRefiner(graph_def_version, explain)


class Symbols(msgspec.Struct, frozen=True):
    """The names of a graph and their equations.

    Args:
        values: the expressions that names are equal to.
        open: equations that determine no single name.
        contradictions: equations that cannot hold.
    """

    values: dict[str, Expression]
    open: tuple[Equation, ...] = ()
    contradictions: tuple[Equation, ...] = ()

    def text(self, dim: DimensionHandle) -> str:
        """A size as text: a number or an expression, `?` without a name."""
        expression = expression_of(dim)
        return "?" if expression is None else str(self._resolved(expression))

    def shape_text(self, handle: ShapeHandle) -> str:
        """`[batch,784]`."""
        return "?" if handle.dims is None else "[" + ",".join([self.text(dim) for dim in handle.dims]) + "]"

    @property
    def equalities(self) -> list[str]:
        """`n1 = batch`, ... in the order of the names."""
        equalities = [f"{name} = {self._resolved(value)}" for name, value in self.values.items()]
        return [*equalities, *[f"{left} = {right}" for left, right in (*self.open, *self.contradictions)]]

    def _resolved(self, expression: Expression) -> Expression:
        return _resolved(expression, self.values)


def symbols_of(graph: ShapedGraph) -> Symbols:
    """Solve the equations of a graph."""
    refiner = graph.refiner
    if not isinstance(refiner, SymbolicRefiner):
        return Symbols({})
    if isinstance(refiner, BodyRefiner):
        return symbols_of(refiner.caller)
    version, symbols = refiner.symbols
    if symbols is None or version != graph.version:
        symbols = _worked_out(refiner.equations_in(graph))
        refiner.symbols = graph.version, symbols
    return symbols


def _worked_out(waiting: list[Equation]) -> Symbols:
    values: dict[str, Expression] = {}
    contradictions: list[Equation] = []
    left: list[Equation] = []
    while waiting:
        left = []
        for first, second in waiting:
            a, b = _resolved(first, values), _resolved(second, values)
            if a == b:
                continue
            solved = _solved(a, b)
            if solved is not None:
                values[solved[0]] = solved[1]
            elif _cannot_be(a - b):
                contradictions.append((a, b))
            else:
                left.append((a, b))
        if len(left) == len(waiting):
            break
        waiting = left
    return Symbols(values, tuple(left), tuple(contradictions))


def _equations_of(context: LiveContext) -> list[Equation]:
    pairs = [*context.merged_dims]
    for first, second in context.merged_shapes:
        if first.dims is not None and second.dims is not None:
            pairs += zip(first.dims, second.dims, strict=False)
    equations: dict[Equation, None] = {}
    for one, other in pairs:
        a, b = expression_of(one), expression_of(other)
        if one is not other and a is not None and b is not None and a != b:
            equations[a, b] = None
    return list(equations)


def _resolved(expression: Expression, values: dict[str, Expression]) -> Expression:
    for _ in range(len(values) + 1):
        again = expression.replaced(values)
        if again == expression:
            break
        expression = again
    return expression


def _solved(a: Expression, b: Expression) -> tuple[str, Expression] | None:
    """The substitution that makes `a` and `b` equal: the younger name is replaced by the older."""
    if a.name and b.name:
        younger, older = sorted((a, b), key=_age, reverse=True)
        return younger.name, older
    for one, other in ((a, b), (b, a)):
        if one.name and one.name not in other.names:
            return one.name, other
    difference = a - b
    names = [(factors, coefficient) for factors, coefficient in difference.terms if factors]
    if len(names) != 1 or len(names[0][0]) != 1 or not isinstance(names[0][0][0], str):
        return None
    number = -dict(difference.terms).get((), 0)
    if number % names[0][1] or number // names[0][1] < 0:
        return None
    return names[0][0][0], constant(number // names[0][1])


def _age(expression: Expression) -> tuple[bool, int, str]:
    """`batch` is older than all others, `n2` older than `n10`."""
    stem = expression.name.rstrip("0123456789")
    return stem != "batch", int(expression.name[len(stem) :] or 0), stem


def _cannot_be(difference: Expression) -> bool:
    """True iff the difference is never 0: a number other than 0, or terms that cannot add up to one."""
    names = [coefficient for factors, coefficient in difference.terms if factors]
    number = dict(difference.terms).get((), 0)
    if not names:
        return number != 0
    return len(names) == 1 and bool(number % names[0])
