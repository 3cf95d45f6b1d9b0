"""`tf.test` of TensorFlow 1: test cases that compare arrays, and what the machine has."""

from __future__ import annotations

import tempfile
import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from graphcore.errors import GraphError
from graphcore.graph import Graph
from graphcore.runtime import Session, get_default_session

__all__ = ["TestCase", "get_temp_dir", "gpu_device_name", "is_built_with_cuda", "is_gpu_available", "main"]


def get_temp_dir() -> str:
    """A new folder for temporary files."""
    return tempfile.mkdtemp()


def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: Any = None) -> bool:  # noqa: ARG001 - TensorFlow's
    """True iff a session would run on a GPU."""
    return bool(gpu_device_name())


def gpu_device_name() -> str:
    """The name of the first GPU of a session, "" without."""
    with Session(Graph()) as session:
        names = [device.name for device in session.list_devices()]
    return next((name[name.index("/device") :] for name in names if "/device:GPU" in name), "")


def is_built_with_cuda() -> bool:
    """True iff a session would run on a GPU."""
    return is_gpu_available()


class TestCase(unittest.TestCase):
    """A test case with comparisons of arrays; each test begins with an empty default graph."""

    __test__ = False

    def setUp(self) -> None:
        """Make an empty default graph and seed NumPy."""
        super().setUp()
        self.enterContext(Graph().as_default())
        np.random.seed(87654321)  # noqa: NPY002 - the generator that programs of TensorFlow's time draw from

    @contextmanager
    def session(self, graph: Graph | None = None, config: Any = None, use_gpu: bool = False, force_gpu: bool = False) -> Iterator[Session]:  # noqa: ARG002 - TensorFlow's
        """A session that is the default session within the block."""
        with Session(graph, config=config) as session:
            yield session

    test_session = cached_session = session

    def evaluate(self, tensors: Any) -> Any:
        """The values of tensors in the default session, or in a new one."""
        session = get_default_session()
        if session is not None:
            return session.run(tensors)
        with Session() as own_session:
            return own_session.run(tensors)

    def get_temp_dir(self) -> str:
        """A folder for the files of this test."""
        if not hasattr(self, "_folder"):
            self._folder = get_temp_dir()
        return str(Path(self._folder))

    def _array(self, value: Any) -> Any:
        return self.evaluate(value) if hasattr(value, "graph") else np.asarray(value)

    def assertAllClose(self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str = "") -> None:  # noqa: N802 - unittest's style
        """Require equal shapes and values within a tolerance; lists and dicts are compared item by item."""
        if isinstance(a, dict):
            if sorted(a) != sorted(b):
                self.fail(f"{msg}: the keys {sorted(a)} and {sorted(b)} differ")
            for key in a:
                self.assertAllClose(a[key], b[key], rtol, atol, f"{msg} at {key!r}")
            return
        np.testing.assert_allclose(self._array(a), self._array(b), rtol, atol, err_msg=msg)

    assertAllCloseAccordingToType = assertAllClose  # noqa: N815 - unittest's style

    def assertAllEqual(self, a: Any, b: Any, msg: str = "") -> None:  # noqa: N802 - unittest's style
        """Require equal shapes and values."""
        np.testing.assert_array_equal(self._array(a), self._array(b), err_msg=msg)

    def assertShapeEqual(self, np_array: Any, tf_tensor: Any, msg: str | None = None) -> None:  # noqa: N802 - unittest's style
        """Require that a tensor has the shape of an array."""
        if list(np_array.shape) != tf_tensor.get_shape().as_list():
            self.fail(msg or f"{list(np_array.shape)} and {tf_tensor.get_shape()} differ")

    def assertNear(self, f1: float, f2: float, err: float, msg: str | None = None) -> None:  # noqa: N802 - unittest's style
        """Require that two numbers differ by `err` at most."""
        if not abs(f1 - f2) <= err:
            self.fail(msg or f"{f1} and {f2} differ by more than {err}")

    def assertRaisesOpError(self, expected_err_re_or_predicate: str) -> Any:  # noqa: N802 - unittest's style
        """Require an error of the package whose text matches a regular expression."""
        return super().assertRaisesRegex(GraphError, expected_err_re_or_predicate)  # noqa: PT027 - it is a test case of unittest


def main(argv: Any = None) -> None:
    """Run the test cases of the program."""
    unittest.main(argv=argv)
