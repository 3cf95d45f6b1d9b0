"""A cluster for the tests of a module: tasks in threads of this process, which begin fast."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import graphcore as gc


@pytest.fixture(scope="module")
def cluster() -> Iterator[gc.DaskCluster]:
    with gc.LocalCluster(workers=2, ps=1, processes=False) as made:
        yield made
