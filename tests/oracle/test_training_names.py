"""Learning rates, averages, global steps and second derivatives, against TensorFlow's."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

import graphcore as gc
from tests.oracle.conftest import Oracle

RATES: Final = [
    "exponential_decay(0.1, step, 4, 0.5)",
    "exponential_decay(tf.constant(0.1), step, tf.constant(4), 0.5, staircase=True, name='rate')",
    "natural_exp_decay(0.1, step, 4, 0.5)",
    "natural_exp_decay(0.1, step, 4, 0.5, staircase=True)",
    "inverse_time_decay(0.1, step, 4, 0.5)",
    "inverse_time_decay(0.1, step, 4, 0.5, True)",
    "polynomial_decay(0.1, step, 5, 0.02, 0.5)",
    "polynomial_decay(0.1, step, 3, power=2.0, cycle=True)",
    "cosine_decay(0.1, step, 6)",
    "cosine_decay(0.1, step, 6, alpha=0.2)",
    "cosine_decay_restarts(0.1, step, 2)",
    "cosine_decay_restarts(0.1, step, 3, t_mul=1.0, m_mul=0.5, alpha=0.1)",
    "cosine_decay_restarts(0.1, step, 3, tf.constant(1.0))",
    "linear_cosine_decay(0.1, step, 6, num_periods=1.5, alpha=0.1, beta=0.01)",
    "noisy_linear_cosine_decay(0.1, step, 6, initial_variance=0.0)",
    "piecewise_constant(step, [2, 5], [1.0, 0.5, 0.25])",
    "piecewise_constant_decay(tf.cast(step, tf.float32) / 2, [0.6, 2.5], [3, 2, 1])",
]
TRAIN: Final = gc.compat.v1.train
PACKAGE: Final = "graphcore.tf1.train."
APART: Final = f"{PACKAGE}saving."
"""Savers and files of graphs, which lack scopes to export and ignore unknown arguments."""
PLACES: Final = {name: str(getattr(getattr(TRAIN, name), "__module__", "")) for name in dir(TRAIN)}
NAMES: Final = [name for name, place in PLACES.items() if place.startswith(PACKAGE) and not place.startswith(APART)]
LATER: Final = {"beta", "graph", "save_graph_def", "use_own_namescope_for_non_slot_vars"}
"""Parameters that came after TensorFlow 1.15, or are of this project."""
PROGRAM: Final = '''
def rates(tf, expressions):
    """The rates at several steps, and the names of their nodes without those in between."""
    with tf.Graph().as_default(), tf.Session() as session:
        step = tf.placeholder(tf.int64, [])
        found = [eval("tf.train." + expression, {"tf": tf, "step": step}) for expression in expressions]
        return [session.run(found, {step: number}) for number in range(9)], [tensor.dtype.name for tensor in found]

def averages(tf, use_resource):
    with tf.Graph().as_default(), tf.Session() as session:
        step = tf.train.get_or_create_global_step()
        w = tf.Variable([1.0, 2.0], name="w", use_resource=use_resource)
        x = tf.multiply(tf.identity(w, name="x"), 2.0, name="twice")
        one = tf.train.ExponentialMovingAverage(0.9)
        two = tf.train.ExponentialMovingAverage(0.99, step, zero_debias=True, name="Second")
        change = tf.group(w.assign_add([1.0, -1.0]), step.assign_add(1))
        updates = [one.apply(), two.apply([x, w])]
        session.run(tf.variables_initializer([w, step]))
        session.run(tf.global_variables_initializer())
        numbers = []
        for _ in range(4):
            session.run(change)
            session.run(updates[0])
            session.run(updates[1])
            numbers.append(session.run([one.average(w), two.average(w), two.average(x)]))
        names = [variable.op.name for variable in tf.global_variables()]
        restored = {name: variable.op.name for name, variable in two.variables_to_restore().items()}
        further = [one.average(x) is None, one.average_name(w), two.average_name(w), one.average_name(x)]
        moving = sorted({variable.op.name for variable in tf.moving_average_variables()})
        return numbers, names, restored, further, moving, tf.train.global_step(session, step)

def names_in_scopes(tf):
    """The names of variables made by two optimizers and an average within scopes."""
    with tf.Graph().as_default():
        with tf.variable_scope("model"):
            w = tf.get_variable("w", [2])
        loss = tf.reduce_sum(w * w)
        with tf.name_scope("named"):
            tf.train.AdamOptimizer().minimize(loss)
        with tf.variable_scope("train"):
            tf.train.AdamOptimizer().minimize(loss)
            tf.train.RMSPropOptimizer(0.1).minimize(loss, tf.train.get_or_create_global_step())
            tf.train.ExponentialMovingAverage(0.9).apply([w])
        tf.train.AdamOptimizer().minimize(loss)
        return [variable.op.name for variable in tf.global_variables()]

def own_gradients(tf):
    """Gradients of functions and of nodes that the program defines."""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x = tf.constant([-1.5, 0.25, 2.0])

        @tf.custom_gradient
        def clipped(value, limit):
            return value * limit, lambda dy: (tf.clip_by_norm(dy, 0.5), tf.reduce_sum(dy))

        @tf.RegisterGradient(f"Guided{id(graph)}")
        def guided(op, grad):
            return tf.where(op.outputs[0] > 0.0, tf.nn.relu(grad), tf.zeros_like(grad))

        with graph.gradient_override_map({"Relu": f"Guided{id(graph)}", "Sign": "Identity"}):
            y = tf.nn.relu(x) * tf.sign(x)
        limit = tf.constant(3.0)
        found = tf.gradients(y * [1.0, 2.0, -3.0], x) + tf.gradients(clipped(x, limit) * x, [x, limit])
        return session.run(found)

def signatures(tf, names):
    """The parameters of functions and classes of tf.train."""
    import inspect
    found = [(name, getattr(tf.train, name, None)) for name in names if not name.endswith("Error")]
    return {name: list(inspect.signature(each).parameters) for name, each in found if each is not None}

def second_derivatives(tf):
    with tf.Graph().as_default(), tf.Session() as session:
        w = tf.Variable([[1.0, 2.0], [3.0, 0.5]])
        x, z = tf.constant([1.0, -2.0, 0.5]), tf.constant([2.0, 2.0])
        y = tf.reduce_sum(tf.sin(w) * tf.tanh(w[0, 0] * w)) + tf.reduce_prod(x) + tf.reduce_sum(w) * x[0]
        found = tf.hessians(y, [w, x])
        zeros = tf.gradients(y, [z, x], unconnected_gradients=tf.UnconnectedGradients.ZERO, aggregation_method=tf.AggregationMethod.ADD_N)
        session.run(tf.global_variables_initializer())
        return session.run(found + zeros)
'''
THEIRS: Final = f"""
{PROGRAM}
tf = tf.compat.v1
answer = rates(tf, arguments["rates"]), [averages(tf, kind) for kind in (False, True)], second_derivatives(tf), names_in_scopes(tf), own_gradients(tf)
answer = *answer, signatures(tf, arguments["names"])
"""


@pytest.fixture(scope="module")
def theirs(oracle: Oracle) -> Any:
    return oracle.run(THEIRS, rates=RATES, names=NAMES).answer


@pytest.fixture(scope="module")
def here() -> dict[str, Any]:
    found: dict[str, Any] = {"np": np}
    exec(PROGRAM, found)
    return found


def test_learning_rates_fall_as_in_tensorflow(theirs: Any, here: dict[str, Any]) -> None:
    found, dtypes = here["rates"](gc, RATES)
    expected, kinds = theirs[0]
    for number, (one, two) in enumerate(zip(found, expected, strict=True)):
        for expression, mine, other in zip(RATES, one, two, strict=True):
            np.testing.assert_allclose(mine, other, rtol=2e-6, err_msg=f"{expression} at step {number}")
    assert [gc.as_dtype(kind) for kind in kinds] == [gc.as_dtype(kind) for kind in dtypes]


@pytest.mark.parametrize("use_resource", [False, True], ids=["reference", "resource"])
def test_moving_averages_agree_with_tensorflow(theirs: Any, here: dict[str, Any], use_resource: bool) -> None:
    numbers, *rest = here["averages"](gc, use_resource)
    expected, *others = theirs[1][use_resource]
    for mine, other in zip(numbers, expected, strict=True):
        for one, two in zip(mine, other, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-6)
    assert rest == others


def test_second_derivatives_and_zeros_of_unconnected_tensors_agree(theirs: Any, here: dict[str, Any]) -> None:
    for mine, other in zip(here["second_derivatives"](gc), theirs[2], strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-6)


def test_variables_of_optimizers_in_scopes_have_tensorflows_names(theirs: Any, here: dict[str, Any]) -> None:
    assert here["names_in_scopes"](gc) == theirs[3]


def test_gradients_that_programs_define_agree(theirs: Any, here: dict[str, Any]) -> None:
    for mine, other in zip(here["own_gradients"](gc), theirs[4], strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-6)


def test_functions_and_classes_of_train_have_tensorflows_parameters(theirs: Any, here: dict[str, Any]) -> None:
    mine = here["signatures"](gc, NAMES)
    wrong = [
        f"{name}{found} should be {theirs[5][name]}"
        for name, found in mine.items()
        if name in theirs[5] and [each for each in found if each not in LATER] != [each for each in theirs[5][name] if each not in LATER]
    ]
    assert len(mine) > 50
    assert not wrong, "\n".join(wrong)
