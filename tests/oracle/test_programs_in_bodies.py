"""Random programs with side effects and gradients within nested bodies, against TensorFlow 1."""

from __future__ import annotations

import os

import numpy as np
import pytest

import graphcore as gc
from tests.oracle.conftest import Oracle
from tests.support.body_programs import Program
from tests.support.remote import RemoteError

SIDE = "tests.oracle.sides.body_side"
PROGRAMS = int(os.environ.get("GRAPHLOUPE_BODY_PROGRAMS", "200"))
"""The number of programs; thousands may be run by hand."""


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_a_random_program_with_effects_and_gradients_in_bodies_gives_what_it_gives_in_tensorflow(seed: int, oracle: Oracle) -> None:
    try:
        theirs, notes = oracle.call(f"{SIDE}:run_program", seed)
    except RemoteError as refusal:  # such as a gradient through the start of a loop variable
        pytest.skip(f"TensorFlow refuses it: {refusal.message[:200]}")
    engine = ("auto", "dataflow")[seed % 2]
    with gc.Graph().as_default():
        program = Program(gc, seed)
        ours = program.run({"engine": engine})
    assert program.notes == notes
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-3, atol=1e-4)
