"""Prediction of the peak memory of a plan's arrays, from shapes.

The rules are those of live-array accounting: a view counts as its base, and feeds, constants, values of variables and scalars do not count.
Temporary memory of kernels does not count either.
"""

from __future__ import annotations

from typing import Final

from graphcore.errors import UnimplementedError
from graphcore.graph.model.node import Node
from graphcore.runtime.core.sizes import PeakMemory, Sizes
from graphcore.runtime.plan.schedule import BEGIN, JOIN, Operation, Schedule, Value

_STRIDED: Final = frozenset({"strided view", "broadcast view"})
"""Views that need not lie in one piece, so that a Reshape of them may be a copy."""


class Account:
    """Live arrays with reference counts."""

    def __init__(self) -> None:
        self.live = self.peak = 0
        self.reason = ""
        self._sizes: dict[object, int] = {}
        self._holders: dict[object, int] = {}

    def hold(self, owner: object, size: int = 0) -> None:
        """Add a reference to the array `owner`, which takes `size` bytes."""
        if owner not in self._holders:
            self._holders[owner], self._sizes[owner] = 0, size
            self.live += size
            self.peak = max(self.peak, self.live)
        self._holders[owner] += 1

    def use(self, within: PeakMemory) -> None:
        """Count the memory of functions for the duration of a call."""
        if within.is_bound and not self.reason:
            self.reason = within.reason
        self.peak = max(self.peak, self.live + (within.bytes or 0))

    def mark_as_bound(self, node: Node) -> None:
        """Mark the peak as an upper bound: a variable may take the node's output, which then does not count."""
        self.reason = self.reason or f"what '{node.name}' (op {node.op}) gives to a variable need not count any more"

    def result(self) -> PeakMemory:
        """The peak."""
        return PeakMemory(self.peak, bool(self.reason), self.reason)

    def drop(self, owner: object) -> None:
        """Drop a reference."""
        self._holders[owner] -= 1
        if not self._holders[owner]:
            self.live -= self._sizes.pop(owner)
            del self._holders[owner]


class Owners:
    """The owner of each value's memory: itself, or the base of a view."""

    def __init__(self) -> None:
        self._owner: dict[object, object] = {}
        self._strided: set[object] = set()

    def of(self, value: object) -> object:
        """The owner of the memory of `value`."""
        return self._owner.get(value, value)

    def same(self, output: object, other: object) -> None:
        """Let `output` share the memory of `other`."""
        self._owner[output] = self.of(other)

    def note(self, node: Node, output: object, first: object) -> None:
        """Record `output`, made by `node` from its first input `first`."""
        memory = node.registration.traits.memory
        if memory in _STRIDED or first in self._strided:
            self._strided.add(output)
        if node.registration.traits.returns_view and not (memory == "reshaped view" and first in self._strided):
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
            # The other thread makes the outputs at an unknown time after this.
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
            account.mark_as_bound(operation.node)
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
