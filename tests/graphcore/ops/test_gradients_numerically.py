"""Every registered gradient against central differences, in double precision; and where its body has gradients, the second derivative."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc
from tests.graphcore.ops.op_cases import Array, Case, all_cases, constants, hidden

STEP = 1e-5


def allows_double(case: Case) -> bool:
    """True if the op takes doubles wherever this example gives it floats."""
    for arg, value in zip(case.op_def.input_arg, case.inputs, strict=True):
        parts = value if isinstance(value, list) else [value]
        if not any(part is not None and part.dtype == np.float32 for part in parts):
            continue
        attr = case.op_def.find_attr(arg.type_attr) if arg.type_attr else None
        if attr is None or (attr.allowed_values is not None and gc.float64 not in attr.allowed_values):
            return False
    return True


def in_double(case: Case) -> list[Array]:
    return [array.astype(np.float64) if array.dtype == np.float32 else array for array in case.arrays]


CASES = [
    case
    for case in all_cases()
    if case.entry.gradient is not None
    and case.differentiable
    and not case.takes_variable
    and any(array.dtype in (np.float32, np.float64) for array in case.arrays)
    and allows_double(case)
]


class Differentiated:
    """One node whose floating inputs are placeholders and whose other inputs are constants, and a weighted sum of its outputs as a loss."""

    def __init__(self, case: Case) -> None:
        self.values = in_double(case)
        self.floating = [i for i, value in enumerate(self.values) if value.dtype == np.float64]
        self.graph = gc.Graph()
        with self.graph.as_default():
            self.places = [self.placed(value) for value in self.values]
            outputs = [output for output in doubled(case).build(self.places).outputs if output.dtype is gc.float64]
            self.loss = weighted(outputs) if outputs else None

    def placed(self, value: Array) -> Any:
        if value.dtype != np.float64:
            return gc.constant(value)
        return gc.apply_op("Placeholder", attrs={"dtype": gc.float64, "shape": gc.Shape(value.shape)})

    def gradients(self, loss: Any) -> list[Any]:
        with self.graph.as_default():
            return gc.gradients(loss, [self.places[i] for i in self.floating])

    def check(self, loss: Any, gradients: list[Any]) -> None:
        """Compare with central differences of the loss."""
        with gc.Session(graph=self.graph) as session:
            for i, gradient in zip(self.floating, gradients, strict=True):
                wanted = self.differences(session, loss, i)
                got = np.zeros_like(wanted) if gradient is None else session.run(gradient, self.feed())
                np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-6, err_msg=f"by input {i}")

    def differences(self, session: gc.Session, loss: Any, i: int) -> Array:
        result = np.zeros(self.values[i].shape)
        for at in np.ndindex(*result.shape):
            sides = []
            for step in (STEP, -STEP):
                moved = self.values[i].copy()
                moved[at] += step
                sides.append(session.run(loss, {**self.feed(), self.places[i]: moved}))
            result[at] = (sides[0] - sides[1]) / (2 * STEP)
        return result

    def feed(self) -> dict[Any, Array]:
        return {self.places[i]: self.values[i] for i in self.floating}


def doubled(case: Case) -> Case:
    attrs = {key: "double" if value == "float" else value for key, value in case.attrs.items()}
    return Case(case.entry, case.number, case.inputs, attrs, None, differentiable=True)


def weighted(tensors: list[Any]) -> Any:
    """A sum in which no two elements count the same."""
    random = np.random.default_rng(0)
    weights = [gc.constant(random.uniform(0.5, 1.5, [size or 1 for size in tensor.shape])) for tensor in tensors]
    return gc.add_n([gc.reduce_sum(tensor * weight) for tensor, weight in zip(tensors, weights, strict=True)])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_gradient_agrees_with_central_differences(case: Case) -> None:
    made = Differentiated(case)
    if made.loss is None:
        return
    made.check(made.loss, made.gradients(made.loss))


# The gradient of Cumprod divides by its input, as the reference's does.
AT_ZERO = {"Prod-5"}


@pytest.mark.parametrize("case", [case for case in CASES if case.id not in AT_ZERO], ids=lambda case: case.id)
def test_a_second_derivative_agrees_with_central_differences(case: Case) -> None:
    made = Differentiated(case)
    if made.loss is None:
        return
    first = [gradient for gradient in made.gradients(made.loss) if gradient is not None]
    if not first:
        return
    with made.graph.as_default():
        loss = weighted(first)
    made.check(loss, made.gradients(loss))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_gradient_is_the_same_where_no_shape_and_no_value_is_known(case: Case) -> None:
    """Axes, shapes and indices are read at run time then, and broadcasting is undone by what the shapes turn out to be."""
    results = []
    for make in (constants, lambda arrays: hidden(arrays, "unknown rank")):
        with gc.Graph().as_default() as graph:
            tensors = make(in_double(case))
            outputs = [output for output in doubled(case).build(tensors).outputs if output.dtype is gc.float64]
            if not outputs:
                return
            found = gc.gradients(outputs, [tensor for tensor in tensors if tensor.dtype is gc.float64])
            with gc.Session(graph=graph) as session:
                results.append([None if gradient is None else session.run(gradient) for gradient in found])
    for known, hid in zip(*results, strict=True):
        assert (known is None) == (hid is None)
        if known is not None:
            np.testing.assert_allclose(known, hid, rtol=1e-12)
