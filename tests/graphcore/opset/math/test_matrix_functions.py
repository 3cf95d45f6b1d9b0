"""Roots, logarithms, exponentials and factors of matrices that are hard for simpler methods."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import InvalidArgumentError

tf: Any = gc
RANDOM: Final = np.random.default_rng(0)
TURN: Final = np.linalg.qr(RANDOM.normal(size=(6, 6)))[0]
FEW: Final = RANDOM.normal(size=(8, 3))
DEFECTIVE: Final = 2 * np.eye(6) + np.eye(6, k=1)
REGULAR: Final = {
    "symmetric": np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -0.5], [0.5, -0.5, 2.0]]),
    "no symmetry": RANDOM.normal(size=(7, 7)) + 6 * np.eye(7),
    "several matrices": RANDOM.normal(size=(2, 3, 4, 4)) + 5 * np.eye(4),
    "a single eigenvector": DEFECTIVE,
    "a single eigenvector, turned": TURN @ DEFECTIVE @ TURN.T,
    "eigenvectors that are nearly dependent": np.triu(np.tril(np.ones((30, 30))), -1)
    + np.triu(np.tril(np.ones((30, 30)), 3), 1)
    - 2 * np.eye(30, k=-1),
    "equal eigenvalues": 3 * np.eye(3),
    "a rotation by nearly half a turn": np.array([[-1.0, -1e-4], [1e-4, -1.0]]),
    "complex": RANDOM.normal(size=(5, 5)) + 1j * RANDOM.normal(size=(5, 5)),
    "Hermitian": np.array([[2.0, 1j], [-1j, 3.0]]),
    "complex, with negative eigenvalues": np.diag([-1.0, -4.0, 9.0]).astype(np.complex128),
}
SINGULAR: Final = {
    "zeros": np.zeros((3, 3)),
    "one eigenvalue is 0": np.array([[0.0, 1.0], [0.0, 4.0]]),
    "few columns times their transposes": FEW @ FEW.T,
}


def run(value: Any) -> Any:
    with gc.Session() as session:
        return session.run(value)


@pytest.fixture(autouse=True)
def _new_graph() -> Any:
    with gc.Graph().as_default():
        yield


def distance(found: Any, wanted: Any) -> float:
    return float(np.linalg.norm(found - wanted) / max(float(np.linalg.norm(wanted)), 1e-300))


@pytest.mark.parametrize("name", [*REGULAR, *SINGULAR])
def test_the_square_of_a_root_is_the_matrix(name: str) -> None:
    matrix: Any = {**REGULAR, **SINGULAR}[name]
    root = run(tf.linalg.sqrtm(matrix))
    assert root.dtype == matrix.dtype
    assert distance(root @ root, matrix) < 1e-13


@pytest.mark.parametrize("name", REGULAR)
def test_the_exponential_of_a_logarithm_is_the_matrix(name: str) -> None:
    matrix = REGULAR[name].astype(np.complex128)
    log = run(tf.linalg.logm(matrix))
    assert distance(run(tf.linalg.expm(log)), matrix) < 1e-12
    assert np.abs(np.linalg.eigvals(log).imag).max() < np.pi + 1e-9


def test_a_large_number_off_the_diagonal_costs_no_precision() -> None:
    matrix = np.array([[1.0, 1e9], [0.0, 1.0]], np.complex128)
    root, log = run([tf.linalg.sqrtm(matrix), tf.linalg.logm(matrix)])
    np.testing.assert_allclose(root, [[1.0, 5e8], [0.0, 1.0]], rtol=1e-14)
    np.testing.assert_allclose(log, [[0.0, 1e9], [0.0, 0.0]], rtol=1e-14)


def test_the_root_is_the_one_with_eigenvalues_on_the_right() -> None:
    values = np.linalg.eigvals(run(tf.linalg.sqrtm(REGULAR["complex"])))
    assert values.real.min() > 0


def test_single_and_half_precision_lose_no_more_than_their_rounding() -> None:
    matrix = REGULAR["no symmetry"]
    exact = run(tf.linalg.sqrtm(matrix))
    for dtype, rounding in ((np.float32, 1e-6), (np.float16, 2e-3)):
        found = run(tf.linalg.sqrtm(matrix.astype(dtype)))
        assert found.dtype == dtype
        assert distance(found.astype(np.float64), exact) < rounding


@pytest.mark.parametrize("matrix", [np.diag([-1.0, 4.0]), [[0.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 0.0]], [[np.nan, 1.0], [1.0, 1.0]]])
def test_a_matrix_without_a_real_root_gives_nan_and_leaves_others_as_they_are(matrix: Any) -> None:
    found = run(tf.linalg.sqrtm(np.stack([np.asarray(matrix), 4 * np.eye(2)])))
    assert np.isnan(found[0]).all()
    np.testing.assert_allclose(found[1], 2 * np.eye(2))


def test_a_singular_matrix_has_no_logarithm() -> None:
    found = run(tf.linalg.logm(np.stack([np.diag([0.0, 1.0]), np.eye(2)]).astype(np.complex64)))
    assert np.isnan(found[0].real).all()
    assert not found[1].any()


def test_matrices_without_elements_stay_so() -> None:
    for shape in ((2, 0, 0), (0, 3, 3)):
        assert run(tf.linalg.sqrtm(np.zeros(shape))).shape == shape
        assert run(tf.linalg.expm(np.zeros(shape))).shape == shape
        assert run(tf.linalg.lu(np.zeros(shape))).lu.shape == shape


def test_factors_give_the_matrix_with_exchanged_rows() -> None:
    matrix = RANDOM.normal(size=(2, 3, 5, 5))
    factors = tf.linalg.lu(matrix, output_idx_type=gc.int64)
    assert factors.p.dtype is gc.int64
    both, rows = run([factors.lu, factors.p])
    product = (np.tril(both, -1) + np.eye(5)) @ np.triu(both)
    np.testing.assert_allclose(product, np.take_along_axis(matrix, rows[..., None], -2), atol=1e-12)


@pytest.mark.parametrize("matrix", [np.zeros((2, 2)), [[1.0, 2.0], [2.0, 4.0]], [[np.nan, 1.0], [1.0, 1.0]]])
def test_factors_of_a_singular_matrix_are_refused(matrix: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="Input is not invertible"):
        run(tf.linalg.lu(np.asarray(matrix)))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("size", [1e-3, 0.3, 1.0, 2.0, 6.0])
def test_the_exponential_of_a_triangle_is_known(dtype: Any, size: float) -> None:
    found = run(tf.linalg.expm(np.array([[size, 1.0], [0.0, -size]], dtype)))
    wanted = np.array([[np.exp(size), np.sinh(size) / size], [0.0, np.exp(-size)]])
    np.testing.assert_allclose(found, wanted.astype(dtype), rtol=20 * np.finfo(dtype).eps, atol=np.exp(size) * 4 * np.finfo(dtype).eps)


def test_matrices_of_any_size_have_exponentials_of_their_own() -> None:
    x = gc.placeholder(gc.float32)
    values = np.stack([np.zeros((2, 2)), [[0.0, 30.0], [0.0, 0.0]], np.diag([50.0, -50.0]), np.full((2, 2), np.inf)])
    with gc.Session() as session:
        found = session.run(tf.linalg.expm(x), {x: values})
    wanted = np.stack([np.eye(2), np.array([[1.0, 30.0], [0.0, 1.0]]), np.diag(np.exp([50.0, -50.0]))])
    np.testing.assert_allclose(found[:3], wanted, rtol=1e-4, atol=1e-12)
    assert np.isnan(found[3]).all()


@pytest.mark.parametrize("size", [0.01, 0.2, 0.8, 1.5, 4.0, 20.0])
def test_exponentials_have_gradients(size: float) -> None:
    x = gc.placeholder(gc.float64, [2, 3, 3])
    values = RANDOM.normal(size=(2, 3, 3))
    values *= size / np.abs(values).sum(1).max()
    loss = gc.reduce_sum(tf.linalg.expm(x) * RANDOM.normal(size=(3, 3)))
    found = gc.check_gradient(loss, [x], {x: values})
    assert found.passed, found


def test_integers_have_no_exponential() -> None:
    with pytest.raises(InvalidArgumentError, match="required floating or complex matrices, got int32"):
        tf.linalg.expm([[1, 2], [3, 4]])
