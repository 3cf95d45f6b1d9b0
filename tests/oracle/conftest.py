"""The oracle: TensorFlow in its own interpreter, started once and called by the tests."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt
import pytest

from tests.support.remote import ROOT, Remote

Array = npt.NDArray[Any]
VARIABLE = "GRAPHLOUPE_ORACLE"
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0", "CUDA_VISIBLE_DEVICES": ""}
COLOCATED_LOOPS = {"TF_FLAG_ENABLE_COLOCATION_KEY_PROPAGATION_IN_WHILE_OP_LOWERING": "true"}
"""The flag by which 2.21 colocates lowered loops, as the conformance notes require."""


@dataclass(frozen=True)
class Answer:
    """The result of a snippet: arrays by name, and one plain value."""

    outputs: dict[str, Array]
    answer: Any


@dataclass(frozen=True)
class Oracle:
    """Runs code and functions in TensorFlow's interpreter. Errors arrive as `RemoteError` with the class and text of the original."""

    remote: Remote

    def run(self, source: str, inputs: Mapping[str, Array] | None = None, **arguments: Any) -> Answer:
        """Run a snippet with `tf`, `np`, `inputs` and `arguments`; it fills `outputs` or sets `answer`."""
        return Answer(*self.remote.call("tests.oracle.sides.tensorflow_side:run_snippet", source, dict(inputs or {}), arguments))

    def run_script(self, path: Path, inputs: Mapping[str, Array] | None = None, **arguments: Any) -> Answer:
        """Run a file as a snippet."""
        return self.run(path.read_text(encoding="utf-8"), inputs, **arguments)

    def call(self, function: str, *arguments: Any) -> Any:
        """Call `package.module:function` there; the module must import only TensorFlow and NumPy."""
        return self.remote.call(function, *arguments)


def oracle_python() -> Path:
    """The interpreter with TensorFlow: GRAPHLOUPE_ORACLE, otherwise .venv-oracle of this checkout."""
    return Path(os.environ.get(VARIABLE) or ROOT / ".venv-oracle" / "bin" / "python")


@pytest.fixture(scope="session")
def oracle() -> Iterator[Oracle]:
    """TensorFlow, ready for calls."""
    python = oracle_python()
    if not python.exists():
        pytest.fail(f"no interpreter with TensorFlow at {python}: `make oracle` makes one, or set {VARIABLE}")
    with Remote(python, QUIET | COLOCATED_LOOPS) as remote:
        yield Oracle(remote)
