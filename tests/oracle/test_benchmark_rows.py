"""The benchmark in TensorFlow's interpreter."""

from __future__ import annotations

import pytest

from tests.benchmarks.measure import all_rows
from tests.oracle.conftest import Oracle

pytestmark = pytest.mark.oracle


def test_all_rows_can_be_read_where_tensorflow_is_measured(oracle: Oracle) -> None:
    found = oracle.run("from tests.benchmarks.measure import all_rows\nanswer = list(all_rows())").answer
    assert found == list(all_rows())
