"""Programs in the idioms of TensorFlow 1 give its numbers, with nothing changed but the import."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc
from tests.oracle.cases.programs_of_papers import PROGRAMS_OF_PAPERS
from tests.oracle.cases.programs_of_tensorflow_1 import IDIOMS
from tests.oracle.conftest import Oracle

RANDOM = np.random.default_rng(3)
INPUTS = {
    "digits": RANDOM.uniform(size=(16, 784)).astype(np.float32),
    "classes": np.eye(10, dtype=np.float32)[RANDOM.integers(0, 10, 16)],
    "w1": (RANDOM.normal(size=(784, 32)) * 0.1).astype(np.float32),
    "w2": (RANDOM.normal(size=(32, 10)) * 0.1).astype(np.float32),
    "k1": (RANDOM.normal(size=(5, 5, 1, 4)) * 0.1).astype(np.float32),
    "k2": (RANDOM.normal(size=(5, 5, 4, 8)) * 0.1).astype(np.float32),
    "wd": (RANDOM.normal(size=(7 * 7 * 8, 16)) * 0.1).astype(np.float32),
    "wo": (RANDOM.normal(size=(16, 10)) * 0.1).astype(np.float32),
    "words": RANDOM.uniform(-1, 1, size=(50, 8)).astype(np.float32),
}
PROGRAMS = {
    "the basic operations": """
a, b = tf.constant(2), tf.constant(3)
x, y = tf.placeholder(tf.int16), tf.placeholder(tf.int16)
m1, m2 = tf.constant([[3., 3.]]), tf.constant([[2.], [2.]])
with tf.Session() as sess:
    outputs["sums"] = [sess.run(a + b), sess.run(a * b), sess.run(tf.add(x, y), feed_dict={x: 2, y: 3}), sess.run(tf.multiply(x, y), {x: 2, y: 3})]
    outputs["product"] = sess.run(tf.matmul(m1, m2))
    outputs["mean"] = sess.run(tf.reduce_mean([a, b]))
""",
    "linear regression": """
train_X = np.asarray([3.3, 4.4, 5.5, 6.71, 6.93, 4.168]); train_Y = np.asarray([1.7, 2.76, 2.09, 3.19, 1.694, 1.573])
n_samples = train_X.shape[0]
X, Y = tf.placeholder("float"), tf.placeholder("float")
W, b = tf.Variable(0.3, name="weight"), tf.Variable(-0.2, name="bias")
pred = tf.add(tf.multiply(X, W), b)
cost = tf.reduce_sum(tf.pow(pred - Y, 2)) / (2 * n_samples)
steps = [v.assign_sub(0.01 * g) for v, g in zip([W, b], tf.gradients(cost, [W, b]))]
init = tf.global_variables_initializer()
with tf.Session() as sess:
    sess.run(init)
    for _ in range(3):
        for (x, y) in zip(train_X, train_Y):
            sess.run(steps, feed_dict={X: x, Y: y})
    outputs["cost"] = sess.run(cost, feed_dict={X: train_X, Y: train_Y})
    outputs["variables"] = [sess.run(W), sess.run(b)]
""",
    "logistic regression": """
x, y = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.float32, [None, 10])
W, b = tf.Variable(tf.zeros([784, 10])), tf.Variable(tf.zeros([10]))
pred = tf.nn.softmax(tf.matmul(x, W) + b)
cost = tf.reduce_mean(-tf.reduce_sum(y * tf.log(pred), reduction_indices=1))
dW, db = tf.gradients(cost, [W, b])
step = tf.group(tf.assign(W, W - 0.01 * dW), tf.assign(b, b - 0.01 * db))
correct = tf.equal(tf.argmax(pred, 1), tf.argmax(y, 1))
accuracy = tf.reduce_mean(tf.cast(correct, tf.float32))
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(3):
        sess.run(step, feed_dict={x: digits, y: classes})
    outputs["cost"] = sess.run(cost, {x: digits, y: classes})
    outputs["accuracy"] = accuracy.eval({x: digits, y: classes})
""",
    "nearest neighbour": """
xtr, xte = tf.placeholder("float", [None, 784]), tf.placeholder("float", [784])
distance = tf.reduce_sum(tf.abs(tf.add(xtr, tf.negative(xte))), reduction_indices=1)
pred = tf.arg_min(distance, 0)
with tf.Session() as sess:
    outputs["nearest"] = [sess.run(pred, feed_dict={xtr: digits[1:], xte: digits[i, :]}) for i in range(3)]
