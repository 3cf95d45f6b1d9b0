"""Prediction of the most memory that the arrays of a plan hold at once, from the shapes.

The rules are those by which a recorded run is measured (see `holdings`): a view counts as what it looks at, and what was fed, constants,
the values of variables and values without axes do not count. What kernels use while they run does not either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from graphcore.attrs import Func
from graphcore.dtypes import variant
from graphcore.errors import UnimplementedError
from graphcore.graph import Graph, constant_value
from graphcore.graph.model.node import Node, Tensor
from graphcore.runtime.core.memory import tensor_bytes
from graphcore.runtime.plan.schedule import BEGIN, JOIN, Operation, Schedule, Value

_STRIDED: Final = frozenset({"strided view", "broadcast view"})
"""Views that need not lie in one piece, so that a Reshape of them may be a copy."""


class PeakMemory(msgspec.Struct, frozen=True):
    """What the arrays of a run hold at most.

    Args:
        bytes: how much; None where it cannot be told.
        is_bound: it will not be more, but may be less.
        reason: why it is only a bound or cannot be told, "" where it is neither.
    """

    bytes: int | None
    is_bound: bool = False
    reason: str = ""


def taken_by(tensor: Tensor) -> int:
    """What an array for `tensor` takes.

    Raises:
        UnimplementedError: its shape is known only when it runs.
    """
    if not tensor.shape.rank and tensor.shape.rank is not None:
        return 0
    size = tensor_bytes(tensor)
    if size is None and (known := constant_value(tensor)) is not None:
        return int(known.nbytes)
    if size is None:
        raise UnimplementedError(f"the shape of '{tensor.name}' (op {tensor.node.op}) is known only when it runs")
    return size


def calls_functions(node: Node) -> bool:
    """Whether `node` runs functions."""
    values = [value for attr in node.node_def.attr.values() for value in (attr if isinstance(attr, tuple) else (attr,))]
    return node.registration.is_function or any(isinstance(value, Func) for value in values)


def check_keeps_nothing(node: Node) -> None:
    """Refuse a node that puts arrays by, or takes what another has put by.

    Raises:
        UnimplementedError: it does.
    """
    dtypes = [*node.input_types, *node.output_types]
    if node.registration.traits.stores or any(dtype.base is variant for dtype in dtypes):
        raise UnimplementedError(f"'{node.name}' (op {node.op}) puts values by, and its shapes do not tell how many and for how long")


Within = Callable[[Node], PeakMemory]
"""What the functions that a node runs hold while it runs."""


def nothing_within(node: Node) -> PeakMemory:
    """What is said of what functions hold where nobody knows any.

    Raises:
        UnimplementedError: the node runs functions, or puts values by.
    """
    check_keeps_nothing(node)
    if calls_functions(node):
        raise UnimplementedError(f"'{node.name}' (op {node.op}) runs functions, and its shapes do not tell what they hold")
    return PeakMemory(0)


class Sizes:
    """How large things are in a run.

    Args:
        graph: a copy of what runs, in which the shapes are those that are fed; None where what runs knows its shapes itself.
        within: what functions hold.
    """

    def __init__(self, graph: Graph | None = None, within: Within = nothing_within) -> None:
        self._graph = graph
        self._within = within

    def of(self, tensor: Tensor) -> int:
        """What an array for `tensor` takes.

        Raises:
            UnimplementedError: its shape is known only when it runs.
        """
        return taken_by(self._known(tensor.node).outputs[tensor.index])

    def within(self, node: Node) -> PeakMemory:
        """What the functions that `node` runs hold while it runs.

        Raises:
            UnimplementedError: that cannot be told.
        """
        return self._within(self._known(node))

    def _known(self, node: Node) -> Node:
        return (None if self._graph is None else self._graph.find(node.name)) or node


OWN_SIZES: Final = Sizes()


class Account:
    """Arrays that are alive, each as long as something has hold of it."""

    def __init__(self) -> None:
        self.live = self.peak = 0
        self.reason = ""
        self._sizes: dict[object, int] = {}
        self._holders: dict[object, int] = {}

    def hold(self, owner: object, size: int = 0) -> None:
        """One more has hold of the array `owner`, which takes `size` bytes."""
        if owner not in self._holders:
            self._holders[owner], self._sizes[owner] = 0, size
            self.live += size
            self.peak = max(self.peak, self.live)
        self._holders[owner] += 1

    def use(self, within: PeakMemory) -> None:
        """For a moment, what functions hold is there too."""
        if within.is_bound and not self.reason:
            self.reason = within.reason
        self.peak = max(self.peak, self.live + (within.bytes or 0))

    def may_be_less(self, node: Node) -> None:
        """What the variable of `node` takes counts here as long as others need it; in the run it is the variable's."""
        self.reason = self.reason or f"what '{node.name}' (op {node.op}) gives to a variable need not count any more"

    def result(self) -> PeakMemory:
        """The peak."""
        return PeakMemory(self.peak, bool(self.reason), self.reason)

    def drop(self, owner: object) -> None:
        """One fewer."""
        self._holders[owner] -= 1
        if not self._holders[owner]:
            self.live -= self._sizes.pop(owner)
            del self._holders[owner]


