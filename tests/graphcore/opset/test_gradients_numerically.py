"""Registered gradients, first and second, against central differences."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from tests.graphcore.opset.op_cases import REFUSED_GRADIENTS, Array, Case, all_cases, constants, hidden
from tests.graphcore.opset.test_complex_gradients import CASES as COMPLEX_CASES
from tests.support.op_checks import checked_for

pytestmark = pytest.mark.sweep


@dataclass(frozen=True)
class Precision:
    """The type of the computation, the step of the differences, and the tolerance."""

    dtype: gc.DType
    step: float
    tolerance: float


DOUBLE = Precision(gc.float64, 1e-5, 2e-5)
SINGLE = Precision(gc.float32, 1e-2, 2e-2)
# As in TensorFlow, the gradient ignores the further outputs, which are statistics or gradients: a gradient that reaches one is refused.
FIRST_OUTPUT = {"CTCLoss", "FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"}

# Its gradient is a MaxPool3DGrad, which has no doubles.
SINGLE_GRADIENT = {"MaxPool3DGradGrad"}


def allows_double(case: Case) -> bool:
    """True iff the op takes doubles in place of all floats of this example, and has some."""
    if case.op_def.name in SINGLE_GRADIENT or all(arg.type is gc.float32 for arg in case.op_def.output_arg):
        return False
    for arg, value in zip(case.op_def.input_arg, case.inputs, strict=True):
        parts = value if isinstance(value, list) else [value]
        if not any(part is not None and part.dtype == np.float32 for part in parts):
            continue
        if case.entry.examples[case.number].functions:
            return False  # of one type
        attr = case.op_def.find_attr(arg.type_attr) if arg.type_attr else None
        if attr is None or (attr.allowed_values is not None and gc.float64 not in attr.allowed_values):
            return False
    return True


def precision(case: Case) -> Precision:
    return DOUBLE if allows_double(case) else SINGLE


def precise_inputs(case: Case) -> list[Array]:
    wanted = precision(case).dtype.as_numpy
    return [array.astype(wanted) if array.dtype == np.float32 else array for array in case.arrays]


def differentiated_outputs(case: Case, tensors: list[Any], only: int | None = None) -> list[Any]:
    """The floating outputs of the case (or the one numbered `only`), as precise as the op allows."""
    dtype = precision(case).dtype
    attrs = {
        key: [dtype if item == "float" else item for item in value] if isinstance(value, list) else value
        for key, value in case.attrs.items()
    }
    attrs = {key: dtype if isinstance(value, str) and value == "float" else value for key, value in attrs.items()}
    node = replace(case, attrs=attrs, outputs=None).build(tensors)
    outputs = node.outputs[:1] if case.op_def.name in FIRST_OUTPUT else node.outputs
    if only is not None:
        outputs = [node.outputs[only]]
    return [output for output in outputs if output.dtype is dtype]


# Examples without floating results, so that no gradient flows back.
GIVE_NO_FLOATS = {"Cast-0": "whole numbers", "Cast-1": "truth values", "Complex-0": "complex numbers: see the test of its own"}
CASES = [
    case
    for case in all_cases()
    if case.id not in GIVE_NO_FLOATS
    and case.entry.gradient is not None
    and case.differentiable
    and case.runs
    and not case.takes_variable
    and any(array.dtype in (np.float32, np.float64) for array in case.arrays)
]


class Differentiated:
    """One node with floating inputs as placeholders, others as constants, and a weighted sum as loss."""

    def __init__(self, case: Case, inputs: Sequence[int] | None = None, only: int | None = None) -> None:
        self.precision = precision(case)
        self.values = precise_inputs(case)
        variable = inputs or range(len(self.values))
        self.floating = [i for i in variable if self.values[i].dtype == self.precision.dtype.as_numpy]
        self.graph = gc.Graph()
        with self.graph.as_default():
            self.places = [self.placed(i, value) for i, value in enumerate(self.values)]
            outputs = differentiated_outputs(case, self.places, only)
            self.loss = weighted(outputs) if outputs else None

    def placed(self, i: int, value: Array) -> Any:
        if i not in self.floating:
            return gc.constant(value)
        return gc.apply_op("Placeholder", attrs={"dtype": self.precision.dtype, "shape": gc.Shape(value.shape)})

    def gradients(self, loss: Any) -> list[Any]:
        with self.graph.as_default():
            return gc.gradients(loss, [self.places[i] for i in self.floating])

    def check(self, loss: Any, gradients: list[Any]) -> None:
        """Compare with central differences of the loss."""
        tolerance = self.precision.tolerance
        with gc.Session(graph=self.graph) as session:
            for i, gradient in zip(self.floating, gradients, strict=True):
                wanted = self.differences(session, loss, i)
                got = np.zeros_like(wanted) if gradient is None else session.run(gradient, self.feed())
                np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance, err_msg=f"by input {i}")

    def differences(self, session: gc.Session, loss: Any, i: int) -> Array:
        result = np.zeros(self.values[i].shape)
        size = self.precision.step
        for at in np.ndindex(*result.shape):
            sides = []
            for step in (size, -size):
                moved = self.values[i].copy()
                moved[at] += step
                sides.append(session.run(loss, {**self.feed(), self.places[i]: moved}))
            result[at] = (sides[0] - sides[1]) / (2 * size)
        return result

    def feed(self) -> dict[Any, Array]:
        return {self.places[i]: self.values[i] for i in self.floating}


def weighted(tensors: list[Any]) -> Any:
    """A weighted sum with distinct weights."""
    random = np.random.default_rng(0)
    return gc.add_n([gc.reduce_sum(tensor * weight(tensor, random)) for tensor in tensors])


def weight(tensor: Any, random: np.random.Generator) -> Any:
    """Weights of the tensor's shape; the tensor itself if its shape is unknown."""
    if not tensor.shape.is_fully_defined:
        return tensor
    return gc.constant(random.uniform(0.5, 1.5, [size or 1 for size in tensor.shape]).astype(tensor.dtype.as_numpy))


