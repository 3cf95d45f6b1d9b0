"""Partial runs: one run in several steps, each with some of the feeds and some of the fetches."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from graphcore.attrs import Array
from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.graph.control_flow import CONTROL_FLOW
from graphcore.graph.kernels import kernel_context
from graphcore.graph.node import Node, Tensor
from graphcore.kernel_context import RefVariable
from graphcore.registry import Kernel
from graphcore.runtime.explaining import explain_at
from graphcore.runtime.feeds import Feeder, make_feeder
from graphcore.runtime.fetches import FetchStructure
from graphcore.runtime.lowering import MakeKernel, check_runs
from graphcore.runtime.prune import needed_nodes

SET_UP_FIRST = "Must run 'setup' before performing partial runs!"


class PartialRun:
    """A run under way. A node runs once, as soon as all that it needs is there.

    Args:
        structure: all that the steps may fetch.
        feeds: all that the steps may feed.
        make_kernel: makes the kernel of a node.

    Raises:
        GraphError: a node cannot run, or there is control flow.
    """

    def __init__(self, structure: FetchStructure, feeds: Sequence[Tensor], make_kernel: MakeKernel) -> None:
        self._waiting_fetches = {*structure.tensors, *structure.targets}
        self._fetches = frozenset(self._waiting_fetches)
        self._feeders: dict[Tensor, Feeder] = {tensor: make_feeder(tensor) for tensor in feeds}
        self._unfed = set(feeds)
        self._values: dict[Tensor, Any] = {}
        self._done: set[Node] = set()
        self._failed = False
        self._pending = needed_nodes(structure.tensors, structure.targets, feeds)
        self._kernels: dict[Node, Kernel] = {}
        for node in self._pending:
            if self._is_fed(node):
                continue
            check_runs(node)
            if node.op in CONTROL_FLOW:
                raise InvalidArgumentError(
                    f"A partial run cannot pass through '{node.name}' (op {node.op}): it would have to wait for what is not fed yet",
                    op=node.op,
                    node=node.name,
                    source=node.source,
                )
            self._kernels[node] = make_kernel(node, kernel_context(node, (None,) * len(node.inputs)))

    @property
    def is_over(self) -> bool:
        """Whether all has been fed and fetched, or a node has failed."""
        return self._failed or not (self._unfed or self._waiting_fetches)

    def step(self, structure: FetchStructure, feeds: Mapping[Tensor, Any]) -> Any:
        """Take some feeds, give some fetches. If either is refused, nothing has happened.

        Raises:
            InvalidArgumentError: a feed or fetch that was not announced or has been there before, or a fetch whose feeds are missing.
            GraphError: a node failed, and with it the run.
        """
        values = {tensor: self._checked(tensor, value) for tensor, value in feeds.items()}
        wanted: list[Tensor | Node] = [*structure.tensors, *structure.targets]
        for fetch in wanted:
            self._check_fetch(fetch, self._unfed - values.keys())
        self._values.update(values)
        self._unfed -= values.keys()
        with np.errstate(all="ignore"):
            self._run_what_can()
        self._waiting_fetches -= set(wanted)
        return structure.pack([_own(self._values[tensor]) for tensor in structure.tensors])

    def _checked(self, tensor: Tensor, value: Any) -> Array:
        feeder = self._feeders.get(tensor)
        if feeder is None:
            raise _refused(f"The feed {tensor.name} was not specified in partial_run_setup.", tensor.node)
        if tensor not in self._unfed:
            raise _refused(f"The feed {tensor.name} has already been fed.", tensor.node)
        return feeder(value)

    def _check_fetch(self, fetch: Tensor | Node, unfed: Collection[Tensor]) -> None:
        node = fetch if isinstance(fetch, Node) else fetch.node
        if fetch not in self._fetches:
            raise _refused(f"The fetch {fetch.name} was not specified in partial_run_setup.", node)
        if fetch not in self._waiting_fetches:
            raise _refused(f"The fetch {fetch.name} was already fetched.", node)
        if self._needs(fetch, unfed):
            raise _refused(f"Tensor {fetch.name} can't be computed from the feeds that have been fed so far.", node)

    def _needs(self, fetch: Tensor | Node, unfed: Collection[Tensor]) -> bool:
        """Whether something that `fetch` depends on is still to be fed."""
        pending: list[Tensor | Node] = [fetch]
        seen: set[Tensor | Node] = set()
        while pending:
            item = pending.pop()
            if item in unfed:
                return True
            if item in seen or item in self._feeders or item in self._done:
                continue
            seen.add(item)
            if isinstance(item, Tensor):
                pending.append(item.node)
            elif self._is_fed(item):
                pending += item.outputs
            else:
                pending += [*item.inputs, *item.control_inputs]
        return False

    def _is_fed(self, node: Node) -> bool:
        return bool(node.outputs) and all(tensor in self._feeders for tensor in node.outputs)

    def _run_what_can(self) -> None:
        still: list[Node] = []
        for node in self._pending:
            if not self._may_run(node):
                still.append(node)
                continue
            if not self._is_fed(node):
                self._run(node)
            self._done.add(node)
        self._pending = still

    def _may_run(self, node: Node) -> bool:
        if self._is_fed(node):
            return all(tensor in self._values for tensor in node.outputs)
        return all(tensor in self._values for tensor in node.inputs) and all(control in self._done for control in node.control_inputs)

    def _run(self, node: Node) -> None:
        inputs = [_given(self._values[tensor], reads=not dtype.is_ref) for tensor, dtype in zip(node.inputs, node.input_types, strict=True)]
        try:
            given = self._kernels[node](*inputs)
        except BaseException as error:
            self._failed = True
            told = explain_at(node, error, inputs)
            if told is error:
                raise
            raise told from error
        outputs: Iterable[Any] = given if len(node.outputs) > 1 else (given,)
        for tensor, value in zip(node.outputs, outputs, strict=False):
            if tensor not in self._feeders:
                self._values[tensor] = value


def _given(value: Any, *, reads: bool) -> Any:
    return value.read() if reads and isinstance(value, RefVariable) else value


def _own(value: Any) -> Any:
    """A value that the caller may change."""
    array = _given(value, reads=True)
    return array.copy() if isinstance(array, np.ndarray) else array


def _refused(text: str, node: Node) -> GraphError:
    return InvalidArgumentError(text, op=node.op, node=node.name, source=node.source)
