"""The declared cost of an op fits what its results depend on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pytest

import graphcore as gc
from graphcore.graph import Node
from graphcore.placement.node_costs import FLOPS_PER_MICROSECOND, cost
from graphcore.registry import Kernel, OpRegistration
from tests.graphcore.opset.hostile_inputs import argument_names
from tests.graphcore.opset.op_cases import Array, Case
from tests.graphcore.opset.test_traits import ENTRIES, called, cases_of, kernel_for
from tests.support.op_checks import checked_for

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
    "MaxPoolGradGradV2": "as of MaxPool3DGrad",
}
"""Ops that look at several elements for a result, which changes of one element do not show."""
BY_SUMS: Final = {
    "BatchNormWithGlobalNormalizationGrad": "each result needs a sum over the batch, made once",
    "BroadcastGradientArgs": "a size decides about several axes",
    "CrossEntropy": "each result needs the sum of its row, made once",
    "CTCBeamSearchDecoder": "each result needs all times of its sequence",
    "CTCGreedyDecoder": "each result needs all times of its sequence",
    "CTCLoss": "each result needs all times of its sequence",
    "AdjustContrastv2": "each result needs the mean of its image, made once",
    "Cumprod": "each result follows from the one before",
    "Cumsum": "each result follows from the one before",
    "Fill": "all results are one value",
    "TridiagonalSolve": "each result follows from the one before",
    "LogSoftmax": "each result needs the sum of its row, made once",
    "Softmax": "each result needs the sum of its row, made once",
    "SoftmaxCrossEntropyWithLogits": "each result needs the sum of its row, made once",
    **{
        f"StatelessRandom{kind}": "a seed changes all numbers"
        for kind in ("Normal", "NormalV2", "Uniform", "UniformFullInt", "UniformFullIntV2", "UniformInt", "UniformIntV2", "UniformV2")
    },
    "StatelessTruncatedNormal": "a seed changes all numbers",
    "StatelessTruncatedNormalV2": "a seed changes all numbers",
    "FusedBatchNorm": "each result needs the mean of the batch, made once",
    "FusedBatchNormGrad": "each result needs a sum over the batch, made once",
    "FusedBatchNormGradV2": "each result needs a sum over the batch, made once",
    "FusedBatchNormGradV3": "each result needs a sum over the batch, made once",
    "FusedBatchNormV2": "each result needs the mean of the batch, made once",
    "FusedBatchNormV3": "each result needs the mean of the batch, made once",
    "ListDiff": "an element that goes moves all later ones",
}
"""Ops whose results depend on many elements each, though the kernels pass over the elements only a few times."""

MOST_COMBINED: Final = 4.4
"""The number of results that an element may change, for as many inputs as results, if the cost is linear."""
SEEMS_LINEAR: Final = {
    **dict.fromkeys(["Cholesky", "LogMatrixDeterminant"], "half of a matrix is not read, or becomes one number"),
    **dict.fromkeys(
        ["Dilation2DBackpropFilter", "Dilation2DBackpropInput", "MaxPoolGrad", "MaxPoolGradV2", "MaxPool3DGrad"],
        "each gradient goes to one element of its window",
    ),
    **dict.fromkeys(["MaxPoolGradGrad", "MaxPoolGradGradV2", "MaxPool3DGradGrad"], "each gradient comes from one element of its window"),
    **dict.fromkeys(["Conv3DBackpropFilterV2", "Conv3DBackpropInputV2"], "a size is an input, so that larger ones need another"),
    **dict.fromkeys([f"NonMaxSuppression{version}" for version in ("", "V2", "V3", "V4")], "few boxes are chosen"),
    "EditDistance": "its sequences are sparse",
    "MatrixDeterminant": "each matrix has one result",
    "NthElement": "each row has one result",
    "ResizeArea": "an element is in few areas",
    **dict.fromkeys(["RFFT", "IRFFT"], "half of a spectrum is left out, and its transforms are short in the examples"),
}
"""Ops of higher cost with few results for each element, or whose inputs cannot simply be made larger."""
ALGEBRAIC: Final = frozenset({"Inv", "Reciprocal", "Rsqrt", "Softsign", "Sqrt", "SqrtGrad"})
"""Elementwise ops that are no polynomials and yet as cheap as arithmetic."""


def dependence(kernel: Kernel, arrays: Sequence[Array], slot: int, every: int = 1) -> npt.NDArray[np.bool_]:
    """The elements of the outputs (columns) that change with each, or every so many, of an input (rows)."""
    before = flat(called(kernel, arrays))
    places = range(0, arrays[slot].size, every)
    found = np.zeros((len(places), before.size), bool)
    for row, place in enumerate(places):
        for step in STEPS:
            others = [array.copy() for array in arrays]
            element = others[slot].reshape(-1)
            element[place] += np.asarray(step).astype(element.dtype)
            after = outcome(kernel, others)
            if after is not None:
                found[row] |= before != after if after.size == before.size else True
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


@cache
def numeric_cases(entry: OpRegistration) -> list[tuple[Case, Node, Kernel]]:
    """Cases with numbers as inputs and outputs, with their nodes and kernels."""
    found = []
    for case in cases_of(entry):
        made = kernel_for(case, case.arrays, dict(case.attrs), SIZES)
        if made is None or not made[0].outputs or case.op_def.is_stateful or not case.runs:
            continue
        if all(array.dtype.kind != "O" for array in (*case.arrays, *map(np.asarray, called(made[1], case.arrays)))):
            found.append((case, *made))
    return found


def numbers(case: Case) -> list[int]:
    """The first input, and those that hold no indices, axes or sizes."""
    return [slot for slot, array in enumerate(case.arrays) if array.size and array.dtype.kind in ("fcV" if slot else "fciuV")]


def larger(case: Case) -> list[tuple[Sequence[Array], Kernel]]:
    """The case with larger arrays and its kernel; none if the op does not take them."""
    names, arrays = argument_names(case), []
    for slot, (name, array) in enumerate(zip(names, case.arrays, strict=True)):
        if array.size and (not slot or array.dtype.kind in "fc"):
            shape = [size + 7 if size > 1 else size for size in array.shape]
            array = (np.resize(array, shape) + np.linspace(0, 0.5, int(np.prod(shape))).reshape(shape)).astype(array.dtype)
        arrays.append(np.asarray(8, array.dtype) if name == "k" and slot else array)
    made = kernel_for(case, arrays, dict(case.attrs), SIZES)
    return [] if made is None or outcome(made[1], arrays) is None else [(arrays, made[1])]


def larger_windows(case: Case) -> list[tuple[Sequence[Array], Kernel]]:
    """A pooling case with larger windows, one at each pixel of a larger image; none for other ops."""
    names, rank = argument_names(case), max((array.ndim for array in case.arrays), default=0)
    if "ksize" not in case.attrs and "ksize" not in names:
        return []
    shape = (1, *[7] * (rank - 2), 1)
    window, step = [1, *[5] * (rank - 2), 1], [1] * rank
    arrays = []
    for name, array in zip(names, case.arrays, strict=True):
        if array.ndim == rank:
            array = (np.linspace(0, 0.5, int(np.prod(shape))) + 1).reshape(shape).astype(array.dtype)
        else:
            array = np.array({"ksize": window, "strides": step}.get(name, list(shape)), array.dtype)
        arrays.append(array)
    attrs = {
        **case.attrs,
        **{name: value for name, value in (("ksize", window), ("strides", step)) if name in case.attrs},
        "padding": b"SAME",
    }
    made = kernel_for(case, arrays, attrs, (*SIZES, "orig_input_shape", "ksize", "strides"))
    return [] if made is None or outcome(made[1], arrays) is None else [(arrays, made[1])]


def combined(entry: OpRegistration) -> float:
    """The number of results that an element of an input changes, in the examples and in larger inputs.

    It is scaled as if there were as many results as elements.
    """
    most = 0.0
    for case, _, kernel in numeric_cases(entry):
        for arrays, each in [(case.arrays, kernel), *larger(case), *larger_windows(case)]:
            size = max([flat(called(each, arrays)).size, *[array.size for array in arrays]], default=0)
            for slot in numbers(case):
                found = dependence(each, arrays, slot, max(1, arrays[slot].size // 32))
                most = max(most, found.mean() * arrays[slot].size * found.shape[1] / max(size, 1) if found.size else 0.0)
    return most


def with_cost(*kinds: str) -> list[OpRegistration]:
    return [entry for entry in ENTRIES if entry.traits.cost in kinds and numeric_cases(entry)]


def name_of(entry: OpRegistration) -> str:
    return entry.op_def.name


@checked_for(with_cost("elementwise", "transcendental"), slow=True)
def an_op_of_linear_cost_does_not_combine_all_elements_with_each_other(entry: OpRegistration) -> None:
    assert (combined(entry) > MOST_COMBINED) == (name_of(entry) in BY_SUMS)


@checked_for(with_cost("product", "convolution", "contraction", "pairs", "sort", "cubic", "transform"), slow=True)
def an_op_of_higher_cost_would_not_pass_for_one_of_linear_cost(entry: OpRegistration) -> None:
    assert (combined(entry) > MOST_COMBINED) != (name_of(entry) in SEEMS_LINEAR)


@checked_for(with_cost("product", "convolution", "contraction"))
def the_cost_of_an_op_of_products_counts_its_multiplications(entry: OpRegistration) -> None:
    """At the borders of images some are left out, and integers that are 0 show nothing."""
    for case, node, kernel in numeric_cases(entry):
        moved = len(case.arrays) - 1 if len(case.arrays) == 3 else 0
        needed = int(dependence(kernel, case.arrays, moved).sum())
        counted = cost(node) * FLOPS_PER_MICROSECOND / 2
        low, high = (0.999, 1.5) if entry.traits.cost == "product" else (0.5, 4)
        assert low * needed <= counted <= high * needed


@checked_for(with_cost("pairs", "sort", "cubic", "transform"))
def a_result_of_a_slow_op_depends_on_several_elements_of_an_input(entry: OpRegistration) -> None:
    found = [dependence(kernel, case.arrays, slot) for case, _, kernel in numeric_cases(entry) for slot in numbers(case)]
    assert (max(each.sum(axis=0).max() for each in found) > 1) != (name_of(entry) in UNSEEN)


@checked_for(with_cost("cubic", "transform"))
def a_transform_or_a_solver_uses_each_element_for_all_results(entry: OpRegistration) -> None:
    assert any(
        dependence(kernel, case.arrays, 0).sum(axis=1).min() > 1 or case.arrays[0].ndim > 2 for case, _, kernel in numeric_cases(entry)
    )


@checked_for(with_cost("sort"))
def sorting_only_compares(entry: OpRegistration) -> None:
    """Twice each element gives twice the elements at the same places."""
    for case, _, kernel in numeric_cases(entry):
        first, second = called(kernel, case.arrays), called(kernel, [case.arrays[0] * 2, *case.arrays[1:]])
        np.testing.assert_array_equal(second[0], first[0] * 2)
        for one, other in pairwise([first[1:], second[1:]]):
            for value, again in zip(one, other, strict=True):
                np.testing.assert_array_equal(value, again)


def curve(entry: OpRegistration, places: npt.NDArray[np.float64], others: float = 1.5) -> Array | None:
    """The results of an elementwise op at values of its first input; None if it takes no doubles."""
    inputs = [np.stack([places, np.full(8, 1.5)], axis=1), *[np.full((8, 2), others)] * (len(entry.op_def.input_arg) - 1)]
    case = cases_of(entry)[0]
    made = kernel_for(case, inputs, {**case.attrs, "T": gc.float64}, ())
    return None if made is None else np.asarray(called(made[1], inputs)[0])[:, 0]


@checked_for([entry for entry in with_cost("elementwise") if entry.traits.elementwise])
def an_elementwise_op_without_a_higher_cost_is_a_polynomial_within_its_steps(entry: OpRegistration) -> None:
    values = curve(entry, np.linspace(0.55, 0.9, 8))
    is_curved = values is not None and values.dtype.kind == "f" and bool(np.abs(np.diff(values, 6)).max() > 1e-9)
    assert is_curved == (name_of(entry) in ALGEBRAIC)


@checked_for(with_cost("transcendental"))
def a_transcendental_op_is_no_polynomial(entry: OpRegistration) -> None:
    """Differences of the sixth order of its values are not 0."""
    curves = [curve(entry, np.linspace(start, end, 8), others) for start, end in ((0.55, 0.9), (1.1, 1.9)) for others in (1.5, 0.5)]
    assert any(values is not None and np.abs(np.diff(values, 6)).max() > 1e-9 for values in curves)
