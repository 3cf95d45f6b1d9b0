"""Tensors, nodes, graphs, variables and sessions answer as TensorFlow 1's do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc
from tests.oracle.conftest import Oracle

pytestmark = pytest.mark.oracle
# Each is a program whose last line is an expression.
PROGRAMS = [
    """
x = tf.constant([1., 2.], name="x"); y = tf.add(x, x, name="y")
(y.op.name, y.name, y.op.type, [o.name for o in y.op.outputs], [i.name for i in y.op.inputs], y.value_index, y.device, y.graph is tf.get_default_graph(),
 x.op.node_def.name, list(y.op.node_def.input), y.op.get_attr("T") == tf.float32, [c.name for c in x.consumers()], len(x.op.control_inputs),
 y.op.colocation_groups(), y.op.op_def.name, len(y.op.traceback) > 0)
""",
    """
x = tf.placeholder(tf.float32); x.set_shape([None, 3]); s = x.get_shape()
(s.as_list(), s.ndims, s[1].value, s.with_rank(2).as_list(), s.merge_with([4, None]).as_list(), s.concatenate([7]).as_list(), s.is_fully_defined(),
 s.num_elements(), len(s), s[0].value, s[:1].as_list(), s.is_compatible_with([5, 3]), s.with_rank_at_least(1).as_list(), s.with_rank_at_most(2).as_list())
""",
    """
g = tf.get_default_graph(); a = tf.constant(1., name="a"); b = tf.constant(2., name="b")
with tf.name_scope("s"), g.device("/cpu:0"):
    c = tf.identity(a, name="c")
tf.add_to_collection("k", c); tf.add_to_collection("k", b)
(g.get_tensor_by_name("a:0") is a, g.get_operation_by_name("a") is a.op, g.as_graph_element("b:0") is b, [o.name for o in g.get_operations()],
 g.unique_name("a"), g.seed, g.finalized, [t.name for t in tf.get_collection("k", "s")], c.device, [n.name for n in g.as_graph_def().node])
""",
    """
v = tf.Variable([1., 2.], name="v", trainable=False); w = tf.Variable(3, name="w"); sess = tf.Session(); sess.run(w.initializer)
made = [sess.run(w.initialized_value())]
sess.run(v.initializer); v.load([3., 4.], sess)
made += [sess.run(t) for t in (v, v.assign([5., 6.]), v.assign_add([1., 1.]), v.assign_sub([2., 2.]), v.initialized_value(), v.read_value(), v.value())]
made += [sess.run(t) for t in (tf.scatter_add(v, [0], [10.]), tf.scatter_update(v, [1], [7.]), tf.scatter_sub(v, [1], [1.]), v[0], v + 1, -v, v * 2)]
(made, v.name, v.op.name, v.op.type, v.dtype.base_dtype == tf.float32, v.get_shape().as_list(), v.initializer.name, v.trainable, w.trainable)
""",
    """
v = tf.Variable([2.], name="v"); w = tf.Variable(v.initialized_value() * 2); sess = tf.Session(); sess.run(w.initializer)
before = sess.run(w); sess.run(v.initializer); sess.run(v.assign([7.])); sess.run(w.initializer)
(before, sess.run([v, w]))
""",
    """
a = tf.constant(1., name="a"); b = tf.constant([2., 3.], name="b"); sess = tf.Session("", tf.get_default_graph(), tf.ConfigProto())
x = tf.placeholder(tf.float32, []); y = x * 2; h = sess.partial_run_setup([y], [x])
(sess.run({"k": [a, {"z": b}], "t": (a,)}), sess.run("a:0"), sess.run(["a:0", b.op]), sess.run(b.op), sess.run([]), sess.make_callable(y, [x])(3.),
 sess.partial_run(h, y, {x: 4.}), [n.name for n in sess.graph_def.node][:2], [d.device_type for d in sess.list_devices()], sess.run(y, {"Placeholder:0": 2}))
""",
    """
x = tf.placeholder(tf.float32, [2], name="x")
errors = []
for run in (lambda: tf.Session().run(x, {x: [1., 2., 3.]}), lambda: tf.matmul(tf.ones([2, 3]), tf.ones([4, 5])), lambda: tf.reshape(tf.ones([4]), [3])):
    try:
        run()
    except ValueError:
        errors.append("ValueError")
try:
    tf.get_default_graph().get_operation_by_name("nope")
except KeyError:
    errors.append("KeyError")
try:
    tf.Session().run(tf.Variable(1.))
except tf.errors.OpError as error:
    errors.append(error.error_code)
errors
""",
    """
