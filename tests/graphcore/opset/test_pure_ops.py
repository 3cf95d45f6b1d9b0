"""Pure ops compute the same twice, without any effect, within the memory that is foretold."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.graph.shapes.constant_costs import is_cheap
from graphcore.graph.shapes.evaluation import evaluate_node, may_be_evaluated
from graphcore.registry import OpRegistration
from graphcore.support.budget import Budget, EvaluationLimits, one_budget
from tests.graphcore.opset.backend_cases import assert_same
from tests.graphcore.opset.op_cases import Case, all_cases
from tests.support.op_checks import checked_for

pytestmark = pytest.mark.sweep

ENTRIES = list(gc.op_registry)
PURE = [case for case in all_cases() if case.entry.traits.pure]
EFFECTS = ("open", "os.", "socket.", "subprocess.", "shutil.", "glob.", "urllib.", "tempfile.", "ctypes.", "pathlib.", "time.sleep", "exec")
IMPURE_MODULES = ("graphcore.opset.state.", "graphcore.opset.tables.", "graphcore.opset.io.", "graphcore.opset.control_flow.")
PURE_IN_THEM = {
    "RandomGammaGrad",
    "DecodeRaw",
    "EnsureShape",
    "Identity",
    "IdentityN",
    "PreventGradient",
    "Select",
    "SelectV2",
    "Snapshot",
    "StopGradient",
    "ToBool",
}
IMPURE_WORDS = (
    "Random",
    "Multinomial",
    "File",
    "PyFunc",
    "Print",
    "Timestamp",
    "Log2File",
    "Restore",
    "Save",
    "Read",
    "Reader",
    "Dataset",
    "Summary",
)

seen: list[str] = []
armed: list[bool] = []


def note_effects(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook, which stays for the life of the process."""
    if armed and event.startswith(EFFECTS):
        seen.append(f"{event}{arguments[:1]}")


sys.addaudithook(note_effects)


@contextmanager
def effects() -> Iterator[list[str]]:
    seen.clear()
    armed.append(True)
    try:
        yield seen
    finally:
        armed.clear()


def node_of(case: Case) -> gc.Node:
    """A node of constants."""
    with gc.Graph().as_default():
        return case.build_plain([gc.constant(value) for value in case.arrays])


@checked_for([entry for entry in ENTRIES if entry.traits.pure])
def a_pure_op_has_no_state_and_examples_that_are_evaluated(entry: OpRegistration) -> None:
    assert not entry.op_def.is_stateful
    assert any(may_be_evaluated(node_of(case)) for case in PURE if case.entry is entry and case.arrays)


@checked_for(ENTRIES)
def an_op_that_may_have_an_effect_is_not_pure(entry: OpRegistration) -> None:
    name = entry.op_def.name
    module = "" if entry.kernel is None else entry.kernel.__module__
    has_effect = name not in PURE_IN_THEM and (any(word in name for word in IMPURE_WORDS) or module.startswith(IMPURE_MODULES))
    handles = any(arg.is_handle for arg in (*entry.op_def.input_arg, *entry.op_def.output_arg))
    if has_effect or handles or entry.op_def.is_stateful or entry.kernel is None or entry.is_function:
        assert not entry.traits.pure


@checked_for([case for case in PURE if case.arrays])
def a_pure_op_does_the_same_twice_without_any_effect_in_the_memory_foretold(case: Case) -> None:
    node = node_of(case)
    if not may_be_evaluated(node) or not is_cheap(node, lambda tensor: tensor.shape):
        return  # not evaluated for these types
    first = evaluate_node(node, case.arrays, lambda tensor: tensor.shape)  # imports what the kernel needs
    budget = Budget(EvaluationLimits())
    with effects() as found, one_budget(budget):
        second = evaluate_node(node, case.arrays, lambda tensor: tensor.shape)
    assert not found
    for one, other in zip(first, second, strict=True):
        assert_same(one, other)
    if node.registration.traits.returns_view:
        return
    given = {id(text) for value in case.arrays if value.dtype == object for text in value.reshape(-1).tolist()}
    size = 0
    for value in second:
        array = np.asarray(value)
        size += array.nbytes
        if array.dtype == object:  # the strings of the inputs themselves take no memory
            size += sum([len(text) for text in array.reshape(-1).tolist() if id(text) not in given])
    assert size <= EvaluationLimits().bytes - budget.bytes


def test_an_op_that_declares_nothing_is_not_evaluated() -> None:
    assert not OpRegistration(gc.OpDef(name="Fresh")).traits.pure