""",
    "a raw network with dropout": """
X, Y = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.float32, [None, 10])
keep_prob = tf.placeholder(tf.float32)
weights = {"h1": tf.Variable(w1), "out": tf.Variable(w2)}
biases = {"b1": tf.Variable(tf.zeros([32])), "out": tf.Variable(tf.zeros([10]))}
h1 = tf.nn.dropout(tf.nn.relu(tf.add(tf.matmul(X, weights["h1"]), biases["b1"])), keep_prob)
logits = tf.matmul(h1, weights["out"]) + biases["out"]
loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(logits=logits, labels=Y))
grads = tf.gradients(loss, list(weights.values()))
init = tf.global_variables_initializer()
with tf.Session() as sess:
    sess.run(init)
    outputs["loss"] = sess.run(loss, feed_dict={X: digits, Y: classes, keep_prob: 1.})
    for i, g in enumerate(sess.run(grads, feed_dict={X: digits, Y: classes, keep_prob: 1.})):
        outputs["grad%d" % i] = g
""",
    "a raw convolutional network": """
X, Y = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.float32, [None, 10])
def conv2d(x, W, b, strides=1):
    x = tf.nn.conv2d(x, W, strides=[1, strides, strides, 1], padding='SAME')
    x = tf.nn.bias_add(x, b)
    return tf.nn.relu(x)
def maxpool2d(x, k=2):
    return tf.nn.max_pool(x, ksize=[1, k, k, 1], strides=[1, k, k, 1], padding='SAME')
v = {name: tf.Variable(value) for name, value in [("wc1", k1), ("wc2", k2), ("wd1", wd), ("out", wo)]}
x = tf.reshape(X, shape=[-1, 28, 28, 1])
conv1 = maxpool2d(conv2d(x, v["wc1"], tf.zeros([4])))
conv2 = maxpool2d(conv2d(conv1, v["wc2"], tf.ones([8])))
fc1 = tf.reshape(conv2, [-1, v["wd1"].get_shape().as_list()[0]])
fc1 = tf.nn.relu(tf.matmul(fc1, v["wd1"]))
logits = tf.matmul(fc1, v["out"])
prediction = tf.nn.softmax(logits)
loss_op = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(logits=logits, labels=Y))
grads = tf.gradients(loss_op, [v[name] for name in sorted(v)])
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    outputs["loss"], outputs["prediction"] = sess.run([loss_op, prediction], feed_dict={X: digits, Y: classes})
    for i, g in enumerate(sess.run(grads, feed_dict={X: digits, Y: classes})):
        outputs["grad%d" % i] = g
""",
    "word2vec": """
train_inputs = tf.placeholder(tf.int32, shape=[6])
train_labels = tf.placeholder(tf.int32, shape=[6, 1])
valid_dataset = tf.constant([0, 7], dtype=tf.int32)
with tf.device('/cpu:0'):
    embeddings = tf.Variable(words)
    embed = tf.nn.embedding_lookup(embeddings, train_inputs)
    nce_weights = tf.Variable(words[::-1].copy())
    nce_biases = tf.Variable(tf.zeros([50]))
sampled = tf.nn.log_uniform_candidate_sampler(tf.cast(train_labels, tf.int64), 1, 10, True, 50, seed=5)
loss = tf.reduce_mean(tf.nn.nce_loss(weights=nce_weights, biases=nce_biases, labels=train_labels, inputs=embed,
                                     num_sampled=10, num_classes=50, sampled_values=sampled))
softmax = tf.reduce_mean(tf.nn.sampled_softmax_loss(nce_weights, nce_biases, train_labels, embed, 10, 50, seed=6))
norm = tf.sqrt(tf.reduce_sum(tf.square(embeddings), 1, keep_dims=True))
normalized = embeddings / norm
similarity = tf.matmul(tf.nn.embedding_lookup(normalized, valid_dataset), normalized, transpose_b=True)
with tf.Session() as session:
    tf.global_variables_initializer().run()
    feed_dict = {train_inputs: [1, 4, 4, 9, 30, 2], train_labels: [[2], [3], [1], [8], [31], [0]]}
    outputs["loss"] = session.run(loss, feed_dict)
    outputs["softmax"] = session.run(softmax, feed_dict)
    outputs["similarity"] = similarity.eval()
