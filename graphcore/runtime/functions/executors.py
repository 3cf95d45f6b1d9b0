"""Executors by type: factories of runners for graphs of instantiated functions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from graphcore.errors import AlreadyExistsError, FailedPreconditionError, NotFoundError
from graphcore.functions.canonicalize import DEFAULT_EXECUTORS
from graphcore.graph.model.node import Node, Tensor
from graphcore.plumbing import CONTROL_FLOW, SWITCH
from graphcore.runtime.core.program import Executor
from graphcore.runtime.engines import build_program
from graphcore.runtime.plan.plan import build_plan
from graphcore.runtime.plan.schedule import MakeKernel


class ExecutorParams(msgspec.Struct, frozen=True):
    """The feeds, fetches and targets of an executor, all of one graph.

    Args:
        feeds: the fed tensors, in order: the function's arguments.
        fetches: the fetched tensors, in order: the function's returns.
        targets: further nodes to run.
        create_kernel: makes the kernel of a node.
    """

    feeds: Sequence[Tensor]
    fetches: Sequence[Tensor]
    targets: Sequence[Node]
    create_kernel: MakeKernel


ExecutorFactory = Callable[[ExecutorParams], Executor]
"""Makes an executor of one type."""


def _default(params: ExecutorParams) -> Executor:
    return build_program(params.fetches, params.targets, params.feeds, params.create_kernel)


def _single_threaded(params: ExecutorParams) -> Executor:
    """Makes a plan that runs one node at a time.

    Raises:
        FailedPreconditionError: the function contains control-flow ops. Functional branches and loops are no such ops.
    """
    graphs = {item.node.graph for item in params.fetches} | {node.graph for node in params.targets}
    for node in itertools.chain.from_iterable(graph.op_nodes() for graph in graphs):
        if node.op in CONTROL_FLOW:
            saw = "switch op, but saw" if node.op in SWITCH else "low level control flow, but saw control flow"
            raise FailedPreconditionError.at(
                node, f"Single-threaded executor does not support {saw} node {node.name}; use gc.cond or gc.while_loop in the function"
            )
    return build_plan(params.fetches, params.targets, params.feeds, params.create_kernel, threads=1)


_FACTORIES: Final[dict[str, ExecutorFactory]] = {
    **dict.fromkeys(sorted(DEFAULT_EXECUTORS), _default),
    "SINGLE_THREADED_EXECUTOR": _single_threaded,
}


def register_executor_factory(executor_type: str, factory: ExecutorFactory) -> None:
    """Register a factory for the executor type named by options or attr `_executor`.

    Raises:
        AlreadyExistsError: there is a factory for that type.
    """
    if _FACTORIES.setdefault(executor_type, factory) is not factory:
        raise AlreadyExistsError(f"Executor factory already registered under name '{executor_type}'")


def get_executor_factory(executor_type: str) -> ExecutorFactory:
    """The factory of an executor type; "" and "DEFAULT" name the default.

    Raises:
        NotFoundError: there is none.
    """
    factory = _FACTORIES.get(executor_type)
    if factory is None:
        raise NotFoundError(
            f"No executor factory registered for the given executor type: {executor_type} "
            f"Registered factories are {{{', '.join(_FACTORIES)}}}."
        )
    return factory


def new_executor(executor_type: str, params: ExecutorParams) -> Executor:
    """An executor of that type.

    Raises:
        NotFoundError: there is no factory for it.
        GraphError: an error of the factory.
    """
    return get_executor_factory(executor_type)(params)
