"""Gradients of random programs of constants, first and second, against TensorFlow; also under feeds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphcore as gc
from graphcore.errors import InvalidArgumentError
from tests.graphcore.passes.gradients.constant_programs import Program
from tests.graphcore.passes.gradients.test_gradients_of_constants import differentiated, programs, values
from tests.oracle.conftest import Oracle

SIDE = "tests.oracle.sides.constants_side"


def test_programs_of_constants_have_the_gradients_that_they_have_in_tensorflow(oracle: Oracle) -> None:
    @given(programs(), st.integers(0, 1000))
    def agree(program: Program, seed: int) -> None:
        arrays, others = values(program, seed), values(program, seed + 5000)
        for fed in (arrays, others):
            theirs = oracle.call(f"{SIDE}:differentiated", program, arrays, fed)
            mine = differentiated(program, gc.constant, arrays, fed)
            for value, other in zip(mine, theirs, strict=True):
                np.testing.assert_allclose(np.zeros_like(other) if value is None else value, other, rtol=1e-8, atol=1e-10)

    agree()


def test_a_fed_reshape_shape_is_refused_where_tensorflow_is_silently_wrong(oracle: Oracle) -> None:
    """TensorFlow divides by the 3 inferred elements, not by the actual 12."""
    x, own, fed = np.arange(12.0), np.array([1, 3], np.int32), np.array([4, 3], np.int32)
    np.testing.assert_allclose(oracle.call(f"{SIDE}:gradient_with_fed_shape", x, own, fed), 2 * x / 3)
    with gc.Graph().as_default(), gc.Session() as session:
        given, shape = gc.placeholder(gc.float64, [None]), gc.constant(own)
        (gradient,) = gc.gradients(gc.reduce_mean(gc.square(gc.reshape(given, shape))), given)
        with pytest.raises(InvalidArgumentError, match="may not be fed"):
            session.run(gradient, {given: x, shape: fed})
