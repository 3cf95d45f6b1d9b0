"""Kernels use only `k.xp`: each example on arrays as strict as CuPy's agrees with NumPy."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

import graphcore as gc
from graphcore.kernel_context import KernelContext, RefVariable
from tests.graphcore.opset.backend_cases import CASES, WITH_VARIABLES, Prepared, PreparedWithVariables, assert_same, host, values_of
from tests.graphcore.opset.op_cases import Array, Case
from tests.support.op_checks import checked_for
from tests.support.strict_arrays import StrictArray, strict

pytestmark = pytest.mark.sweep


def test_the_strict_arrays_are_strict() -> None:
    array = StrictArray(np.ones(3))
    for forbidden in (
        lambda: np.asarray(array),
        lambda: np.add(array, array),
        lambda: np.concatenate([array, array]),
        lambda: array + np.ones(3),
        lambda: array[np.array([0])],
        lambda: strict.add(array, np.ones(3)),
        lambda: strict.add(array, array, where=array.astype(bool)),
        lambda: strict.sum(array, where=array.astype(bool)),
        lambda: strict.argsort(array, stable=True),
        lambda: array.sum(initial=1),
        lambda: strict.linalg.inv(array, None),
        lambda: strict.maximum(array, array, subok=True),
        lambda: strict.logical_or(array.astype(np.complex64), array.astype(np.complex64)),
    ):
        with pytest.raises(TypeError):
            forbidden()
    with pytest.raises(AttributeError):
        _ = strict.nditer
    with pytest.raises(NotImplementedError):
        strict.maximum.reduce(array)
    two: Any = np.float32(2)
    assert (two * array).get().tolist() == [2.0, 2.0, 2.0]


@checked_for(CASES)
def a_kernel_needs_nothing_but_its_backend(case: Case) -> None:
    """Indices, shapes and axes are also given as constants, as in plans."""
    prepared = Prepared(case)
    unknown: list[Array | None] = [None] * len(case.arrays)
    has_handles = any(arg.type is gc.variant for arg in case.op_def.input_arg)
    constant = unknown if has_handles else [array if array.dtype.kind in "iub" else None for array in case.arrays]
    for known in [unknown] if all(array is None for array in constant) else [unknown, constant]:
        expected = prepared.run(np, prepared.inputs(lambda array: array), known)
        given = prepared.inputs(lambda array: StrictArray(np.array(array)))
        for mine, wanted in zip(prepared.run(strict, given, known), expected, strict=True):
            assert not isinstance(mine, np.ndarray) or mine.dtype == np.object_, "the result has left the device"
            if case.deterministic:
                assert_same(host(mine), host(wanted))


@checked_for(WITH_VARIABLES)
def the_value_of_a_variable_stays_on_the_device(case: Case) -> None:
    prepared = PreparedWithVariables(case)
    known: list[Array | None] = [None] * len(prepared.node.inputs)
    plain, given = prepared.inputs(lambda array: array), prepared.inputs(lambda array: StrictArray(np.array(array)))
    expected = values_of([*prepared.run(np, plain, known), *plain])
    found = values_of([*prepared.run(strict, given, known), *given])
    for mine, wanted in zip(found, expected, strict=True):
        assert not isinstance(mine, np.ndarray), "the value has left the device"
        if wanted is not None:
            assert_same(host(mine), host(wanted))


class _Weighted:
    """Runs the function of a MapAccumulate's step, and its gradient, on any backend."""

    def function_kernel(self, name: str, _: Any) -> Any:
        if name == "step":
            return lambda w, x, u: w * x + u
        return lambda w, x, _, dy: (x * dy, w * dy, dy)

    def function_types(self, name: str, _: Any) -> tuple[list[gc.DType], list[gc.DType]]:
        return ([gc.float32] * 3, [gc.float32]) if name == "step" else ([gc.float32] * 4, [gc.float32] * 3)


@pytest.mark.parametrize(("op", "attr"), [("MapAccumulate", "f"), ("MapAccumulateGrad", "g")])
def test_a_run_along_rows_stays_on_the_device(op: str, attr: str) -> None:
    arrays = [np.ones(2, np.float32), np.ones((3, 2), np.float32), np.ones(2, np.float32)]
    arrays += [np.ones((3, 2), np.float32)] * (2 if op == "MapAccumulateGrad" else 0)
    results = []
    for xp, wrap in ((np, np.array), (strict, lambda array: StrictArray(np.array(array)))):
        attrs: dict[str, Any] = {attr: gc.Func("step" if attr == "f" else "back"), "T": gc.float32, "K": 1}
        context = KernelContext(xp=cast("Any", xp), attrs=attrs, node_name="map", op=op)
        context.functions = cast("Any", _Weighted())
        factory = next(entry.kernel for entry in gc.op_registry if entry.op_def.name == op)
        assert factory is not None
        found = factory(context)(*[wrap(array) for array in arrays])
        results.append([host(value) for value in (found if isinstance(found, tuple) else (found,))])
    for plain, mine in zip(*results, strict=True):
        np.testing.assert_array_equal(mine, plain)


def test_there_are_variables_of_all_kinds_among_these_cases() -> None:
    names = {case.op_def.name for case in WITH_VARIABLES}
    assert {
        "Assign",
        "AssignAdd",
        "AssignVariableOp",
        "AssignSubVariableOp",
        "ReadVariableOp",
        "ScatterAdd",
        "ResourceScatterUpdate",
    } <= names
    assert {"ApplyGradientDescent", "ApplyMomentum", "ResourceApplyAdam"} <= names


def test_a_variable_keeps_a_view_of_a_device_array_as_a_copy() -> None:
    array = StrictArray(np.arange(4.0))
    variable = RefVariable("v", gc.float64, gc.Shape(None))
    variable.assign(array[1:3])
    array[1] = 9.0
    assert host(variable.value).tolist() == [1.0, 2.0]
