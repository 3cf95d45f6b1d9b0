"""Ops on drawn inputs and attrs against TensorFlow: values and refusals.

Draws cover broadcasting, sizes of 0, negative axes, NaN and infinities, and every type.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import graphcore as gc
from tests.oracle.cases.draws import Drawer, Drawn, general
from tests.oracle.cases.draws_of_arrays import DRAWERS
from tests.oracle.cases.op_examples import OpExample
from tests.oracle.conftest import Oracle
from tests.oracle.test_dtypes import close
from tests.oracle.test_ops import OURS_ONLY
from tests.support.remote import RemoteError

SIDE = "tests.oracle.sides.op_side"
EXAMPLES = 6
# Intended differences, with reasons.
LEFT_OUT = {
    "Erf": "TensorFlow says NaN for infinite doubles",
    "NextIteration": "it runs only in a loop",
    "PreventGradient": "its gradient is what matters",
    "Round": "TensorFlow's kernel gives zeros for integers",
}


def drawers() -> dict[str, Drawer]:
    found = dict(DRAWERS)
    for entry in gc.op_registry:
        name = entry.op_def.name
        drawer = general(entry)
        if drawer is not None and not name.startswith("_") and name not in OURS_ONLY and name not in LEFT_OUT:
            found.setdefault(name, drawer)
    return dict(sorted(found.items()))


ALL = drawers()


def as_example(name: str, drawn: Drawn) -> OpExample:
    return OpExample(gc.op_registry.look_up(name), 0, drawn.inputs, drawn.attrs, differentiable=False)


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(data=st.data())
def test_what_is_drawn_gives_what_it_gives_in_tensorflow(name: str, data: Any, oracle: Oracle) -> None:
    example = as_example(name, ALL[name](data.draw, gc.op_registry.look_up(name)))
    sent = example.name, example.sent_inputs(), example.sent_attrs()
    try:
        theirs = oracle.call(f"{SIDE}:run_op", *sent)
    except RemoteError as refusal:
        if refusal.kind in {"NotFoundError", "UnimplementedError", "IndexError"} or "No OpKernel was registered" in refusal.message:
            return  # TensorFlow has no kernel for this, or fails in Python
        with pytest.raises(gc.errors.GraphError):
            example.run()
        return
    with np.errstate(all="ignore"):
        ours = example.run()
    for i, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        difference = close(mine, other)
        assert difference is None, f"{name}{sent[1:]}, output {i}: {difference}"
