"""Complex gradients, first and second, against central differences in both directions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc
from tests.graphcore.opset.op_cases import Array, Case, all_cases
from tests.support.op_checks import checked_for

pytestmark = pytest.mark.sweep

COMPLEX = gc.complex128
REAL_RESULTS = {"Angle", "ComplexAbs", "Imag", "Real"}
LEFT_OUT = {
    "BatchNormWithGlobalNormalization": "no kernel takes complex numbers, in TensorFlow either",
    "BatchNormWithGlobalNormalizationGrad": "no kernel takes complex numbers, in TensorFlow either",
    "ClipByValue": "its gradient compares numbers, which complex ones cannot be",
    "Sign": "its gradient is zero by TensorFlow's definition, also where z / |z| turns with z",
    "ExtractImagePatches": "its gradient is an op on real patches",
    "SegmentProd": "its gradient runs SegmentMax, which orders numbers",
    "Svd": "the phases of its vectors are free; losses that do not depend on them are in math/test_gradients_of_decompositions.py",
    "UnsortedSegmentProd": "its gradient runs SegmentMax, which orders numbers",
}


# Examples without complex results for complex inputs.
GIVE_NOTHING_COMPLEX = {"Cast-0": "whole numbers", "Cast-1": "truth values", "_ArrayToList-0": "the types that its attr lists"}


def takes_complex(case: Case) -> bool:
    """True iff the op takes complex numbers in place of all floats of this example."""
    found = False
    for arg, value in zip(case.op_def.input_arg, case.inputs, strict=True):
        for part in value if isinstance(value, list) else [value]:
            if part is None:
                return False
            if part.dtype == np.float32:
                attr = case.op_def.find_attr(arg.type_attr) if arg.type_attr else None
                if attr is None or (attr.allowed_values is not None and COMPLEX not in attr.allowed_values):
                    return False
            found = found or part.dtype in (np.float32, np.complex64)
    return found


CASES = [
    case
    for case in all_cases()
    if case.runs
    and case.entry.has_gradient
    and case.entry.gradient is not None
    and case.differentiable
    and not (case.takes_variable or case.functions or case.is_of_lists)
    and takes_complex(case)
    and case.op_def.name not in LEFT_OUT
    and case.id not in GIVE_NOTHING_COMPLEX
]


class Made:
    """The op on complex placeholders, with values for them."""

    def __init__(self, case: Case) -> None:
        random = np.random.default_rng(1)
        values = [self.complex_of(array, random) for array in case.arrays]
        self.places = [gc.placeholder(COMPLEX, value.shape) if value.dtype == np.complex128 else gc.constant(value) for value in values]
        attrs = {name: COMPLEX if value in ("float", "complex64") else value for name, value in case.attrs.items()}
        if case.op_def.name in REAL_RESULTS:
            attrs["Tout"] = gc.float64
        if case.op_def.find_attr("Treal") is not None:
            attrs |= {"Treal": gc.float64, "Tcomplex": COMPLEX}
        node = Case(case.entry, case.number, case.inputs, attrs, None, differentiable=True).build(self.places)
        self.outputs = [output for output in node.outputs if output.dtype in (COMPLEX, gc.float64)]
        self.xs = [place for place in self.places if place.dtype is COMPLEX and place.node.op == "Placeholder"]
        self.feed: dict[Any, Any] = {place: value for place, value in zip(self.places, values, strict=True) if value.dtype == np.complex128}

    @staticmethod
    def complex_of(array: Array, random: np.random.Generator) -> Array:
        if array.dtype not in (np.float32, np.complex64):
            return array
        return array.astype(np.complex128) + 1j * random.uniform(0.2, 0.9, array.shape)


def test_omitted_ops_have_a_reason() -> None:
    assert set(LEFT_OUT) <= {case.op_def.name for case in all_cases() if takes_complex(case)}
    assert len({case.op_def.name for case in CASES}) > 90


@checked_for(CASES)
def a_complex_gradient_and_its_gradient_agree_with_central_differences(case: Case) -> None:
    with gc.Graph().as_default():
        made = Made(case)
        assert made.outputs
        for y in made.outputs:
            checked = gc.check_gradient(y, made.xs, made.feed)
            assert checked.passed, checked
            seed = None
            if y.shape.is_fully_defined:
                weights = np.random.default_rng(2).uniform(0.5, 1.5, [2, *[size or 0 for size in y.shape.as_list()]])
                seed = [gc.constant(weights[0] + 1j * weights[1] if y.dtype is COMPLEX else weights[0])]
            for gradient in gc.gradients(y, made.xs, grad_ys=seed):
                if gradient is not None:
                    again = gc.check_gradient(gradient, made.xs, made.feed)
                    assert again.passed, again
