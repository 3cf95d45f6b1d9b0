"""Kernels know their arrays only through `k.xp`: each example runs on arrays as strict as CuPy's and gives what NumPy gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pytest

import graphcore as gc
from graphcore.kernel_context import KernelContext, RefVariable
from graphcore.ops.tensor_list_values import TensorList
from tests.graphcore.ops.op_cases import Array, Case, all_cases, constants, with_variables
from tests.support.strict_arrays import StrictArray, strict

# CuPy has neither strings nor bfloat16.
_ON_THE_HOST = {gc.string, gc.bfloat16}


def on_device(case: Case) -> bool:
    """True if the case computes with numbers alone."""
    calls = any(attr.type in {"func", "list(func)"} for attr in case.op_def.attr)
    return (
        case.runs
        and not calls
        and case.op_def.name not in {"_Send", "_HostSend"}
        and not case.takes_variable
        and not any(gc.as_dtype(array.dtype) in _ON_THE_HOST for array in case.arrays)
    )


def host(value: Any) -> Any:
    """A result as NumPy arrays; lists by their elements."""
    if isinstance(value, TensorList):
        return [None if item is None else np.asarray(host(item)) for item in value.items]
    return value.get() if isinstance(value, StrictArray) else value


class Prepared:
    """A case's node, and its kernel on any backend."""

    def __init__(self, case: Case) -> None:
        with gc.Graph().as_default():
            self.node = case.build_plain(constants(case.arrays))
        self.case = case

    def run(self, xp: Any, inputs: Sequence[Any], known: Sequence[Array | None]) -> list[Any]:
        node = self.node
        factory = node.registration.kernel
        assert factory is not None
        context = KernelContext(
            xp=xp,
            attrs=node.node_def.attr,
            node_name=node.name,
            op=node.op,
            input_types=node.input_types,
            output_types=node.output_types,
            input_shapes=tuple(tensor.shape for tensor in node.inputs),
            constants=tuple(known),
        )
        with np.errstate(all="ignore"):
            result = factory(context)(*inputs)
        return [] if result is None else list(result) if isinstance(result, tuple | list) else [result]

    def inputs(self, wrap: Any) -> list[Any]:
        """The arrays, rows of lists as lists."""
        made: list[Any] = []
        arrays = iter(self.case.arrays)
        for arg, value in zip(self.case.op_def.input_arg, self.case.inputs, strict=True):
            for _ in value if isinstance(value, list) else [value]:
                array = next(arrays)
                made.append(_handle(self.case, array, wrap) if arg.type is gc.variant else wrap(array))
        return made


def _handle(case: Case, array: Array, wrap: Any) -> Any:
    handle = TensorList(gc.as_dtype(array.dtype), gc.Shape(array.shape[1:]), [wrap(row) for row in array])
    if case.op_def.name != "TensorListPushBackBatch":
        return handle
    handles = np.empty(1, np.object_)
    handles[0] = handle
    return handles


CASES = [case for case in all_cases() if on_device(case) and case.arrays]


def test_the_strict_arrays_are_strict() -> None:
    array = StrictArray(np.ones(3))
    for forbidden in (
        lambda: np.asarray(array),
        lambda: np.add(array, array),
        lambda: np.concatenate([array, array]),
        lambda: array + np.ones(3),
        lambda: array[np.array([0])],
        lambda: strict.add(array, np.ones(3)),
    ):
        with pytest.raises(TypeError):
            forbidden()
    with pytest.raises(AttributeError):
        _ = strict.nditer
    with pytest.raises(NotImplementedError):
        strict.maximum.reduce(array)
    two: Any = np.float32(2)
    assert (two * array).get().tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("values_known", [True, False], ids=["known", "unknown"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_kernel_needs_nothing_but_its_backend(case: Case, values_known: bool) -> None:
    """Indices, shapes and axes are also given as constants, as a plan gives them."""
    prepared = Prepared(case)
    known = [array if values_known and array.dtype.kind in "iub" else None for array in case.arrays]
    if any(arg.type is gc.variant for arg in case.op_def.input_arg):
        known = [None] * len(known)
    expected = prepared.run(np, prepared.inputs(lambda array: array), known)
    given = prepared.inputs(lambda array: StrictArray(np.array(array)))
    for mine, wanted in zip(prepared.run(strict, given, known), expected, strict=True):
        assert not isinstance(mine, np.ndarray) or mine.dtype == np.object_, "the result has left the device"
        if case.deterministic:
            _assert_same(host(mine), host(wanted))


def on_device_with_variables(case: Case) -> bool:
    """True if the case computes with numbers and with variables that hold numbers."""
    values: list[Any] = list(case.arrays)  # None stands for a variable without a value
    return case.runs and case.takes_variable and not any(v is not None and gc.as_dtype(v.dtype) in _ON_THE_HOST for v in values)


WITH_VARIABLES = [case for case in all_cases() if on_device_with_variables(case)]


class PreparedWithVariables(Prepared):
    """A case's node with variables among its inputs, and its kernel on any backend."""

    def __init__(self, case: Case) -> None:
        with gc.Graph().as_default():
            self.node = with_variables(case)[0]
        self.case = case

    def inputs(self, wrap: Any) -> list[Any]:
        """The arrays, and variables that hold arrays."""
        made: list[Any] = []
        for arg, value in zip(self.case.op_def.input_arg, self.case.inputs, strict=True):
            for part in value if isinstance(value, list) else [value]:
                if not arg.is_ref and arg.type is not gc.resource:
                    made.append(wrap(part))
                    continue
                dtype = gc.float32 if part is None else gc.as_dtype(part.dtype)
                made.append(RefVariable("v", dtype, gc.Shape(None)))
                if part is not None:
                    made[-1].assign(wrap(part))
        return made


def values_of(results: Sequence[Any]) -> list[Any]:
    """Results with variables replaced by what they hold."""
    return [result.value if isinstance(result, RefVariable) else result for result in results]


@pytest.mark.parametrize("case", WITH_VARIABLES, ids=lambda case: case.id)
def test_what_a_variable_holds_stays_on_the_device(case: Case) -> None:
    prepared = PreparedWithVariables(case)
    known: list[Array | None] = [None] * len(prepared.node.inputs)
    plain, given = prepared.inputs(lambda array: array), prepared.inputs(lambda array: StrictArray(np.array(array)))
    expected = values_of([*prepared.run(np, plain, known), *plain])
    found = values_of([*prepared.run(strict, given, known), *given])
    for mine, wanted in zip(found, expected, strict=True):
        assert not isinstance(mine, np.ndarray), "the value has left the device"
        if wanted is not None:
            _assert_same(host(mine), host(wanted))


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


def _assert_same(mine: Any, wanted: Any) -> None:
    if isinstance(wanted, list):
        assert len(mine) == len(wanted)
        for part, other in zip(mine, wanted, strict=True):
            _assert_same(part, other)
        return
    if wanted is None or (isinstance(wanted, np.ndarray) and wanted.dtype == np.object_):
        return
    assert mine.dtype == wanted.dtype
    np.testing.assert_array_equal(mine, wanted)
