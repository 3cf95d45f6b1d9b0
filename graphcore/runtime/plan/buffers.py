"""Buffer reuse: elementwise results written into the buffers of inputs that are not needed any more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from graphcore.inference.handles import is_fully_defined, same_defined_shape
from graphcore.plumbing import ARG, PLACEHOLDER, RECV
from graphcore.runtime.plan.schedule import JOIN, Operation, Schedule, Value

_FED: Final = PLACEHOLDER | ARG | RECV
_SEPARATE: Final = frozenset({"fresh", "held"})
"""The outputs of such ops share no memory with their inputs."""


def reuse_buffers(schedule: Schedule) -> None:
    """Choose for each operation the input whose buffer takes its result.

    Only buffers with a single reference are overwritten: never feeds, constants, variables, fetched values, or bases of views.
    """
    trusted = all(value.tensor.node.op in _FED or _has_known_shape(value) for value in schedule.feeds)
    operations = schedule.operations
    shared = _shared(operations)
    for number, operation in enumerate(operations):
        if operation.apart:
            continue
        if is_elementwise(operation.kernel) and len(operation.outputs) == 1 and not any(operation.reads):
            operation.into = _dead_input(operations, operation, number, shared, trusted)


def is_elementwise(kernel: Any) -> bool:
    """True iff a kernel is an elementwise ufunc with one result; a matrix product is not."""
    return type(kernel) is np.ufunc and kernel.nout == 1 and kernel.signature is None


def _dead_input(operations: Sequence[Operation], operation: Operation, number: int, shared: set[Value], trusted: bool) -> int | None:
    result = operation.outputs[0]
    if not _has_axes(result):
        return None
    for slot, value in enumerate(operation.inputs):
        if value.last_use != number or value.is_kept or value.producer < 0 or value in shared:
            continue
        if value.tensor.dtype is not result.tensor.dtype or not _makes_new(_caller(operations, value.producer)):
            continue
        if _same_shape(value, result) and (trusted or _has_known_shape(value)):
            return slot
    return None


def _shared(operations: Sequence[Operation]) -> set[Value]:
    """The values read by an operation that may keep them or return views of them."""
    shared: set[Value] = set()
    for operation in operations:
        if (
            operation.apart != JOIN
            and type(operation.kernel) is not np.ufunc
            and not (operation.node.registration.traits.memory in _SEPARATE and _is_known_kernel(operation))
        ):
            shared.update(operation.inputs)
    return shared


def _caller(operations: Sequence[Operation], number: int) -> Operation:
    """The operation that calls the kernel for operation `number`."""
    operation = operations[number]
    return operations[operation.inputs[0].producer] if operation.apart == JOIN else operation


def _makes_new(operation: Operation) -> bool:
    return type(operation.kernel) is np.ufunc or (operation.node.registration.traits.memory == "fresh" and _is_known_kernel(operation))


def _is_known_kernel(operation: Operation) -> bool:
    """False for a kernel that a user put in place of the op's own."""
    return (getattr(operation.kernel, "__module__", None) or "numpy").partition(".")[0] in {"graphcore", "numpy"}


def _has_axes(value: Value) -> bool:
    """True iff the value is certainly an array: a rank of 0 may give a NumPy scalar."""
    handles = value.tensor.node.output_handles
    return value.tensor.index < len(handles) and handles[value.tensor.index].rank > 0


def _has_known_shape(value: Value) -> bool:
    handles = value.tensor.node.output_handles
    return value.tensor.index < len(handles) and is_fully_defined(handles[value.tensor.index])


def _same_shape(value: Value, result: Value) -> bool:
    if not _has_axes(value):
        return False
    mine, theirs = value.tensor, result.tensor
    return same_defined_shape(mine.node.output_handles[mine.index], theirs.node.output_handles[theirs.index])
