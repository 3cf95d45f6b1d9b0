"""Kernels for the notebooks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.forked_kernels import ForkedKernels
from tests.support.tools.course import ROOT


@pytest.fixture(scope="session")
def forked_kernels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data folder of Jupyter whose kernels are forks."""
    folder = tmp_path_factory.mktemp("kernels")
    kernels = ForkedKernels(folder, {**os.environ, "PYTHONPATH": str(ROOT), "IPYTHONDIR": str(folder / "ipython")})
    kernels.start()
    yield folder
    kernels.stop()


@pytest.fixture(autouse=True)
def _kernels(forked_kernels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTER_PATH", str(forked_kernels))
