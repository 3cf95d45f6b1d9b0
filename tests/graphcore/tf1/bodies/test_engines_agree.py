"""Random programs with effects and gradients in bodies: engines and devices agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc
from tests.support.body_programs import Program

WAYS: list[dict[str, Any]] = [{"engine": "auto"}, {"engine": "dataflow"}, {"devices": gc.simulated_devices("2 cpu")}]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1006))
def test_a_random_program_gives_the_same_in_all_engines_and_on_several_devices(seed: int) -> None:
    found = []
    for way in WAYS:
        with gc.Graph().as_default():
            found.append(Program(gc, seed).run(way))
    for other in found[1:]:
        for mine, theirs in zip(found[0], other, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)
