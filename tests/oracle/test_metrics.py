"""Metrics beside TensorFlow's, over two updates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore
from tests.oracle.conftest import Oracle

gc: Any = graphcore  # its namespaces are found on demand
RANDOM = np.random.default_rng(5)
INPUTS: dict[str, Any] = {
    "x": RANDOM.normal(size=(4, 3)).astype(np.float32),
    "y": RANDOM.normal(size=(4, 3)).astype(np.float32),
    "w": np.array([[1.0], [0.0], [2.0], [0.5]], np.float32),
    "classes": np.array([[0, 1], [2, 2], [1, 0]]),
    "found": np.array([[0, 2], [2, 1], [1, 0]]),
    "truth": np.array([True, False, True, True, False, False]),
    "guess": np.array([1, 0, 0, 1, 1, 0]),
    "p": np.array([0.9, 0.3, 0.45, 0.8, 0.55, 0.05], np.float32),
    "v": np.array([1.0, 2.0, 0.5, 1.0, 1.0, 0.0], np.float32),
}
EXPRESSIONS = [
    "m.mean(x)",
    "m.mean(x, w)",
    "m.mean_tensor(x)",
    "m.mean_absolute_error(x, y)",
    "m.mean_squared_error(x, y, w)",
    "m.root_mean_squared_error(x, y)",
    "m.mean_relative_error(x, y, np.abs(x))",
    "m.mean_cosine_distance(x, y, 1)",
    "m.percentage_below(x, 0.2)",
    "m.accuracy(classes, found)",
    "m.accuracy(classes[..., None], found, [[1.0, 2.0], [0.0, 1.0], [1.0, 1.0]])",
    "m.precision(truth, guess)",
    "m.precision(truth, guess, v)",
    "m.recall(truth, guess)",
    "m.true_positives(truth, guess)",
    "m.true_negatives(truth, guess, v)",
    "m.false_positives(truth, guess)",
    "m.false_negatives(truth, guess)",
    "m.mean_iou(tf.constant(classes), tf.constant(found), 4)",
    "m.mean_iou(tf.constant(classes.ravel()), tf.constant(found.ravel()), 3, tf.constant(v))",
    "m.mean_per_class_accuracy(tf.constant(classes.ravel()), tf.constant(found.ravel()), 3)",
    "m.auc(truth, p)",
    "m.auc(truth, p, v, 20)",
    "m.auc(truth, p, curve='PR', summation_method='careful_interpolation')",
    "m.auc(truth, p, summation_method='minoring', num_thresholds=7)",
    "m.auc(truth, p, curve='PR', summation_method='majoring', thresholds=[0.2, 0.5])",
    "m.precision_at_thresholds(truth, p, [0.1, 0.5, 0.7])",
    "m.recall_at_thresholds(truth, p, [0.1, 0.5, 0.7], v)",
    "m.true_positives_at_thresholds(truth, p, [0.1, 0.5])",
    "m.false_negatives_at_thresholds(truth, p, [0.1, 0.5])",
    "m.true_negatives_at_thresholds(truth, p, [0.1, 0.5])",
    "m.false_positives_at_thresholds(truth, p, [0.1, 0.5], v)",
]
THEIRS = """
v1 = tf.compat.v1
answer = []
for expression in arguments["expressions"]:
    with v1.Graph().as_default(), v1.Session() as session:
        value, update = eval(expression, dict(inputs, m=v1.metrics, tf=v1, np=np))
        session.run(v1.local_variables_initializer())
        updates = [session.run(update) for _ in range(2)]
        names = sorted(each.name for each in v1.local_variables())
        answer.append(([np.asarray(each) for each in [session.run(value), *updates]], names))
"""


@pytest.fixture(scope="module")
def theirs(oracle: Oracle) -> dict[str, Any]:
    return dict(zip(EXPRESSIONS, oracle.run(THEIRS, INPUTS, expressions=EXPRESSIONS).answer, strict=True))


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_metric_has_tensorflows_values_and_variables(expression: str, theirs: dict[str, Any]) -> None:
    with gc.Graph().as_default(), gc.Session() as session:
        value, update = eval(expression, {"m": gc.metrics, "tf": gc, "np": np, **INPUTS})
        session.run(gc.local_variables_initializer())
        updates = [session.run(update) for _ in range(2)]
        found = [session.run(value), *updates]
        names = sorted(each.name for each in gc.local_variables())
    expected, expected_names = theirs[expression]
    for mine, other in zip(found, expected, strict=True):
        assert np.shape(mine) == np.shape(other)
        np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-6)
    assert names == expected_names