""",
    "mandelbrot": """
sess = tf.InteractiveSession()
Y, X = np.mgrid[-1.3:1.3:0.1, -2:1:0.1]
Z = X + 1j * Y
xs = tf.constant(Z.astype(np.complex64))
zs = tf.Variable(xs)
ns = tf.Variable(tf.zeros_like(xs, tf.float32))
tf.global_variables_initializer().run()
zs_ = zs * zs + xs
not_diverged = tf.abs(zs_) < 4
step = tf.group(zs.assign(zs_), ns.assign_add(tf.cast(not_diverged, tf.float32)))
for i in range(8): step.run()
outputs["steps"] = ns.eval()
sess.close()
""",
    "reads after assignments": """
with tf.Session() as sess:
    count = tf.Variable(0.0, name="count")
    first = count.assign_add(1.0)
    with tf.control_dependencies([first]):
        doubled = count * 2.0
        chosen = tf.cond(tf.constant(True), lambda: count * 3.0, lambda: count)
        summed = tf.while_loop(lambda i, _: i < 2, lambda i, s: (i + 1, s + count), [0, 0.0])[1]
    with tf.control_dependencies([doubled, chosen, summed]):
        second = count.assign(count * 10.0)
    with tf.control_dependencies([second]):
        last = tf.identity(count) + first * 0.0
    w = tf.Variable([1.0, 5.0], name="w")
    rate = tf.Variable(0.5, trainable=False)
    with tf.control_dependencies([rate.assign(rate * 0.5)]):
        lowered = rate + 0.0
    with tf.control_dependencies([lowered]):
        loss = tf.reduce_sum(tf.square(w - 3.0))
    train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
    average = tf.train.ExponentialMovingAverage(0.75)
    with tf.control_dependencies([train]):
        after = tf.reduce_sum(tf.square(w - 3.0))
        averaged = average.apply([w])
    with tf.control_dependencies([averaged]):
        mean = average.average(w) * 1.0
    sess.run(tf.global_variables_initializer())
    outputs["counts"] = np.array([sess.run([doubled, chosen, summed, last]) for _ in range(3)])
    outputs["losses"] = np.array([sess.run([loss, after, lowered]) for _ in range(3)])
    outputs["means"] = np.array([sess.run(mean) for _ in range(3)])
""",
    "assignments in branches and loops": """
training = tf.placeholder(tf.bool, [])
batch = tf.placeholder(tf.float32, [None, 3])
mean, variance = tf.Variable(tf.zeros([3]), trainable=False), tf.Variable(tf.ones([3]), trainable=False)
count, rows = tf.Variable(1.0), tf.Variable([1.0, 2.0, 3.0])
def moments():
    batch_mean, batch_variance = tf.nn.moments(batch, [0])
    moved = [tf.assign(mean, mean * 0.9 + batch_mean * 0.1), tf.assign(variance, variance * 0.9 + batch_variance * 0.1)]
    with tf.control_dependencies(moved):
        return tf.nn.batch_normalization(batch, batch_mean, batch_variance, None, None, 1e-3)
normalized = tf.cond(training, moments, lambda: tf.nn.batch_normalization(batch, mean, variance, None, None, 1e-3))
chosen = tf.cond(training, lambda: count.assign_add(2.0), lambda: count * 10.0)
with tf.control_dependencies([chosen]):
    seen = count * 100.0
scattered = tf.cond(training, lambda: tf.scatter_add(rows, [1, 1], [5.0, 6.0]), lambda: rows * 1.0)
doubled = tf.Variable(1.0)
def double(i):
    with tf.control_dependencies([doubled.assign(doubled * 2.0)]): return i + 1
def keep(i, total):
    def more():
        with tf.control_dependencies([tf.assign(doubled, doubled + 1.0)]): return doubled * 1.0
    return i + 1, total + tf.cond(i < 2, more, lambda: doubled * 3.0)
looped = tf.while_loop(lambda i: i < 3, double, [0])
with tf.control_dependencies([looped]):
    nested = tf.while_loop(lambda i, _: i < 4, keep, [0, 0.0], parallel_iterations=1)[1]