@checked_for(CASES)
def a_gradient_agrees_with_central_differences(case: Case) -> None:
    made = Differentiated(case)
    assert made.loss is not None
    made.check(made.loss, made.gradients(made.loss))


def test_complex_numbers_are_differentiated_by_their_parts() -> None:
    with gc.Graph().as_default():
        x, y = gc.placeholder(gc.float64, [2]), gc.placeholder(gc.float64, [2, 1])
        feed = {x: np.array([1.0, -2.0]), y: np.array([[3.0], [4.0]])}
        z = gc.apply_op("Complex", [x, y], {"Tout": gc.complex128})
        real, imaginary = (gc.get_default_graph().apply_op(op, [z], {"Tout": gc.float64}).outputs[0] for op in ("Real", "Imag"))
        loss = gc.reduce_sum(real * real * imaginary + imaginary * imaginary * imaginary)
        assert gc.check_gradient(loss, [x, y], feed).passed
        for gradient in gc.gradients(loss, [x, y]):
            assert gc.check_gradient(gradient, [x, y], feed).passed


# Second derivatives with respect to the image only: CropAndResizeGradBoxes, the gradient with respect to the boxes, has no gradient, as
# in TensorFlow. The others have gradients that TensorFlow does not differentiate.
ONCE = {
    "CTCLoss",
    "CropAndResize",
    "CropAndResizeGradImage",
    "Dilation2D",
    "Igamma",
    "Igammac",
    "SparseAdd",
    "SparseFillEmptyRows",
    "SparseSlice",
}
TWICE = [case for case in CASES if case.op_def.name not in ONCE]
# Ops with a gradient by some inputs only, and these inputs.
PARTLY = {
    "Betainc": [2],
    "CropAndResize": [0],
    # The second output takes the labels' sum for 1, as in TensorFlow; its derivative by the labels does not.
    "CrossEntropy": [0],
    "SoftmaxCrossEntropyWithLogits": [0],
    "CropAndResizeGradImage": [0],
    "FusedBatchNormGrad": [0],  # inputs from the forward pass are consistent: varying one alone is meaningless
    "FusedBatchNormGradV2": [0],
    "FusedBatchNormGradV3": [0],
    "MaxPool3DGrad": [2],  # the given output determines the positions of maxima in the given input
    "MaxPool3DGradGrad": [2],
    "MaxPoolGrad": [2],
    "MaxPoolGradGrad": [2],
    "MaxPoolGradGradV2": [2],
    "MaxPoolGradV2": [2],
    "Polygamma": [1],  # as in TensorFlow, no gradient with respect to the order
    "Zeta": [1],
}
BY_SOME = [case for case in all_cases() if case.op_def.name in PARTLY and case.entry.gradient is not None and case.runs]
# Ops with a gradient that is not that of their computation.
ELSEWHERE = {
    "Cholesky": "is, as in TensorFlow, that of a symmetric matrix: half of it in each half",
    "FakeQuantWithMinMaxArgs": "passes the gradient straight through, as if there were no steps",
    "FakeQuantWithMinMaxVars": "passes the gradient straight through, as if there were no steps",
    **{f"RFFT{rank}": "gives complex numbers of real ones: math/test_real_fourier.py differentiates it" for rank in ("", "2D", "3D")},
    "RandomGamma": "draws other numbers for other parameters: math/test_incomplete_functions.py differentiates it",
    "PreventGradient": "is an error when it is differentiated",
    "ReadVariableOp": "takes a handle: the tests of variables differentiate it",
    "ResourceGather": "takes a handle: the tests of variables differentiate it",
}


