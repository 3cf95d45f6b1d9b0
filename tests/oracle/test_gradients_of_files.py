"""Gradients through graphs made by TensorFlow, against TensorFlow's own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import graphcore as gc
from tests.oracle.conftest import Oracle
from tests.oracle.test_graph_files import SIDE, TRAINED, VARIABLE, data_folder, stored

Array = npt.NDArray[Any]
FOLDER = data_folder()
pytestmark = pytest.mark.skipif(not any(FOLDER.glob("*.pb")), reason=f"no graphs in {FOLDER}: set {VARIABLE} to the folder that has them")


def ours(path: Path, feeds: dict[str, Array], y: str, x: str, weights: Sequence[Array], *, simplify: bool = True) -> Array:
    """A derivative of `y` by `x`, of the order of the number of weight arrays."""
    graph = gc.load(path)
    with graph.as_default(), gc.Session(graph=graph) as session:
        target = graph.get_tensor_by_name(y)
        for each in weights:
            (target,) = gc.gradients(target, x, grad_ys=gc.constant(each), simplify=simplify)
        value: Array = session.run(target, feeds)
    return value


def weights_for(shape: Sequence[int]) -> Array:
    """Distinct weights, so that nothing cancels out in a softmax."""
    return np.random.default_rng(0).uniform(0.5, 1.5, tuple(shape)).astype(np.float32)


# The transformer's inputs are word indices, so it is differentiated by their embeddings.
CASES = [
    ("mobilenetv2", "x:0"),
    ("transformer", "functional_1/embedding_1/GatherV2:0"),
    ("functions_v2", "x:0"),
]


def assert_close(got: Array, expected: Array) -> None:
    assert np.any(expected)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5 * float(np.abs(expected).max()))


@pytest.mark.parametrize("simplify", [True, False], ids=["simplified", "plain"])
@pytest.mark.parametrize(("name", "x"), CASES, ids=[name for name, _ in CASES])
def test_gradients_by_the_inputs_agree_with_tensorflow(name: str, x: str, simplify: bool, oracle: Oracle) -> None:
    path = FOLDER / f"{name}.pb"
    feeds, fetched = stored(path)
    (y,) = fetched
    weights = [weights_for(fetched[y].shape)]
    theirs = oracle.call(f"{SIDE}:differentiate_graph", path.read_bytes(), "pb", feeds, y, x, weights)
    assert_close(ours(path, feeds, y, x, weights, simplify=simplify), theirs)


@pytest.mark.parametrize(("name", "x"), CASES[:2], ids=[name for name, _ in CASES[:2]])
def test_second_derivatives_agree_with_tensorflow(name: str, x: str, oracle: Oracle) -> None:
    path = FOLDER / f"{name}.pb"
    feeds, fetched = stored(path)
    (y,) = fetched
    first = weights_for(fetched[y].shape)
    weights = [first, weights_for(ours(path, feeds, y, x, [first]).shape)]
    theirs = oracle.call(f"{SIDE}:differentiate_graph", path.read_bytes(), "pb", feeds, y, x, weights)
    assert_close(ours(path, feeds, y, x, weights), theirs)


@pytest.mark.parametrize("scale", [1.0, -1.0, 0.0, 30.0])
def test_the_gradient_of_a_loop_is_the_one_that_tensorflow_built_into_the_file(scale: float, oracle: Oracle) -> None:
    path = FOLDER / "while_v1.pb"
    feeds, fetched = stored(path)
    moved = {name: value * np.float32(scale) for name, value in feeds.items()}
    (expected,) = oracle.call(f"{SIDE}:run_graph", path.read_bytes(), "pb", moved, ["dx:0"])
    if scale == 1.0:
        np.testing.assert_array_equal(expected, fetched["dx:0"])
    got = ours(path, moved, "y:0", "x:0", [np.ones_like(fetched["y:0"])])
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_a_perceptron_trained_by_our_gradients_has_the_stored_losses() -> None:
    path = FOLDER / f"{TRAINED}.pb"
    feeds, fetched = stored(path)
    graph = gc.load(path)
    with graph.as_default(), gc.Session(graph=graph) as session:
        variables = ["W0:0", "b0:0", "W1:0", "b1:0"]
        gradients = gc.gradients("loss:0", variables)
        rate = graph.get_tensor_by_name("train/learning_rate:0")
        steps = [
            gc.apply_op("ApplyGradientDescent", [graph.get_tensor_by_name(name), rate, gradient])
            for name, gradient in zip(variables, gradients, strict=True)
        ]
        train = gc.group(*steps)
        session.run("init")
        losses = [session.run(["loss:0", train], feeds)[0] for _ in fetched["losses"]]
    np.testing.assert_allclose(losses, fetched["losses"], rtol=1e-5)


def test_a_perceptron_trained_by_the_gradients_in_the_file_has_the_stored_losses() -> None:
    path = FOLDER / f"{TRAINED}.pb"
    feeds, fetched = stored(path)
    with gc.Session(graph=gc.load(path)) as session:
        session.run("init")
        losses = [session.run(["loss:0", "train"], feeds)[0] for _ in fetched["losses"]]
    np.testing.assert_allclose(losses, fetched["losses"], rtol=1e-5)
