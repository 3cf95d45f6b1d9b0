"""Guarantees of every op block: one test an op makes all checks, those of the other modules included."""

from __future__ import annotations

import sys
from typing import Any, Final

import numpy as np
import pytest

import graphcore as gc
from graphcore.registry import OpRegistration
from tests.graphcore.functions import test_registered_gradients
from tests.graphcore.inference import test_names_of_sizes
from tests.graphcore.inference.shape_fns import test_chains_of_every_op, test_direct_shapes, test_shapes_agree_with_kernels
from tests.graphcore.opset import (
    test_complex_gradients,
    test_costs,
    test_gradients_numerically,
    test_other_backends,
    test_pure_ops,
    test_state_traits,
    test_string_attrs,
    test_traits,
)
from tests.graphcore.opset.backend_cases import assert_same
from tests.graphcore.opset.op_cases import Array, Case, all_cases, constants, hidden, run, with_variables
from tests.support.op_checks import Check, checked_for, checks_in, make_all

ENTRIES = list(gc.op_registry)
CASES = all_cases()
RUNNABLE = [case for case in CASES if case.runs]
PURE = [case for case in RUNNABLE if case.deterministic and not case.takes_variable]


def result_of(case: Case) -> tuple[gc.Node, list[Array]]:
    with gc.Graph().as_default():
        if not case.takes_variable:
            node = case.build(constants(case.arrays))
            return node, run(node)
        node, start = with_variables(case)
        with gc.Session() as session:
            session.run(start)
            if not node.outputs:
                session.run(node)
            return node, [np.asarray(value) for value in session.run(list(node.outputs))]


@checked_for(ENTRIES)
def every_op_has_docs_and_examples(entry: OpRegistration) -> None:
    op_def = entry.op_def
    assert op_def.summary.endswith((".", "`")), f"{op_def.name}: the summary is one sentence, got {op_def.summary!r}"
    assert entry.examples
    assert entry.shape_fn is not None
    assert entry.kernel is not None


@checked_for(ENTRIES)
def a_signature_is_read_back_as_it_is_printed(entry: OpRegistration) -> None:
    text = gc.debug_string(entry.op_def)
    assert gc.debug_string(gc.parse_op_signature(text)) == text


@checked_for(RUNNABLE)
def an_example_gives_the_declared_types_and_the_outputs_it_shows(case: Case) -> None:
    node, values = result_of(case)
    assert [gc.as_dtype(value.dtype) for value in values] == [output.dtype.base for output in node.outputs]
    if case.outputs is not None:
        assert len(values) == len(case.outputs)
    for value, expected in zip(values, case.outputs or (), strict=False):
        wanted = np.asarray(expected)
        if value.dtype.kind in "OSb":
            assert value.tolist() == wanted.tolist()
        else:
            wide = np.complex128 if value.dtype.kind == "c" else np.float64
            np.testing.assert_allclose(value.astype(wide), wanted.astype(wide), rtol=1e-6)


@checked_for([case for case in PURE if case.arrays])
def an_example_gives_the_same_where_no_shape_and_no_value_is_known(case: Case) -> None:
    """Nothing is constant here, so kernels read axes, shapes and paddings at run time."""
    _, values = result_of(case)
    for sizes in ("unknown", "unknown rank"):
        with gc.Graph().as_default():
            for value, later in zip(values, run(case.build(hidden(case.arrays, sizes))), strict=True):
                assert_same(later, value)
                assert later.dtype.kind != "O" or later.tolist() == value.tolist()


@checked_for(PURE)
def a_kernel_leaves_its_inputs_as_they_are(case: Case) -> None:
    before = [array.copy() for array in case.arrays]
    with gc.Graph().as_default() as graph:
        places = [
            gc.apply_op("Placeholder", attrs={"dtype": gc.as_dtype(array.dtype), "shape": gc.Shape(array.shape)}) for array in case.arrays
        ]
        node = case.build(places)
        with gc.Session(graph=graph) as session:
            session.run(list(node.outputs) or node, dict(zip(places, case.arrays, strict=True)))
    for array, old in zip(case.arrays, before, strict=True):
        assert array.tolist() == old.tolist() or np.array_equal(array, old, equal_nan=True)


MODULES: Final = (
    sys.modules[__name__],
    test_registered_gradients,
    test_names_of_sizes,
    test_chains_of_every_op,
    test_direct_shapes,
    test_shapes_agree_with_kernels,
    test_complex_gradients,
    test_costs,
    test_gradients_numerically,
    test_other_backends,
    test_pure_ops,
    test_state_traits,
    test_string_attrs,
    test_traits,
)
"""The modules with checks of every op, or of each op of a kind."""
CHECKS: Final[list[Check[Any]]] = checks_in(MODULES, slow=False)
ON_DRAWN_INPUTS: Final[list[Check[Any]]] = checks_in(MODULES, slow=True)


@pytest.mark.sweep
@pytest.mark.parametrize("op", [entry.op_def.name for entry in ENTRIES])
def test_an_op_is_what_its_block_says(op: str) -> None:
    make_all(CHECKS, op)


@pytest.mark.slow
@pytest.mark.parametrize("op", list(dict.fromkeys(op for check in ON_DRAWN_INPUTS for op in check.subjects)))
def test_an_op_is_what_its_block_says_for_inputs_and_attrs_that_are_drawn(op: str) -> None:
    make_all(ON_DRAWN_INPUTS, op)