gd = tf.GraphDef()
with tf.Graph().as_default() as g:
    tf.constant(1., name="a"); gd = g.as_graph_def()
x, a = tf.import_graph_def(gd, return_elements=["a:0", "a"], name="imp"); tf.import_graph_def(gd, name="")
(x.name, a.name, a.type, [o.name for o in tf.get_default_graph().get_operations()], tf.get_static_value(x))
""",
    """
s = tf.Session(); a = tf.constant([7, -7]); z = tf.constant([3 + 4j])
[s.run(v) for v in (a / 2, a // 2, a % 4, tf.div(a, 2), tf.truediv(a, 2), tf.mod(a, 4), tf.truncatediv(a, 2), 2 / a, -a, abs(a), a**2, a > 0, tf.sign(a),
 tf.abs(z), abs(z), tf.real(z), tf.conj(z), tf.angle(z), z * 2, tf.one_hot([0, 2], 3), tf.one_hot([0, 2], 3, 5, 1), tf.one_hot([0], 3, on_value=5.0),
 tf.one_hot([1], 3, 1, 0, -1, tf.int64), tf.cast([1.7], tf.int32), tf.range(3), tf.range(0, 1, 0.5), tf.constant(1.0, shape=[2, 2]), tf.constant(np.ones(2)))]
""",
    """
s = tf.Session(); c = tf.constant([1., 2.])
[s.run(v) for v in (c * np.float64(2), np.float64(2) * c, c + np.ones(2), np.ones(2) + c, 1 - c, 2 / c, np.array([1., 2.], np.float32) * c, c * [1, 2],
 tf.multiply(2., c), tf.maximum(c, 1.5), tf.pow(c, 2), c**2, 2**c, tf.where(c > 1, c, [0., 0.]), tf.stack([c, [1, 2]]), tf.concat([c, [3.]], 0),
 tf.clip_by_value(c, 0, 1), tf.add_n([c, c, [1., 1.]]))]
""",
    """
s = tf.Session(); x = tf.placeholder(tf.float32, [None, 4])
[s.run(v, {x: np.ones([3, 4])}).shape for v in (tf.reshape(x, [tf.shape(x)[0], 2, 2]), tf.zeros([tf.shape(x)[0], 5]), tf.tile(x, [tf.shape(x)[0], 1]),
 tf.fill([tf.shape(x)[0]], 1.), tf.slice(x, [0, 0], [tf.shape(x)[0], 2]), tf.random_normal([tf.shape(x)[0], 2]), x[:tf.shape(x)[0] - 1],
 tf.reshape(x, (-1, x.get_shape()[1].value)), tf.reshape(x, [-1, int(x.get_shape()[1])]), tf.zeros([x.get_shape()[1], 2]), tf.reshape(x, [-1, x.shape[1]]))]
""",
    """
(tf.float32.as_numpy_dtype is np.float32, tf.float32 == np.float32, tf.float32 == "float32", tf.as_dtype("float32") is tf.float32, tf.int32.max,
 tf.float32.limits, tf.uint8.limits, tf.float32.as_datatype_enum, tf.uint8.is_unsigned, tf.bool.is_bool, tf.newaxis, tf.OptimizerOptions.ON_1 is not None)
""",
]
RUN = """
found = []
for program in programs:
    with tf.Graph().as_default():
        names = {"tf": tf, "np": np}
        lines = program.strip()
        start = max(i for i in range(len(lines)) if lines[i] in "([e" and (i == 0 or lines[i - 1] == chr(10)))
        exec(lines[:start], names)
        found.append(eval(lines[start:], names))
"""
INDENTED = RUN.replace("\n", "\n    ")
THERE = f"""
globals().update(arguments)
tf = tf.compat.v1
settings = ("v2_tensorshape", "resource_variables", "control_flow_v2")
for setting in settings:
    getattr(tf, "disable_" + setting)()
try:
    {INDENTED}
finally:
    for setting in settings:
        getattr(tf, "enable_" + setting)()
answer = found
"""


def plain(value: Any) -> Any:
    """Arrays and NumPy's numbers as dtype and elements; lists for tuples."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if not isinstance(value, np.ndarray | np.generic):
        return value
    return str(value.dtype), (np.round(value, 5) if value.dtype.kind in "fc" else value).tolist()


def test_objects_answer_as_in_tensorflow(oracle: Oracle) -> None:
    here: dict[str, Any] = {"tf": gc, "np": np, "programs": PROGRAMS}
    exec(RUN, here)
    theirs = oracle.run(THERE, programs=PROGRAMS).answer
    different = [(plain(mine), plain(other)) for mine, other in zip(here["found"], theirs, strict=True) if plain(mine) != plain(other)]
    assert not different
