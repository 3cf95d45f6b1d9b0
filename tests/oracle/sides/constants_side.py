"""TensorFlow's side of the tests of gradients of constants: the same programs, in graph mode."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from tests.graphcore.passes.gradients.constant_programs import Program, build, differentiate

Array = npt.NDArray[Any]
NAMES = "tanh sigmoid square sign stop_gradient maximum where matmul reduce_sum reduce_mean reduce_prod reduce_max transpose reshape concat"
TF = SimpleNamespace(
    **{name: getattr(tf, name) for name in f"{NAMES} stack gather pad tile cond while_loop gradients".split()}, log=tf.math.log
)


def differentiated(program: Program, arrays: Sequence[Array], fed: Sequence[Array]) -> list[Array]:
    """The value, gradients and second gradients of a program of constants under other feeds.

    Missing gradients are zeros.
    """
    tf.compat.v1.enable_control_flow_v2()
    with tf.Graph().as_default() as graph:
        tensors = [tf.constant(array) for array in arrays]
        y = build(TF, program, tensors[:-1], tensors[-1])
        first, second = differentiate(TF, y, tensors[:-1])
        like = [y, *tensors[:-1], *tensors[:-1]]
        every = [tf.zeros_like(x) if tensor is None else tensor for tensor, x in zip([y, *first, *second], like, strict=True)]
        with tf.compat.v1.Session(graph=graph) as session:
            return [np.asarray(value) for value in session.run(every, dict(zip(tensors, fed, strict=True)))]


def gradient_with_fed_shape(x: Array, own: Array, fed: Array) -> Array:
    """The gradient by `x` of the mean of squares of `x` in a shape with another one fed."""
    with tf.Graph().as_default() as graph:
        given, shape = tf.compat.v1.placeholder(tf.float64, [None]), tf.constant(own)
        (gradient,) = tf.gradients(tf.reduce_mean(tf.square(tf.reshape(given, shape))), [given])
        with tf.compat.v1.Session(graph=graph) as session:
            return np.asarray(session.run(gradient, {given: x, shape: fed}))
