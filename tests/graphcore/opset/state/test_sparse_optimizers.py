"""Optimizers that change the rows with a gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc


def step(indices: list[int], gradient: list[list[float]]) -> Any:
    """One step of Adagrad on the rows of a variable of ones: the variable and its slot."""
    with gc.Graph().as_default(), gc.Session() as session:
        var, accum = (gc.Variable(np.full((3, 2), value, np.float32)) for value in (1, 4))
        apply = gc.apply_op("SparseApplyAdagrad", [var, accum, np.float32(0.5), np.array(gradient, np.float32), np.array(indices)])
        session.run(gc.initialize_all_variables())
        session.run(apply)
        return session.run([var, accum])


def test_rows_without_a_gradient_keep_their_values() -> None:
    var, accum = step([2], [[0.0, 3.0]])
    np.testing.assert_allclose(var, [[1, 1], [1, 1], [1, 1 - 0.5 * 3 / np.sqrt(13)]], rtol=1e-6)
    np.testing.assert_allclose(accum, [[4, 4], [4, 4], [4, 13]])


def test_a_repeated_row_is_updated_once_for_each_gradient_in_order() -> None:
    var, accum = step([1, 0, 1], [[3.0, 0.0], [0.0, 0.0], [6.0, 0.0]])
    np.testing.assert_allclose(var[1], [1 - 0.5 * 3 / np.sqrt(13) - 0.5 * 6 / np.sqrt(49), 1], rtol=1e-6)
    np.testing.assert_allclose(accum[1], [49, 4])


def test_a_row_that_does_not_exist_is_an_error_and_changes_nothing() -> None:
    with pytest.raises(gc.errors.InvalidArgumentError, match=r"indices\[1\] = 3 is not in \[0, 3\)"):
        step([0, 3], [[1.0, 1.0], [1.0, 1.0]])


def test_a_gradient_of_other_rows_than_the_indices_is_refused_when_the_graph_is_built() -> None:
    with pytest.raises(gc.errors.InvalidArgumentError, match="Dimensions must be equal"):
        step([0], [[1.0, 1.0], [1.0, 1.0]])
