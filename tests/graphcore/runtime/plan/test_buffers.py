"""Declared buffer reuse is sound: fresh outputs are fresh, and read-only inputs unchanged."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import graphcore as gc
from graphcore.runtime.core.prune import needed_nodes
from graphcore.runtime.plan.schedule import Operation, schedule_nodes
from tests.graphcore.opset.op_cases import Array, Case, all_cases

CASES = [case for case in all_cases() if case.runs and not case.takes_variable and not case.is_of_lists and case.op_def.output_arg]
NAMED = [case for case in CASES if case.entry.traits.memory == "fresh"]


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def operation_of(case: Case) -> Operation | None:
    """A callable that runs the case with all inputs fed; None if nothing needs to run."""
    feeds = [gc.placeholder(gc.as_dtype(array.dtype), array.shape) for array in case.arrays]
    node = case.build_plain(feeds)
    schedule = schedule_nodes(needed_nodes(node.outputs, [], feeds), node.outputs, [], feeds, lambda n, k: n.registration.kernel(k))  # type: ignore[misc]  # it has one
    return schedule.operations[-1] if schedule.operations and schedule.operations[-1].node is node else None


def check_keeps_to_itself(operation: Operation, arrays: list[Array]) -> None:
    """Outputs share no memory with inputs or other calls' outputs, and inputs are unchanged."""
    inputs = [np.array(array) for array in arrays]
    before = [array.copy() for array in inputs]
    with np.errstate(all="ignore"):
        given = [operation.kernel(*inputs) for _ in range(2)]
    first, second = (value if isinstance(value, tuple) else (value,) for value in given)
    for output, again in zip(first, second, strict=True):
        if isinstance(output, np.ndarray) and output.ndim:
            assert not any(np.shares_memory(output, array) for array in inputs)
            assert not np.shares_memory(output, again)
            assert output.flags.writeable
    for array, copy in zip(inputs, before, strict=True):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize("case", NAMED, ids=lambda case: case.id)
def test_outputs_of_trusted_ops_share_no_memory_with_inputs_nor_with_each_other(case: Case) -> None:
    operation = operation_of(case)
    if operation is not None:
        check_keeps_to_itself(operation, case.arrays)


def test_kernels_that_are_numpys_elementwise_functions_do_so_too() -> None:
    checked = 0
    for case in CASES:
        calls = case.op_def.name == "SymbolicGradient" or case.entry.examples[case.number].functions
        if case.op_def.is_stateful or calls or any(array.dtype.kind == "O" for array in case.arrays):
            continue
        operation = operation_of(case)
        if operation is not None and type(operation.kernel) is np.ufunc:
            check_keeps_to_itself(operation, case.arrays)
            checked += 1
    assert checked > 50