def test_every_op_with_a_gradient_is_in_a_sweep_or_exempt() -> None:
    swept = {case.op_def.name for case in (*CASES, *BY_SOME, *COMPLEX_CASES)} | {"Complex"}
    registered = {entry.op_def.name for entry in gc.op_registry if entry.has_gradient and entry.gradient is not None}
    arrays = {name for name in registered if name.startswith("TensorArray")}  # see array_programs
    assert registered - swept - arrays == set(ELSEWHERE)


@checked_for(BY_SOME)
def a_gradient_by_some_inputs_agrees_with_central_differences_and_so_does_the_second(case: Case) -> None:
    made = Differentiated(case, PARTLY[case.op_def.name])
    assert made.loss is not None
    gradients = made.gradients(made.loss)
    made.check(made.loss, gradients)
    with made.graph.as_default():
        loss = weighted([gradient for gradient in gradients if gradient is not None])
    made.check(loss, made.gradients(loss))


@checked_for(TWICE)
def a_second_derivative_agrees_with_central_differences(case: Case) -> None:
    made = Differentiated(case)
    assert made.loss is not None
    first = [gradient for gradient in made.gradients(made.loss) if gradient is not None]
    if not first:
        return
    with made.graph.as_default():
        loss = weighted(first)
    made.check(loss, made.gradients(loss))


@checked_for(CASES)
def a_gradient_is_the_same_where_no_shape_and_no_value_is_known(case: Case) -> None:
    """Axes, shapes and indices are then read at run time, and broadcasting is reduced by run-time shapes."""
    results = []
    for make in (constants, lambda arrays: hidden(arrays, "unknown rank")):
        with gc.Graph().as_default() as graph:
            tensors = make(precise_inputs(case))
            outputs = differentiated_outputs(case, tensors)
            assert outputs
            found = gc.gradients(outputs, [tensor for tensor in tensors if tensor.dtype is precision(case).dtype])
            with gc.Session(graph=graph) as session:
                results.append([None if gradient is None else session.run(gradient) for gradient in found])
    for known, hid in zip(*results, strict=True):
        assert (known is None) == (hid is None)
        if known is not None:
            np.testing.assert_allclose(known, hid, rtol=precision(case).tolerance * 1e-4)


@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
@pytest.mark.parametrize(
    ("shape", "indices", "batch_dims"),
    [([0, 2], [], 0), ([3, 0], [0, 1], 0), ([0, 4], np.zeros((0, 2)), 1), ([2, 0], np.zeros((2, 0)), 1)],
    ids=["no rows", "no columns", "no batches", "empty batches"],
)
def test_the_gradient_of_gathering_from_nothing_is_empty(shape: list[int], indices: Any, batch_dims: int, known: bool) -> None:
    with gc.Graph().as_default():
        x = gc.placeholder(gc.float64, shape if known else None)
        y = gc.apply_op(
            "GatherV2", [x, gc.constant(np.asarray(indices, np.int32)), 0 if batch_dims == 0 else 1], {"batch_dims": batch_dims}
        )
        (gradient,) = gc.gradients(y, x)
        with gc.Session() as session:
            assert session.run(gradient, {x: np.ones(shape)}).shape == tuple(shape)


def several_outputs(case: Case) -> list[int]:
    """The indices of the floating outputs of a case, if it has several."""
    with gc.Graph().as_default():
        node = replace(case, outputs=None).build(constants(case.arrays))
        found = [number for number, output in enumerate(node.outputs) if output.dtype.is_floating and output.shape.num_elements != 0]
    return found if len(found) > 1 else []


SEVERAL = [
    (case, number)
    for case in all_cases()
    if case.entry.gradient is not None and case.runs and not case.takes_variable and case.id not in REFUSED_GRADIENTS
    for number in several_outputs(case)
]


def through_none(case: Case, number: int) -> str:
    """The registered reason for which an output of an op has no gradient."""
    names = [arg.name for arg in case.op_def.output_arg]
    return case.entry.no_gradient_through.get(names[number], "") if len(names) > 1 else ""


