"""Queue scenarios in TensorFlow's interpreter. Imports nothing of this project."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_def_library, op_def_registry

from tests.oracle.sides.op_side import _defaults
from tests.support.queue_scenarios import SCENARIOS

_LONG_ENOUGH = 0.3
_LIMIT = 20_000
_AROUND = re.compile(r"\s*(Graph execution error|Detected at|Node:|node |File |Original stack|\[\[|Hint:|\s|\(most recent)")


class Side:
    """Plays scenarios in a session of TF1."""

    def __init__(self, session: Any) -> None:
        self.session = session

    def node(self, op: str, inputs: Sequence[Any], attrs: dict[str, Any], name: str) -> Any:
        """See `queue_scenarios.Side`."""
        op_def = op_def_registry.get(op)
        given = {arg.name: self._input(value) for arg, value in zip(op_def.input_arg, inputs, strict=True)}
        given.update(_defaults(op_def))
        chosen = {key: [tf.as_dtype(part) for part in value] if key == "component_types" else value for key, value in attrs.items()}
        if "shapes" in chosen:
            chosen["shapes"] = [tf.TensorShape(shape) for shape in chosen["shapes"]]
        made = op_def_library.apply_op(op, name=name, **{**given, **chosen})
        return made[0] if isinstance(made, list | tuple) else made

    def outputs(self, node: Any) -> Any:
        """See `queue_scenarios.Side`."""
        return list(node.op.outputs)

    def run(self, what: Any) -> Any:
        """See `queue_scenarios.Side`."""
        return self.session.run(what)

    def text(self, error: Exception) -> str:
        """The first line that does not concern the location of the node."""
        lines = str(getattr(error, "message", None) or error).split("\n")
        return next(line for line in lines if line.strip() and not _AROUND.match(line))

    def wait_until_blocked(self, queue: Any, enqueues: int, dequeues: int) -> None:
        """See `queue_scenarios.Side`."""
        time.sleep(_LONG_ENOUGH)

    def _input(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._input(part) for part in value]
        return tf.constant(value) if isinstance(value, np.ndarray | np.generic) else value


def play(name: str) -> Any:
    """The outcome of a scenario in TensorFlow."""
    config = tf.compat.v1.ConfigProto(operation_timeout_in_ms=_LIMIT)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    with tf.Graph().as_default(), tf.compat.v1.Session(config=config) as session:
        return SCENARIOS[name](Side(session))
