"""Gradients of gathered rows, clipped and applied, against TensorFlow's."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

import graphcore as gc
from tests.oracle.conftest import Oracle

PROGRAM: Final = """
def embed(tf, w, u, b):
    return tf.reduce_sum(tf.nn.embedding_lookup(w, [[0, 2, 2], [1, 0, 0]]) * tf.nn.embedding_lookup(u, [1, 1, 0]))

def both(tf, w, u, b):
    rows = tf.nn.embedding_lookup(w, [3, 3, 1])
    return tf.reduce_sum(tf.tanh(tf.matmul(rows, w, transpose_b=True) + b)) + tf.reduce_sum(tf.gather(b, [0, 0, 2]) ** 2)

def parts(tf, w, u, b):
    return tf.reduce_sum(tf.exp(tf.nn.embedding_lookup([w, u], [0, 5, 1, 5, 4]))) * tf.reduce_sum(tf.gather(w, [0], axis=1))

def limited(tf, w, u, b):
    return tf.reduce_sum(tf.nn.embedding_lookup(w, [0, 2, 2], max_norm=1.0) ** 3) + tf.reduce_sum(tf.tanh(b[1:] * u[0, 1]))

def sampled(tf, w, u, b):
    chosen = (tf.constant([0, 2], tf.int64), tf.constant([[0.5], [0.25]]), tf.constant([0.5, 0.25]))
    inputs = tf.nn.embedding_lookup(u, [0, 1])
    return tf.reduce_mean(tf.nn.nce_loss(w, b, tf.constant([[1], [3]]), inputs, 2, 4, sampled_values=chosen))

def looped(tf, w, u, b):
    rows = tf.nn.embedding_lookup(w, [1, 3, 1])
    return tf.reduce_sum(tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s * 1.5 + tf.tanh(rows)), (0, rows))[1])

def as_values(found):
    if hasattr(found, "indices"):
        return [np.asarray(found.values), np.asarray(found.indices), np.asarray(found.dense_shape)]
    return [np.asarray(found)]

def results(tf, program, use_resource):
    with tf.Graph().as_default():
        start = np.sin(np.arange(8, dtype=np.float32)).reshape(4, 2)
        w, u, b = [
            tf.Variable(value, name=name, use_resource=use_resource)
            for name, value in (("w", start), ("u", start[:4] + 0.5), ("b", start[:, 0]))
        ]
        loss = eval(program)(tf, w, u, b)
        found = tf.gradients(loss, [w, u, b])
        used = [(gradient, variable) for gradient, variable in zip(found, [w, u, b]) if gradient is not None]
        clipped, norm = tf.clip_by_global_norm([gradient for gradient, _ in used], 0.5)
        one_by_one = [tf.convert_to_tensor(change(gradient)) for gradient, _ in used for change in (
            lambda gradient: tf.clip_by_norm(gradient, 0.3), lambda gradient: tf.clip_by_value(gradient, -0.1, 0.1),
        )]
        clipped = list(zip(clipped, [variable for _, variable in used]))
        steps = [
            tf.train.MomentumOptimizer(0.5, 0.9).apply_gradients(clipped),
            tf.train.AdamOptimizer(0.1).apply_gradients(clipped),
        ]
        whole = [tf.convert_to_tensor(gradient) for gradient, _ in used]
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            first = [as_values(each) for each in session.run([gradient for gradient, _ in used])]
            numbers = session.run([norm, *whole, *one_by_one])
            for step in 3 * steps:
                session.run(step)
            return first, numbers, session.run([w, u, b])
"""
THEIRS: Final = f"""
{PROGRAM}
answer = [results(tf.compat.v1, program, use_resource) for program in arguments["programs"] for use_resource in (False, True)]
"""
PROGRAMS: Final = ["embed", "both", "parts", "limited", "sampled", "looped"]
CASES: Final = [(program, use_resource) for program in PROGRAMS for use_resource in (False, True)]


@pytest.fixture(scope="module")
def theirs(oracle: Oracle) -> dict[tuple[str, bool], Any]:
    return dict(zip(CASES, oracle.run(THEIRS, programs=PROGRAMS).answer, strict=True))


@pytest.mark.parametrize(("program", "use_resource"), CASES)
def test_gradients_norms_and_steps_agree_with_tensorflow(theirs: dict[tuple[str, bool], Any], program: str, use_resource: bool) -> None:
    gradients, numbers, values = theirs[program, use_resource]
    here: dict[str, Any] = {"np": np}
    exec(PROGRAM, here)
    found, found_numbers, found_values = here["results"](gc, program, use_resource)
    assert [len(each) for each in found] == [len(each) for each in gradients], "slices where TensorFlow has them"
    for mine, other in zip(found, gradients, strict=True):
        if len(other) == 3:
            order, expected = (
                np.lexsort((*mine[0].reshape(len(mine[1]), -1).T, mine[1])),
                np.lexsort((*other[0].reshape(len(other[1]), -1).T, other[1])),
            )
            np.testing.assert_array_equal(mine[1][order], other[1][expected])
            np.testing.assert_allclose(mine[0][order], other[0][expected], rtol=1e-5, atol=1e-6)
            np.testing.assert_array_equal(mine[2], other[2])
    for one, two in zip([*found_numbers, *found_values], [*numbers, *values], strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-6)
