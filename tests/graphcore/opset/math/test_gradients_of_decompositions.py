"""Gradients of eigenvectors, singular vectors and orthogonal columns, against central differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import UnimplementedError

SHAPES = [[3, 3], [4, 2], [2, 4], [2, 3, 2]]


def weighted(*tensors: gc.Tensor) -> gc.Tensor:
    """The sum of all elements, each with a weight of its own."""
    random = np.random.default_rng(1)
    return gc.add_n(
        [gc.reduce_sum(gc.real(tensor) * random.normal(size=[size or 0 for size in tensor.shape.as_list()])) for tensor in tensors]
    )


def checked(loss_of: Callable[[gc.Tensor], gc.Tensor], shape: list[int], dtype: Any = gc.float64) -> gc.GradientCheck:
    """Compare the gradient of a loss at random matrices, real or complex."""
    random = np.random.default_rng(0)
    value = random.normal(size=shape) + (1j * random.normal(size=shape) if dtype is gc.complex128 else 0)
    with gc.Graph().as_default():
        x = gc.placeholder(dtype, shape)
        return gc.check_gradient(loss_of(x), [x], {x: value})


@pytest.mark.parametrize("shape", SHAPES)
def test_singular_values_and_vectors_have_gradients(shape: list[int]) -> None:
    found = checked(lambda x: weighted(*gc.ops.svd(x)), shape)
    assert found.passed, found


@pytest.mark.parametrize("shape", SHAPES)
def test_orthogonal_columns_have_gradients(shape: list[int]) -> None:
    found = checked(lambda x: weighted(*gc.ops.qr(x)), shape)
    assert found.passed, found


@pytest.mark.parametrize("shape", [[3, 3], [2, 3, 3]])
def test_eigenvalues_and_eigenvectors_have_gradients(shape: list[int]) -> None:
    found = checked(lambda x: weighted(*gc.ops.self_adjoint_eig_v2(x)), shape)
    assert found.passed, found


@pytest.mark.parametrize("shape", SHAPES)
def test_complex_vectors_have_gradients_where_their_phases_do_not_count(shape: list[int]) -> None:
    def loss_of(x: gc.Tensor) -> gc.Tensor:
        s, u, v = gc.ops.svd(x)
        return weighted(gc.matmul(u * gc.expand_dims(gc.ops.sin(s), -2), v, adjoint_b=True))

    found = checked(loss_of, shape, gc.complex128)
    assert found.passed, found


def test_equal_values_leave_the_gradient_finite() -> None:
    with gc.Graph().as_default():
        x = gc.constant(np.eye(3))
        gradients = [gc.gradients(weighted(*made), x)[0] for made in (gc.ops.svd(x), gc.ops.self_adjoint_eig_v2(x))]
        assert np.isfinite(gc.Session().run(gradients)).all()


@pytest.mark.parametrize("function", [gc.ops.svd, gc.ops.qr], ids=["Svd", "Qr"])
def test_vectors_of_whole_bases_are_refused_in_gradients(function: Callable[..., Any], request: pytest.FixtureRequest) -> None:
    with gc.Graph().as_default():
        x = gc.placeholder(gc.float64, [3, 2])
        made = function(x, full_matrices=True)
        with pytest.raises(
            UnimplementedError, match=rf"gradient of op '{request.node.callspec.id}' requires full_matrices=False, got True"
        ):
            gc.gradients(made[0], x)
