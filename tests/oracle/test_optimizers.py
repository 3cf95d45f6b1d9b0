"""Steps of each optimizer, against TensorFlow's."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

import graphcore as gc
from tests.oracle.conftest import Array, Oracle

X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(8, 3)
Y = np.cos(np.arange(16, dtype=np.float32)).reshape(8, 2)
W = np.linspace(0.5, -0.5, 6, dtype=np.float32).reshape(3, 2)
TABLE = np.sin(np.arange(12, dtype=np.float32)).reshape(6, 2)
IDS: Final[dict[str, Array]] = {"ids": np.array([[0, 3, 3], [5, 0, 0]], np.int32), "others": np.array([3, 4, 4, 0], np.int64)}
STEPS = 8
STEP: Final = "tf.Variable(0, trainable=False, name='step', dtype=tf.int64)"
OPTIMIZERS: Final = [
    "GradientDescentOptimizer(0.05)",
    "GradientDescentOptimizer(lambda: tf.constant(0.05))",
    "MomentumOptimizer(0.05, 0.9)",
    "MomentumOptimizer(0.05, lambda: 0.9, use_nesterov=True)",
    "AdamOptimizer()",
    "AdamOptimizer(0.1, beta1=0.8, beta2=0.99, epsilon=1e-4)",
    "AdagradOptimizer(0.1)",
    "AdagradOptimizer(0.3, initial_accumulator_value=0.5)",
    f"AdagradDAOptimizer(0.5, {STEP}, l1_regularization_strength=0.01, l2_regularization_strength=0.1)",
    "AdadeltaOptimizer(2.0, rho=0.8, epsilon=1e-3)",
    "RMSPropOptimizer(0.01)",
    "RMSPropOptimizer(0.01, decay=0.8, momentum=0.5, epsilon=1e-5, centered=True)",
    "FtrlOptimizer(0.1)",
    "FtrlOptimizer(0.2, -0.4, 0.2, l1_regularization_strength=0.01, l2_regularization_strength=0.02)",
    "FtrlOptimizer(0.2, l2_shrinkage_regularization_strength=0.1, accum_name='squares', linear_name='sum')",
    "ProximalGradientDescentOptimizer(0.05, l1_regularization_strength=0.01, l2_regularization_strength=0.02)",
    "ProximalAdagradOptimizer(0.1, 0.2, l1_regularization_strength=0.01, l2_regularization_strength=0.02)",
]
PROGRAM: Final = '''
def train(tf, expression, use_resource, sparse, inputs, steps):
    """The values of a variable after each step, and the names of all variables."""
    with tf.Graph().as_default():
        if sparse:
            w = tf.Variable(inputs["TABLE"], name="W", use_resource=use_resource)
            rows = tf.nn.embedding_lookup(w, tf.constant(inputs["ids"]))
            loss = tf.reduce_sum(tf.tanh(rows) * [1.0, 2.0]) + tf.reduce_sum(tf.square(tf.gather(w, tf.constant(inputs["others"]))))
        else:
            w = tf.Variable(inputs["W"], name="W", use_resource=use_resource)
            loss = tf.reduce_sum(tf.tanh(tf.matmul(tf.constant(inputs["X"]), w) - inputs["Y"]) ** 2.0)
        optimizer = eval("tf.train." + expression, {"tf": tf})
        step = getattr(optimizer, "_global_step", None)
        step = optimizer.minimize(loss, step)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            values = []
            for _ in range(steps):
                session.run(step)
                values.append(session.run(w))
            slots = {name: session.run(optimizer.get_slot(w, name)) for name in optimizer.get_slot_names()}
        names = [variable.name for variable in tf.global_variables()]
        return np.stack(values), slots, names, [variable.name for variable in optimizer.variables()]
'''
THEIRS: Final = f"""
{PROGRAM}
answer = []
for expression in arguments["expressions"]:
    for sparse in (False, True):
        for use_resource in (False, True):
            values, slots, names, own = train(tf.compat.v1, expression, use_resource, sparse, inputs, arguments["steps"])
            answer.append([values, slots, names, own])
"""
INPUTS: Final[dict[str, Array]] = {"X": X, "Y": Y, "W": W, "TABLE": TABLE, **IDS}
CASES: Final = [(expression, sparse, resource) for expression in OPTIMIZERS for sparse in (False, True) for resource in (False, True)]


@pytest.fixture(scope="module")
def theirs(oracle: Oracle) -> dict[tuple[str, bool, bool], Any]:
    return dict(zip(CASES, oracle.run(THEIRS, INPUTS, expressions=OPTIMIZERS, steps=STEPS).answer, strict=True))


@pytest.mark.parametrize(("expression", "sparse", "resource"), CASES)
def test_steps_slots_and_names_agree_with_tensorflow(
    theirs: dict[tuple[str, bool, bool], Any], expression: str, sparse: bool, resource: bool
) -> None:
    values, slots, names, own = theirs[expression, sparse, resource]
    here: dict[str, Any] = {"np": np}
    exec(PROGRAM, here)
    found, found_slots, found_names, found_own = here["train"](gc, expression, resource, sparse, INPUTS, STEPS)
    np.testing.assert_allclose(found, values, rtol=2e-5, atol=2e-6)
    assert found_slots.keys() == slots.keys()
    for name, slot in slots.items():
        np.testing.assert_allclose(found_slots[name], slot, rtol=2e-5, atol=2e-6, err_msg=name)
    assert found_names == names
    assert found_own == own
