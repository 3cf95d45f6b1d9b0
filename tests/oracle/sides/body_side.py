"""Random programs with effects and gradients within bodies, in TensorFlow's interpreter."""

from __future__ import annotations

import tensorflow as tf

from tests.support.body_programs import Program

_LIMIT = 20_000


def run_program(seed: int) -> tuple[list[list[float]], list[str]]:
    """The values of a program in TensorFlow 1, and the notes of its gradients."""
    config = tf.compat.v1.ConfigProto(operation_timeout_in_ms=_LIMIT, inter_op_parallelism_threads=1)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    was_enabled = tf.compat.v1.control_flow_v2_enabled()
    tf.compat.v1.disable_control_flow_v2()
    try:
        with tf.Graph().as_default():
            program = Program(tf.compat.v1, seed)
            return program.run({"config": config}), program.notes
    finally:
        if was_enabled:
            tf.compat.v1.enable_control_flow_v2()