x = np.arange(12, dtype=np.float32).reshape(4, 3)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for i, is_training in enumerate([True, False, True]):
        outputs["normalized %d" % i] = sess.run(normalized, {batch: x + i, training: is_training})
        outputs["mean %d" % i] = sess.run(mean)
        outputs["seen %d" % i] = sess.run(seen, {training: is_training})
        outputs["scattered %d" % i] = sess.run(scattered, {training: is_training})
    outputs["nested"] = np.array([sess.run(nested), sess.run(doubled)])
""",
    "pdes": """
sess = tf.InteractiveSession()
def make_kernel(a):
    a = np.asarray(a)
    a = a.reshape(list(a.shape) + [1, 1])
    return tf.constant(a, dtype=1)
def simple_conv(x, k):
    x = tf.expand_dims(tf.expand_dims(x, 0), -1)
    y = tf.nn.depthwise_conv2d(x, k, [1, 1, 1, 1], padding='SAME')
    return y[0, :, :, 0]
def laplace(x):
    return simple_conv(x, make_kernel([[0.5, 1.0, 0.5], [1.0, -6., 1.0], [0.5, 1.0, 0.5]]))
u_init = np.zeros([30, 30], dtype=np.float32)
u_init[10, 12] = 0.7
eps, damping = tf.placeholder(tf.float32, shape=()), tf.placeholder(tf.float32, shape=())
U, Ut = tf.Variable(u_init), tf.Variable(np.zeros([30, 30], np.float32))
U_ = U + eps * Ut
Ut_ = Ut + eps * (laplace(U) - damping * Ut)
with tf.control_dependencies([U_, Ut_]):  # else TensorFlow may read U after it is assigned
    step = tf.group(U.assign(U_), Ut.assign(Ut_))
tf.global_variables_initializer().run()
for i in range(5): step.run({eps: 0.03, damping: 0.04})
outputs["U"] = U.eval()
sess.close()
""",
}
# Both sides begin with the same values, since only random numbers of seeded ops are TensorFlow's.
START = """
def start(sess):
    sess.run(tf.global_variables_initializer())
    for i, v in enumerate(tf.trainable_variables()):
        shape = v.get_shape().as_list()
        sess.run(tf.assign(v, (np.cos(np.arange(int(np.prod(shape))) * 0.7 + i).reshape(shape) * 0.2).astype(np.float32)))
"""
# TensorFlow 2 has these parts of `contrib` elsewhere. Other tests run in the same process, and look for `contrib`.
SOURCE = """
import os, sys, types
os.environ["TF_USE_LEGACY_KERAS"] = "1"  # only the former Keras has layers and cells
tf = tf.compat.v1
globals().update(inputs)
contrib = sys.modules["tensorflow.contrib"] = tf.contrib = types.ModuleType("tensorflow.contrib")
contrib.rnn = types.SimpleNamespace(static_rnn=tf.nn.static_rnn, static_bidirectional_rnn=tf.nn.static_bidirectional_rnn,
    **{name: getattr(tf.nn.rnn_cell, name) for name in ("BasicLSTMCell", "DropoutWrapper", "MultiRNNCell")})
try:
    with tf.Graph().as_default():
"""
END = """
finally:
    del sys.modules["tensorflow.contrib"], tf.contrib
"""


def wrapped(program: str) -> str:
    return SOURCE + "".join(f"        {line}\n" for line in (START + program).splitlines()) + END


ALL = PROGRAMS | IDIOMS | PROGRAMS_OF_PAPERS


@pytest.mark.parametrize("name", ALL)
def test_a_program_gives_tensorflows_numbers(oracle: Oracle, name: str) -> None:
    program = ALL[name]
    expected = oracle.run(wrapped(program), INPUTS).outputs
    found: dict[str, Any] = {}
    with gc.Graph().as_default():
        exec(START + program.replace("from tensorflow", "from graphcore"), {"tf": gc, "np": np, "outputs": found, **INPUTS})
    assert sorted(found) == sorted(expected)
    for key, value in expected.items():
        if value.dtype.kind in "US":
            assert np.asarray(found[key]).tolist() == value.tolist(), key
        else:
            np.testing.assert_allclose(np.asarray(found[key]), value, rtol=1e-4, atol=1e-5, err_msg=key)
