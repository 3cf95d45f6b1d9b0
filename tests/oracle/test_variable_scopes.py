"""Variable scopes and initializers give the names and numbers of TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np

import graphcore as gc
from tests.oracle.conftest import Oracle

NAMES = """
names = []
def note(*items):
    names.extend([item if isinstance(item, str) else item.name for item in items])
def refused(make):
    try:
        make()
    except ValueError:
        note("refused")
    else:
        note("made")
with tf.variable_scope("a") as a:
    note(tf.get_variable("w", [2]), tf.add(1, 2, name="op"), a.original_name_scope)
    with tf.variable_scope("b", initializer=tf.zeros_initializer):
        note(tf.get_variable("w", [2]), tf.add(1, 2, name="op"))
    with tf.variable_scope("b"):
        note(tf.get_variable("v", [2]), tf.add(1, 2, name="op"))
    with tf.variable_scope(None, "d"):
        note(tf.get_variable("w", [2]), tf.add(1, 2, name="op"))
    with tf.variable_scope(None, "d"):
        note(tf.get_variable("w", [2]), tf.Variable(0.0, name="plain"))
with tf.variable_scope("a", reuse=True):
    note(tf.get_variable("w"), tf.add(1, 2, name="op"))
    with tf.variable_scope(None, "d"):
        note(tf.get_variable("w"))
with tf.variable_scope(a, reuse=True) as again:
    note(tf.get_variable("b/w"), tf.add(1, 2, name="op"), again.original_name_scope)
with tf.variable_scope(a, auxiliary_name_scope=False):
    note(tf.add(1, 2, name="op"))
with tf.name_scope("scope"):
    note(tf.get_variable("w", [2]), tf.add(1, 2, name="op"))
    with tf.variable_scope("c") as c:
        note(tf.get_variable("w", [2]), tf.add(1, 2, name="op"), c.name, c.original_name_scope)
with tf.variable_scope(c):
    note(tf.get_variable("u", [1]), tf.add(1, 2, name="op"))
    with tf.variable_scope(None, "d"):
        note(tf.get_variable("w", [2]))
with tf.variable_scope(c):
    with tf.variable_scope(None, "d"):
        note(tf.get_variable("w2", [2]))
with tf.variable_scope("e/f"):
    note(tf.get_variable("w", [2]))
with tf.variable_scope(None, "e"):
    note(tf.get_variable("w", [2]))
t = tf.make_template("t", lambda x: x * tf.get_variable("w", [2]))
note(t(tf.ones([2])), t(tf.ones([2])))
with tf.variable_scope("t"):
    note(tf.make_template("t", lambda x: x * tf.get_variable("w", [2]), create_scope_now_=True)(tf.ones([2])))
refused(lambda: tf.get_variable("w", [2]))
refused(lambda: tf.get_variable("new", [2], initializer=tf.zeros([2])))
refused(lambda: tf.get_variable("new", [2, None]))
refused(lambda: tf.get_variable("new", initializer=np.zeros(2), dtype=tf.float32))
refused(lambda: tf.get_variable("new", initializer=lambda: tf.zeros([2])))
note(*tf.global_variables(), *tf.trainable_variables("a/"))
answer = [name.replace("Initializer/stateless_", "Initializer/") for name in names]
"""
INITIALIZERS = {
    "zeros": "tf.zeros_initializer()",
    "ones": "tf.initializers.ones(tf.float64)",
    "constant": "tf.constant_initializer(2.5)",
    "list": "tf.constant_initializer(list(range(12)))",
    "uniform": "tf.random_uniform_initializer(-2.0, 3.0, seed=4)",
    "normal": "tf.random_normal_initializer(1.0, 2.0, seed=4)",
    "truncated": "tf.truncated_normal_initializer(1.0, 2.0, seed=4)",
    "unit": "tf.uniform_unit_scaling_initializer(1.5, seed=4)",
    "scaling": "tf.variance_scaling_initializer(2.0, 'fan_out', 'untruncated_normal', seed=4)",
    "glorot_uniform": "tf.glorot_uniform_initializer(seed=4)",
    "glorot_normal": "tf.initializers.glorot_normal(seed=4)",
    "he_normal": "tf.initializers.he_normal(seed=4)",
    "he_uniform": "tf.initializers.he_uniform(seed=4)",
    "lecun_normal": "tf.initializers.lecun_normal(seed=4)",
    "lecun_uniform": "tf.initializers.lecun_uniform(seed=4)",
    "identity": "tf.initializers.identity(3.0)",
    "orthogonal": "tf.orthogonal_initializer(2.0, seed=4)",
}
VALUES = """
with tf.Session() as session:
    for name, text in arguments["initializers"].items():
        for shape in [[3, 4]] if name in ("identity", "list") else [[3, 4], [2, 3, 2], *([[5]] if name != "orthogonal" else [])]:
            outputs[f"{name} {shape}"] = session.run(eval(text)(shape))
"""


def here(source: str, **arguments: Any) -> dict[str, Any]:
    names: dict[str, Any] = {"tf": gc, "np": np, "outputs": {}, "arguments": arguments}
    with gc.Graph().as_default():
        exec(source, names)
    return names


def there(source: str) -> str:
    lines = "".join(f"        {line}\n" for line in source.splitlines())
    return f"""
tf = tf.compat.v1
tf.disable_resource_variables()
try:
    with tf.Graph().as_default():
{lines}
finally:
    tf.enable_resource_variables()
"""


def test_names_in_variable_scopes_are_tensorflows(oracle: Oracle) -> None:
    assert here(NAMES)["answer"] == oracle.run(there(NAMES)).answer


def test_initial_values_are_tensorflows(oracle: Oracle) -> None:
    expected = oracle.run(there(VALUES), initializers=INITIALIZERS).outputs
    found = here(VALUES, initializers=INITIALIZERS)["outputs"]
    assert sorted(found) == sorted(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-6, err_msg=name)