@checked_for([each for each in SEVERAL if not through_none(*each)])
def each_output_of_an_op_has_a_gradient_through_it_and_a_second_derivative(output: tuple[Case, int]) -> None:
    case, number = output
    by = PARTLY.get(case.op_def.name)
    made = Differentiated(case, by, only=number)
    assert made.loss is not None
    gradients = made.gradients(made.loss)
    if case.differentiable:
        made.check(made.loss, gradients)
    first = [gradient for gradient in gradients if gradient is not None]
    if not first or not case.differentiable or case.op_def.name in ONCE:
        return
    with made.graph.as_default():
        loss = weighted(first)
    made.check(loss, made.gradients(loss))


@checked_for([each for each in SEVERAL if through_none(*each)])
def a_gradient_that_comes_to_an_output_without_one_is_dropped_and_explained(output: tuple[Case, int]) -> None:
    case, number = output
    made = Differentiated(case, only=number)
    x = made.places[made.floating[0]]
    assert made.loss is not None
    gradients = [gradient for gradient in made.gradients(made.loss) if gradient is not None]
    with gc.Session(graph=made.graph) as session:
        assert not any(np.any(value) for value in session.run(gradients, made.feed()))
    with made.graph.as_default():
        assert re.search(
            r"dropped: '.*' has op .*; the gradient that arrives at its output '.*' is dropped", repr(gc.explain_gradient(made.loss, x))
        )


def test_outputs_without_gradients_are_those_listed() -> None:
    """Additions to this list need a reason."""
    assert {entry.op_def.name for entry in gc.op_registry if entry.no_gradient_through} == FIRST_OUTPUT


@pytest.mark.parametrize("simplify", [True, False], ids=["simplified", "plain"])
@pytest.mark.parametrize("called", [True, False], ids=["in a function", "in the graph"])
def test_the_cross_entropy_has_second_derivatives_and_gradients_by_its_labels(called: bool, simplify: bool) -> None:
    @gc.function
    def within(features: gc.Tensor, labels: gc.Tensor) -> Any:
        return gc.get_default_graph().apply_op("CrossEntropy", [features, labels]).outputs[0]

    with gc.Graph().as_default():
        features, labels = gc.placeholder(gc.float64, [2, 3]), gc.placeholder(gc.float64, [2, 3])
        loss = within(features, labels) if called else gc.get_default_graph().apply_op("CrossEntropy", [features, labels]).outputs[0]
        feeds = {features: np.array([[0.1, 0.5, -0.3], [1.0, -1.0, 0.2]]), labels: np.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]])}
        first = gc.gradients(loss, [features, labels], simplify=simplify)
        second = gc.gradients(weighted(first), [features, labels], simplify=simplify)
        with gc.Session() as session:
            values = session.run([*first, *second], feeds)
        other = gc.get_default_graph().apply_op("SoftmaxCrossEntropyWithLogits", [features, labels]).outputs[0]
        other_first = gc.gradients(other, [features, labels])
        other_second = gc.gradients(weighted(other_first), [features, labels])
        with gc.Session() as session:
            wanted = session.run([*other_first, *other_second], feeds)
        for got, expected in zip(values, wanted, strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-12)


@pytest.mark.parametrize("op", ["CrossEntropy", "SoftmaxCrossEntropyWithLogits"])
def test_the_mixed_second_derivatives_of_the_cross_entropy_are_those_of_its_formula(op: str) -> None:
    random = np.random.default_rng(0)
    with gc.Graph().as_default() as graph, gc.Session() as session:
        x, labels = gc.constant(random.normal(size=(2, 3))), gc.constant(random.dirichlet(np.ones(3), 2))
        built = graph.apply_op(op, [x, labels]).outputs[0]
        written = gc.reduce_sum(-labels * gc.nn.log_softmax(x), 1)
        weights, directions = gc.constant(random.normal(size=2)), gc.constant(random.normal(size=(2, 3)))
        found = []
        for loss in (built, written):
            first = gc.gradients(loss * weights, [x, labels])
            second = [gc.gradients(gradient * directions, [x, labels], unconnected_gradients="zero") for gradient in first]
            found.append(session.run([*first, *second[0], *second[1]]))
    for got, expected in zip(*found, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)


def test_the_cross_entropy_has_the_prescribed_gradient_where_only_its_loss_and_its_features_count() -> None:
    with gc.Graph().as_default() as graph:
        features, labels = gc.placeholder(gc.float32, [2, 3]), gc.placeholder(gc.float32, [2, 3])
        loss = graph.apply_op("CrossEntropy", [features, labels], name="cost").outputs[0]
        gc.gradients(loss, features)
        made = {record.body_node for record in graph.gradient_records.values() if record.forward == "cost"}
        assert {"dcost_dloss_mat", "dcost_dfeatures"} <= made
        assert "through_backprop" not in made
