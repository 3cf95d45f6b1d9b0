"""The declared cost of an op fits what its results depend on."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pytest

import graphcore as gc
from graphcore.graph import Node
from graphcore.registry import Kernel, OpRegistration
from graphcore.runtime.plan.parallel import FLOPS_PER_MICROSECOND, cost
from tests.graphcore.opset.op_cases import Array, Case
from tests.graphcore.opset.test_traits import ENTRIES, called, cases_of, kernel_for

pytestmark = pytest.mark.sweep

STEPS: Final = (0.37, 5.0, -3.0)
"""Changes of an element: one may be too small for a window's maximum or for a rounded value."""
SIZES: Final = ("input_sizes", "filter_sizes")
"""Inputs that are constants, so that all shapes are known."""
UNSEEN: Final = {
    "EditDistance": "its sequences are sparse",
    "MaxPool3DGrad": "the windows of its example are apart, and the maximum of one is not lost by a change of another element",
    "MaxPool3DGradGrad": "as of MaxPool3DGrad",
    "MaxPoolGradGrad": "as of MaxPool3DGrad",
}
"""Ops that look at several elements for a result, which changes of one element do not show."""
BY_SUMS: Final = {
    "FusedBatchNorm": "each result needs the mean of the batch, made once",
    "FusedBatchNormGrad": "each result needs a sum over the batch, made once",
    "FusedBatchNormGradV2": "each result needs a sum over the batch, made once",
    "FusedBatchNormGradV3": "each result needs a sum over the batch, made once",
    "FusedBatchNormV2": "each result needs the mean of the batch, made once",
    "FusedBatchNormV3": "each result needs the mean of the batch, made once",
    "ListDiff": "an element that goes moves all later ones",
}
"""Ops whose results depend on many elements each, though the kernels pass over the elements only a few times."""


def dependence(kernel: Kernel, arrays: Sequence[Array], slot: int) -> npt.NDArray[np.bool_]:
    """The elements of the outputs (columns) that change with each element of an input (rows)."""
    before = flat(called(kernel, arrays))
    found = np.zeros((arrays[slot].size, before.size), bool)
    for place in range(arrays[slot].size):
        for step in STEPS:
            others = [array.copy() for array in arrays]
            element = others[slot].reshape(-1)
            element[place] += np.asarray(step).astype(element.dtype)
            after = outcome(kernel, others)
            if after is not None:
                found[place] |= before != after if after.size == before.size else True
    return found


def outcome(kernel: Kernel, arrays: Sequence[Array]) -> Array | None:
    """The outputs, None if the kernel refuses the values."""
    try:
        return flat(called(kernel, arrays))
    except (gc.errors.GraphError, ValueError, IndexError):
        return None


def flat(outputs: Sequence[Any]) -> Array:
    joined: Array = np.concatenate([np.asarray(output, np.complex128).reshape(-1) for output in outputs])
    return np.asarray(np.nan_to_num(joined))


def numeric_cases(entry: OpRegistration) -> list[tuple[Case, Node, Kernel]]:
    """Cases with numbers as inputs and outputs, with their nodes and kernels."""
    found = []
    for case in cases_of(entry):
        made = kernel_for(case, case.arrays, dict(case.attrs), SIZES)
        if made is None or not made[0].outputs or case.op_def.is_stateful:
            continue
        if all(array.dtype.kind != "O" for array in (*case.arrays, *map(np.asarray, called(made[1], case.arrays)))):
            found.append((case, *made))
    return found


def numbers(case: Case) -> list[int]:
    """The first input, and those that hold no indices, axes or sizes."""
    return [slot for slot, array in enumerate(case.arrays) if array.size and array.dtype.kind in ("fcV" if slot else "fciuV")]


def with_cost(*kinds: str) -> list[OpRegistration]:
    return [entry for entry in ENTRIES if entry.traits.cost in kinds and numeric_cases(entry)]


def name_of(entry: OpRegistration) -> str:
    return entry.op_def.name


@pytest.mark.parametrize("entry", with_cost("elementwise", "transcendental"), ids=name_of)
def test_an_op_of_linear_cost_does_not_combine_all_elements_with_each_other(entry: OpRegistration) -> None:
    most = 0.0
    for case, _, kernel in numeric_cases(entry):
        size = max([flat(called(kernel, case.arrays)).size, *[array.size for array in case.arrays]], default=0)
        most = max([most, *[dependence(kernel, case.arrays, slot).sum() / max(size, 1) for slot in numbers(case)]])
    assert (most > 4.5) == (name_of(entry) in BY_SUMS)


@pytest.mark.parametrize("entry", with_cost("product", "convolution", "contraction"), ids=name_of)
def test_the_cost_of_an_op_of_products_counts_its_multiplications(entry: OpRegistration) -> None:
    """At the borders of images some are left out, and integers that are 0 show nothing."""
    for case, node, kernel in numeric_cases(entry):
        moved = len(case.arrays) - 1 if len(case.arrays) == 3 else 0
        needed = int(dependence(kernel, case.arrays, moved).sum())
        counted = cost(node) * FLOPS_PER_MICROSECOND / 2
        low, high = (0.999, 1.5) if entry.traits.cost == "product" else (0.5, 4)
        assert low * needed <= counted <= high * needed


@pytest.mark.parametrize("entry", with_cost("pairs", "sort", "cubic", "transform"), ids=name_of)
def test_a_result_of_a_slow_op_depends_on_several_elements_of_an_input(entry: OpRegistration) -> None:
    found = [dependence(kernel, case.arrays, slot) for case, _, kernel in numeric_cases(entry) for slot in numbers(case)]
    assert (max(each.sum(axis=0).max() for each in found) > 1) != (name_of(entry) in UNSEEN)


@pytest.mark.parametrize("entry", with_cost("cubic", "transform"), ids=name_of)
def test_a_transform_or_a_solver_uses_each_element_for_all_results(entry: OpRegistration) -> None:
    assert any(
        dependence(kernel, case.arrays, 0).sum(axis=1).min() > 1 or case.arrays[0].ndim > 2 for case, _, kernel in numeric_cases(entry)
    )


@pytest.mark.parametrize("entry", with_cost("sort"), ids=name_of)
def test_sorting_only_compares(entry: OpRegistration) -> None:
    """Twice each element gives twice the elements at the same places."""
    for case, _, kernel in numeric_cases(entry):
        first, second = called(kernel, case.arrays), called(kernel, [case.arrays[0] * 2, *case.arrays[1:]])
        np.testing.assert_array_equal(second[0], first[0] * 2)
        for one, other in pairwise([first[1:], second[1:]]):
            for value, again in zip(one, other, strict=True):
                np.testing.assert_array_equal(value, again)


@pytest.mark.parametrize("entry", with_cost("transcendental"), ids=name_of)
def test_a_transcendental_op_is_no_polynomial(entry: OpRegistration) -> None:
    """Differences of the sixth order of its values are not 0."""
    inputs = [np.stack([np.arange(1, 9) / 8, np.full(8, 1.5)], axis=1), np.full((8, 2), 1.5)][: len(entry.op_def.input_arg)]
    case = cases_of(entry)[0]
    made = kernel_for(case, inputs, {**case.attrs, "T": gc.float64}, ())
    assert made is not None
    assert np.abs(np.diff(called(made[1], inputs)[0][:, 0], 6)).max() > 1e-9
