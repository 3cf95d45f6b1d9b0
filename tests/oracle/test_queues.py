"""Queues in TensorFlow: results, errors, and waiting."""

from __future__ import annotations

import pytest

from tests.graphcore.opset.state.queue_play import play
from tests.oracle.conftest import Oracle
from tests.support.queue_scenarios import SCENARIOS


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_goes_as_it_goes_in_tensorflow(name: str, oracle: Oracle) -> None:
    assert play(name) == oracle.call("tests.oracle.sides.queue_side:play", name)
