"""Code that runs inside the oracle's interpreter: the only test file that imports TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

Array = npt.NDArray[Any]

tf.get_logger().setLevel("ERROR")


def run_snippet(source: str, inputs: Mapping[str, Array], arguments: Mapping[str, Any]) -> tuple[dict[str, Array], Any]:
    """Run Python code with `tf`, `np`, `inputs` and `arguments`. Returns its `outputs` and `answer`."""
    names: dict[str, Any] = {"tf": tf, "np": np, "inputs": inputs, "arguments": arguments, "outputs": {}, "answer": None}
    exec(compile(source, "<snippet>", "exec"), names)
    return {name: np.asarray(value) for name, value in names["outputs"].items()}, names["answer"]
