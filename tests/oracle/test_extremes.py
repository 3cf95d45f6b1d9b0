"""Ops on the extremes of each type, against TensorFlow."""

from __future__ import annotations

import re
from collections import defaultdict

import numpy as np
import pytest

import graphcore as gc
from tests.oracle.cases.extremes import cases
from tests.oracle.cases.op_examples import OpExample
from tests.oracle.conftest import Oracle
from tests.oracle.test_dtypes import close
from tests.support.remote import RemoteError

SIDE = "tests.oracle.sides.op_side"
# Excluded cases, by the beginning of the name.
LEFT_OUT = {
    r"(Ref)?NextIteration-": "it runs only in a loop",
    r"ArgMin-(half|bfloat16|float|double)-2": "TensorFlow takes NaN for the greatest number, here it is never the least",
    r"(Div|RealDiv|Xdivy|Pow|Expm1|Log1p)-complex": "of infinite complex numbers one part is NaN or not, by the formula",
    r"Erf-double": "TensorFlow says NaN for infinite doubles",
    r"EuclideanNorm-half": "TensorFlow adds up in 16 bits",
    r"FloorDiv-(bfloat16|float|double)": "TensorFlow corrects the quotients of infinite numbers",
    r"(Lower|Upper)Bound-(half|bfloat16|float|double)": "rows with NaN are not sorted",
    r"Polygamma-": "orders that are no whole numbers",
    r"Round-u?int": "TensorFlow's kernel gives zeros for integers",
    r"TopKV2-(half|bfloat16|float|double)-0": "NaN counts as the greatest number here, and is in no order in TensorFlow",
    r"Unique(WithCounts)?-(half|bfloat16)": "TensorFlow takes the two zeros of 16 bits for different numbers",
    r"UnsortedSegment(Max|Min)-(half|bfloat16|float|double)": "NaN is passed on here, and left out or not in TensorFlow",
    r"Where-half": "TensorFlow has no kernel of it",
}


def by_op() -> dict[str, list[tuple[str, OpExample]]]:
    found: dict[str, list[tuple[str, OpExample]]] = defaultdict(list)
    for name, example in cases():
        if not any(re.match(pattern, name) for pattern in LEFT_OUT):
            found[name.rsplit("-", 1)[0]].append((name, example))
    return found


CASES = by_op()


@pytest.mark.parametrize("group", CASES)
def test_extremes_give_what_they_give_in_tensorflow(group: str, oracle: Oracle) -> None:
    for name, example in CASES[group]:
        sent = example.name, example.sent_inputs(), example.sent_attrs()
        try:
            theirs = oracle.call(f"{SIDE}:run_op", *sent)
        except RemoteError as refusal:
            if refusal.kind in {"NotFoundError", "UnimplementedError"} or "No OpKernel" in refusal.message:
                return  # TensorFlow has no kernel for this type
            with pytest.raises(gc.errors.GraphError):
                example.run()
            continue
        with np.errstate(all="ignore"):
            ours = example.run()
        for i, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            difference = close(mine, other)
            assert difference is None, f"{name}, output {i}: {difference}"
