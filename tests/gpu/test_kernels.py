"""The whole registry on the GPU: CuPy's results of every example's kernel equal NumPy's."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

from tests.gpu.device import find_cupy
from tests.graphcore.opset.backend_cases import CASES, WITH_VARIABLES, Prepared, PreparedWithVariables, assert_same, host, values_of
from tests.graphcore.opset.op_cases import Array, Case

cupy, why_not = find_cupy()
if cupy is None:
    pytest.skip(why_not, allow_module_level=True)

# Differences by order of summation, fused multiplications, and approximations of functions.
_TOLERANCE: Final = {"float16": 4e-3, "float32": 2e-5, "float64": 1e-12, "complex64": 2e-5, "complex128": 1e-12}
_ORDER_IS_FREE: Final = {"ResourceScatterNdUpdate-2"}


def _tolerance(case: Case) -> float:
    arrays: list[Any] = list(case.arrays)  # None stands for an uninitialised variable
    return max((_TOLERANCE.get(array.dtype.name, 0.0) for array in arrays if array is not None), default=0.0) or 2e-5


@pytest.mark.parametrize("values_known", [True, False], ids=["known", "unknown"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_kernel_gives_on_the_gpu_what_it_gives_on_the_host(case: Case, values_known: bool) -> None:
    prepared = Prepared(case)
    handles = any(arg.type is not None and arg.type.text == "variant" for arg in case.op_def.input_arg)
    known: list[Array | None] = [array if values_known and not handles and array.dtype.kind in "iub" else None for array in case.arrays]
    expected = prepared.run(np, prepared.inputs(lambda array: array), known)
    found = prepared.run(cupy, prepared.inputs(cupy.asarray), known)
    for mine, wanted in zip(found, expected, strict=True):
        assert not isinstance(mine, np.ndarray) or mine.dtype == np.object_, "the result has left the device"
        if case.deterministic:
            assert_same(host(mine), host(wanted), _tolerance(case))


@pytest.mark.parametrize("case", WITH_VARIABLES, ids=lambda case: case.id)
def test_a_variable_keeps_its_value_on_the_gpu(case: Case) -> None:
    if case.id in _ORDER_IS_FREE:
        pytest.skip("a GPU replaces one place by two updates in any order")
    prepared = PreparedWithVariables(case)
    known: list[Array | None] = [None] * len(prepared.node.inputs)
    plain, given = prepared.inputs(lambda array: array), prepared.inputs(cupy.asarray)
    expected: list[Any] = values_of([*prepared.run(np, plain, known), *plain])
    found = values_of([*prepared.run(cupy, given, known), *given])
    for mine, wanted in zip(found, expected, strict=True):
        assert not isinstance(mine, np.ndarray), "the value has left the device"
        if wanted is not None:
            assert_same(host(mine), host(wanted), _tolerance(case))