class Owners:
    """Which value owns the memory of each: it itself, or what it is a view of."""

    def __init__(self) -> None:
        self._owner: dict[object, object] = {}
        self._strided: set[object] = set()

    def of(self, value: object) -> object:
        """The owner of the memory of `value`."""
        return self._owner.get(value, value)

    def same(self, output: object, other: object) -> None:
        """`output` uses the memory of `other`."""
        self._owner[output] = self.of(other)

    def note(self, node: Node, output: object, first: object) -> None:
        """`output` is what `node` gives for its first input, `first`."""
        memory = node.registration.traits.memory
        if memory in _STRIDED or first in self._strided:
            self._strided.add(output)
        if node.registration.traits.gives_view and not (memory == "reshaped view" and first in self._strided):
            self._owner[output] = self.of(first)


def peak_of_plan(schedule: Schedule, sizes: Sizes) -> PeakMemory:
    """The peak of a plan without branches and loops."""
    try:
        return _plan_peak(schedule, sizes)
    except UnimplementedError as error:
        return PeakMemory(None, reason=error.message)


def _plan_peak(schedule: Schedule, sizes: Sizes) -> PeakMemory:
    released = schedule.released()
    account, owners = Account(), Owners()
    not_counted: set[object] = set(schedule.feeds)
    tasks: dict[Value, list[Value]] = {}
    for number, operation in enumerate(schedule.operations):
        if operation.apart != JOIN:
            account.use(sizes.within(operation.node))
        if operation.apart == BEGIN:
            # The other thread makes the outputs at some time from now on.
            not_counted.add(operation.outputs[0])
            tasks[operation.outputs[0]] = made = [Value(tensor, "") for tensor in operation.node.outputs]
            for value in made:
                account.hold(value, sizes.of(value.tensor))
            continue
        if operation.apart == JOIN:
            for value, output in zip(tasks.pop(operation.inputs[0]), operation.outputs, strict=True):
                owners.same(output, value)
        elif operation.into is not None:
            owners.same(operation.outputs[0], operation.inputs[operation.into])
            account.hold(owners.of(operation.outputs[0]))
        else:
            _hold_outputs(account, owners, sizes, operation, not_counted)
        gone = released.get(number, ())
        if operation.node.registration.traits.takes_value and len(operation.inputs) == 2 and operation.inputs[1] not in gone:
            account.may_be_less(operation.node)
        for value in gone:
            if value not in not_counted and owners.of(value) not in not_counted:
                account.drop(owners.of(value))
    return account.result()


def _hold_outputs(account: Account, owners: Owners, sizes: Sizes, operation: Operation, not_counted: set[object]) -> None:
    node = operation.node
    for value in operation.outputs:
        if operation.inputs:
            owners.note(node, value, operation.inputs[0])
        owner = owners.of(value)
        is_elsewhere = (
            value.is_reference or node.registration.traits.memory == "held" or operation.kernel is None or any(operation.reads[:1])
        )
        if is_elsewhere and owner is value:
            not_counted.add(value)
        if owner not in not_counted and (not isinstance(owner, Value) or owner.constant is None):
            account.hold(owner, sizes.of(value.tensor) if owner is value else 0)
        else:
            not_counted.add(value)
