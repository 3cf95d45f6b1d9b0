"""The work of nodes that run functions: calls, branches and loops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from graphcore.attrs import Func
from graphcore.errors import GraphError
from graphcore.functions.library import GRADIENT_OP
from graphcore.graph import Node
from graphcore.passes import FunctionBody, InstantiatedFunctions
from graphcore.placement.node_costs import FLOPS_PER_MICROSECOND, cost
from graphcore.placement.step_sizes import StepSizes
from graphcore.plumbing import ARG, BRANCH, CALL, CASE, IF, RETVAL, WHILE

_MOST_NESTED: Final = 16
_MOST_NODES: Final = 100_000
"""The most nodes of functions whose work is added up for one step."""

Work = Mapping[float, float]
"""The numbers of runs of kernels, by their floating-point operations."""


class CalledWork(msgspec.Struct, frozen=True):
    """The work of one run of a node that runs functions.

    Args:
        work: the kernels of the functions.
        assumed: what was assumed for want of a recorded run: "loop" for one iteration, "branch" for the one with the most work.
        unknown: the number of nodes in them whose sizes are unknown.
        is_whole: False if a function could not be read, or has too many nodes.
    """

    work: Work
    assumed: frozenset[str] = frozenset()
    unknown: int = 0
    is_whole: bool = True


def runs_functions(node: Node) -> bool:
    """True if a node runs functions for its outputs."""
    return node.registration.is_function or node.op in CALL | BRANCH | WHILE or node.op == GRADIENT_OP


class CalledWorks:
    """Adds up the work of the functions that nodes run.

    Args:
        calls: the numbers of runs of functions in a recorded run, as `Trace.call_runs` gives them.
    """

    def __init__(self, calls: Mapping[str, float] | None = None) -> None:
        self._calls = calls or {}
        self._bodies: dict[object, InstantiatedFunctions] = {}
        self._left = _MOST_NODES

    def of(self, node: Node, sizes: StepSizes, path: str = "", depth: int = 0) -> CalledWork:
        """The work of one run of a node.

        Args:
            node: the node.
            sizes: the sizes of its inputs.
            path: the calls around it.
            depth: their number.
        """
        callees = called_functions(node)
        runs = [self._calls.get(_path(path, node, function), 0.0) / self._calls.get(path, 1.0) for function, _ in callees]
        is_recorded = any(runs)
        parts = [self._of_function(node, function, slot, sizes, path, depth) for function, slot in callees]
        if is_recorded:
            return _sum([_times(part, count) for part, count in zip(parts, runs, strict=True) if count])
        if node.op in BRANCH and len(parts) > 1:
            most = max(parts, key=lambda part: sum(flops * count for flops, count in part.work.items()))
            return msgspec.structs.replace(most, assumed=most.assumed | {"branch"})
        work = _sum(parts)
        return msgspec.structs.replace(work, assumed=work.assumed | {"loop"}) if node.op in WHILE else work

    def _of_function(self, node: Node, function: Func, first: int, sizes: StepSizes, path: str, depth: int) -> CalledWork:
        """The work of a function that a node calls with its inputs from number `first` on."""
        body = self._body(node, function) if depth < _MOST_NESTED else None
        if body is None or self._left < len(body.graph):
            return CalledWork({}, is_whole=False)
        self._left -= len(body.graph)
        shapes = {arg.outputs[0].name: sizes.shape_of(node.inputs[first + place]) for place, arg in enumerate(body.arg_nodes)}
        inner = StepSizes(body.graph.op_nodes(), {name: shape for name, shape in shapes.items() if shape.rank is not None})
        called = _path(path, node, function)
        work: dict[float, float] = {}
        parts = []
        for member in body.graph.op_nodes():
            if member.op in ARG | RETVAL or member.registration.traits.role == "constant":
                continue
            if runs_functions(member):
                parts.append(self.of(member, inner, called, depth + 1))
                continue
            flops = cost(member, inner.elements, inner.shape_of) * FLOPS_PER_MICROSECOND
            work[flops] = work.get(flops, 0.0) + 1.0
        unknown = sum(not inner.is_known(member) for member in body.graph.op_nodes())
        return _sum([CalledWork(work, unknown=unknown), *parts])

    def _body(self, node: Node, function: Func) -> FunctionBody | None:
        library = node.graph.library
        bodies = self._bodies.setdefault(library, InstantiatedFunctions(library))
        try:
            return bodies.body_of(GRADIENT_OP, node.attr) if node.op == GRADIENT_OP else bodies.body_of(function.name, function.attr)
        except GraphError:
            return None


def called_functions(node: Node) -> list[tuple[Func, int]]:
    """The functions that a node runs, each with the number of the input that is its first argument."""
    if node.registration.is_function:
        return [(Func(node.op, dict(node.attr)), 0)]
    names = ("then_branch", "else_branch") if node.op in IF else ("cond", "body") if node.op in WHILE else ("f",)
    branches = node.attr.get("branches")
    functions = branches if node.op in CASE and isinstance(branches, tuple) else [node.attr.get(name) for name in names]
    return [(function, int(node.op in BRANCH)) for function in functions if isinstance(function, Func)]


def _path(around: str, node: Node, function: Func) -> str:
    """The call of a function as `Event.call` names it, without the marks of repeats."""
    return f"{around} > {node.name}:{function.name}" if around else f"{node.name}:{function.name}"


def _times(called: CalledWork, runs: float) -> CalledWork:
    return msgspec.structs.replace(called, work={flops: count * runs for flops, count in called.work.items()})


def _sum(parts: list[CalledWork]) -> CalledWork:
    work: dict[float, float] = {}
    for part in parts:
        for flops, runs in part.work.items():
            work[flops] = work.get(flops, 0.0) + runs
    return CalledWork(
        work,
        frozenset().union(*[part.assumed for part in parts]),
        sum([part.unknown for part in parts]),
        all(part.is_whole for part in parts),
    )
