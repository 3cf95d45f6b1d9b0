"""Programs with gradients of their own, in TensorFlow's interpreter."""

from __future__ import annotations

import tensorflow as tf

from tests.support.custom_gradient_programs import values


def run_program(place: str, function: str, unrolled: bool) -> list[list[float]]:
    """The values and first derivatives of a program in TensorFlow 1.

    Where it is unrolled, the second ones, too.
    """
    was_enabled = tf.compat.v1.control_flow_v2_enabled()
    tf.compat.v1.disable_control_flow_v2()
    try:
        return values(tf.compat.v1, place, function, unrolled=unrolled, second=unrolled)
    finally:
        if was_enabled:
            tf.compat.v1.enable_control_flow_v2()
