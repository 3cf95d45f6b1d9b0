"""Gradients that programs define, within bodies, against TensorFlow 1."""

from __future__ import annotations

import numpy as np
import pytest

import graphcore as gc
from tests.oracle.conftest import Oracle
from tests.support.custom_gradient_programs import FUNCTIONS, PLACES, values

SIDE = "tests.oracle.sides.custom_gradient_side"


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("place", PLACES)
def test_a_custom_gradient_in_a_body_gives_what_it_gives_in_tensorflow(place: str, function: str, oracle: Oracle) -> None:
    ours = values(gc, place, function, unrolled=False, second=True)
    # TensorFlow 1 has no `function`, and loses gradients that are taken in the gradient of a loop.
    if place != "function" and not (function == "gradients within" and "loop" in place):
        theirs = oracle.call(f"{SIDE}:run_program", place, function, False)
        np.testing.assert_allclose([row[:2] for row in ours], theirs, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ours, oracle.call(f"{SIDE}:run_program", place, function, True), rtol=1e-4, atol=1e-5)
