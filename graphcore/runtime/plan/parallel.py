"""Concurrent execution of heavy independent nodes, if it pays."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any, Final

from graphcore.graph.model.node import Node, Tensor
from graphcore.placement.node_costs import BY_FIRST_INPUT, cost, cost_by_first_input
from graphcore.registry import Kernel
from graphcore.runtime.core.interruptible_call import call_interruptibly
from graphcore.runtime.core.kernel_checks import is_built_in
from graphcore.runtime.plan.buffers import is_elementwise
from graphcore.runtime.plan.schedule import BEGIN, JOIN, Operation, Schedule, Value, number
from graphcore.support.thread_pool import core_count

PAYS_FROM: Final = 300.0
"""The shortest kernel, in microseconds, that another thread is worth: submitting and joining take some 50."""
LONG_FROM: Final = 2.0e5
"""The longest kernel, in microseconds, that Ctrl-C may wait for."""
_LARGE: Final = 5_000
"""Kernels whose tensors all have fewer elements neither pay in another thread nor take long."""


def has_large(nodes: Iterable[Node], feeds: Iterable[Tensor] = ()) -> bool:
    """True iff a kernel of `nodes`, given `feeds`, may be worth a thread of its own."""
    tensors = chain(feeds, chain.from_iterable([node.outputs for node in nodes]))
    return any(tensor.shape.num_elements >= _LARGE for tensor in tensors)


def is_long(node: Node) -> bool:
    """True iff the kernel of `node` is so slow that Ctrl-C must be able to abandon it. It is stateless then."""
    if node.op_def.is_stateful or node.registration.is_function or any(dtype.is_ref for dtype in (*node.input_types, *node.output_types)):
        return False
    return cost(node) >= LONG_FROM and not any("func" in attr.type for attr in node.op_def.attr)


def mark_long(schedule: Schedule, *, any_large: bool = True) -> None:
    """Make slow kernels interruptible by Ctrl-C.

    Args:
        any_large: False if all known shapes are small.
    """
    for operation in schedule.operations:
        if any_large:
            operation.is_long = operation.kernel is not None and not operation.apart and is_long(operation.node)
        if operation.node.registration.traits.cost in BY_FIRST_INPUT and operation.kernel is not None:
            operation.kernel = interruptible_if_long(operation.node, operation.kernel)


def interruptible_if_long(node: Node, kernel: Kernel) -> Kernel:
    """Make `kernel` interruptible if its actual inputs make it slow, for shapes unknown before."""
    kind = node.registration.traits.cost
    if kind not in BY_FIRST_INPUT or node.inputs[0].shape.is_fully_defined:
        return kernel

    def call(first: Any, *others: Any) -> Any:
        if cost_by_first_input(kind, first.shape) >= LONG_FROM:
            return call_interruptibly(kernel, first, *others)
        return kernel(first, *others)

    return call


def run_apart(schedule: Schedule, nodes: Iterable[Node], threads: int = 0) -> None:
    """Schedule heavy independent operations for concurrent execution, all but one in other threads.

    Stateful operations keep their order.

    Args:
        nodes: the nodes of the operations, producers first.
        threads: the most concurrent operations; 0 for the number of cores.
    """
    if (threads or core_count()) < 2 or len(schedule.operations) < 3:
        return
    heavy = {operation for operation in schedule.operations if _may_move(operation) and cost(operation.node) >= PAYS_FROM}
    if len(heavy) < 2:
        return
    levels = _levels(schedule, nodes, heavy)
    if len(levels) < len(schedule.operations):
        return
    groups: dict[int, list[Operation]] = {}
    for operation in schedule.operations:
        if operation in heavy:
            groups.setdefault(levels[operation], []).append(operation)
    if not any(len(group) > 1 for group in groups.values()):
        return
    apart = {operation for group in groups.values() for operation in group[:-1]}
    schedule.operations = _in_two_steps(sorted(schedule.operations, key=levels.__getitem__), apart)
    begun = {operation.node: operation for operation in schedule.operations if operation.apart == BEGIN}
    for operation in apart & schedule.skipped.keys():
        schedule.skipped[begun[operation.node]] = schedule.skipped.pop(operation)
    number(schedule.operations, schedule.results)


def _may_move(operation: Operation) -> bool:
    """True iff it may run in any thread: stateless, without calls, no product (BLAS has threads itself)."""
    node = operation.node
    if operation.kernel is None or any(operation.reads) or not node.outputs:
        return False
    if node.op_def.is_stateful or node.registration.is_function or not is_built_in(node):
        return False
    if any(value.is_reference for value in (*operation.inputs, *operation.outputs)):
        return False
    return is_elementwise(operation.kernel) or node.registration.traits.cost == "transcendental"


def _levels(schedule: Schedule, nodes: Iterable[Node], heavy: set[Operation]) -> dict[Operation, int]:
    """The number of heavy operations in sequence before each operation."""
    operations = {operation.node: operation for operation in schedule.operations}
    levels: dict[Operation, int] = {}
    values: dict[Value, int] = {}
    after: dict[Node, int] = {}
    last_state = 0
    for node in nodes:
        before = [after.get(other, 0) for other in (*[tensor.node for tensor in node.inputs], *node.control_inputs)]
        level = max(before, default=0)
        operation = operations.get(node)
        if operation is not None:
            level = max([level, *[values.get(value, 0) for value in operation.inputs]])
            if node.op_def.is_stateful or any(value.is_reference for value in (*operation.inputs, *operation.outputs)):
                level = last_state = max(level, last_state)
            levels[operation] = level
            level += operation in heavy
            values.update(dict.fromkeys(operation.outputs, level))
        after[node] = level
    return levels


def _in_two_steps(operations: list[Operation], apart: set[Operation]) -> list[Operation]:
    """Split concurrent operations: they begin at their place and are joined at the first use."""
    ordered: list[Operation] = []
    under_way: dict[Value, Operation] = {}

    def join(values: Iterable[Value]) -> None:
        for value in values:
            joining = under_way.get(value)
            if joining is not None:
                ordered.append(joining)
                for output in joining.outputs:
                    del under_way[output]

    for operation in operations:
        join(operation.inputs)
        if operation not in apart:
            ordered.append(operation)
            continue
        task = Value(operation.outputs[0].tensor, f"f{operation.outputs[0].name}")
        begin = Operation(operation.node, operation.kernel, operation.inputs, operation.reads, [task])
        begin.apart = BEGIN
        joining = Operation(operation.node, None, [task, *operation.inputs], [False] * (1 + len(operation.inputs)), operation.outputs)
        joining.apart = JOIN
        under_way.update(dict.fromkeys(operation.outputs, joining))
        ordered.append(begin)
    join(list(under_way))
    return ordered
