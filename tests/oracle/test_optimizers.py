"""Twenty steps of each optimizer, against TensorFlow's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc
from tests.oracle.conftest import Oracle

X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(8, 3)
Y = np.cos(np.arange(16, dtype=np.float32)).reshape(8, 2)
W = np.linspace(0.5, -0.5, 6, dtype=np.float32).reshape(3, 2)
STEPS = 20
THEIRS = """
v1 = tf.compat.v1
with tf.Graph().as_default():
    w = v1.Variable(inputs["W"], use_resource=arguments["use_resource"])
    loss = tf.reduce_sum(tf.tanh(tf.matmul(inputs["X"], w) - inputs["Y"]) ** 2.0)
    train = getattr(v1.train, arguments["name"])(*arguments["args"], **arguments["options"]).minimize(loss)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        values = []
        for _ in range(arguments["steps"]):
            session.run(train)
            values.append(session.run(w))
outputs["values"] = np.stack(values)
"""


@pytest.mark.parametrize("use_resource", [False, True], ids=["reference", "resource"])
@pytest.mark.parametrize(
    ("name", "args", "options"),
    [
        ("GradientDescentOptimizer", [0.05], {}),
        ("MomentumOptimizer", [0.05, 0.9], {}),
        ("MomentumOptimizer", [0.05, 0.9], {"use_nesterov": True}),
        ("AdamOptimizer", [], {}),
        ("AdamOptimizer", [0.1], {"beta1": 0.8, "beta2": 0.99, "epsilon": 1e-4}),
    ],
)
def test_twenty_steps_agree_with_tensorflow(
    oracle: Oracle, name: str, args: list[float], options: dict[str, Any], use_resource: bool
) -> None:
    inputs = {"X": X, "Y": Y, "W": W}
    theirs = oracle.run(THEIRS, inputs, name=name, args=args, options=options, steps=STEPS, use_resource=use_resource).outputs["values"]
    with gc.Graph().as_default():
        w = gc.Variable(W, use_resource=use_resource)
        loss = gc.reduce_sum(gc.square(gc.tanh(gc.matmul(gc.constant(X), w) - Y)))
        train = getattr(gc, name)(*args, **options).minimize(loss)
        with gc.Session() as session:
            session.run(gc.initialize_all_variables())
            for expected in theirs:
                session.run(train)
                np.testing.assert_allclose(session.run(w), expected, rtol=2e-5, atol=2e-6)
