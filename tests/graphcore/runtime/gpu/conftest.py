"""CuPy's stand-in for the tests of sessions on GPUs."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

import graphcore as gc
from graphcore.runtime.gpu import products
from tests.support.strict_cupy import StrictCupy


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Iterator[StrictCupy]:
    """CuPy with two devices, on strict arrays."""
    made = StrictCupy(devices=2)
    monkeypatch.setitem(sys.modules, "cupy", made)
    monkeypatch.setattr(products, "load_cublas", lambda: made.cublas)
    with made.watching(), gc.Graph().as_default():
        yield made
