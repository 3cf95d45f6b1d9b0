"""Training steps of programs for TensorFlow 1, with one thread and with two.

Each program is written once, over the names that both sides have; its variables begin with the same values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tests.benchmarks.work import Budget, Float, Row, Work, random_floats

PIXELS, CLASSES, HIDDEN, NOISE = 784, 10, 256, 100
IMAGE = 28
BATCH = 128
STEPS = 2
"""The steps after which the variables of both sides are compared."""


class Program(NamedTuple):
    """A training step.

    Attributes:
        step: what a step runs.
        feeds: what it feeds.
        settled: further feeds that replace random numbers, for the comparison.
    """

    step: Any
    feeds: dict[Any, Any]
    settled: dict[Any, Any]


Build = Callable[[Any], Program]


def started(seed: int, *shape: int) -> Float:
    """Values around 0 before the first step, small enough for the depth of the sums."""
    fan_in = int(np.prod(shape[:-1]))
    return (random_floats(seed, *shape) - np.float32(0.5)) * np.float32(2 / max(fan_in, 1) ** 0.5)


def variables(tf: Any, seed: int, *shapes: Sequence[int]) -> list[Any]:
    """A weight and a bias for each shape of weights."""
    made: list[Any] = []
    for i, shape in enumerate(shapes):
        made += [tf.Variable(started(seed + i, *shape)), tf.Variable(np.full(shape[-1], 0.1, np.float32))]
    return made


def digits(size: int = BATCH) -> tuple[Float, Float]:
    """Images and one-hot classes."""
    classes = np.random.default_rng(5).integers(0, CLASSES, size)
    return random_floats(6, size, PIXELS), np.eye(CLASSES, dtype=np.float32)[classes]


def classifier_feeds(tf: Any) -> tuple[Any, Any, dict[Any, Any]]:
    """Placeholders for images and classes, with what they are fed."""
    x, t = tf.placeholder(tf.float32, [None, PIXELS]), tf.placeholder(tf.float32, [None, CLASSES])
    return x, t, dict(zip((x, t), digits(), strict=True))


def cross_entropy(tf: Any, logits: Any, labels: Any) -> Any:
    """The mean loss of a classifier."""
    return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(logits=logits, labels=labels))


def perceptron(tf: Any) -> Program:
    """784-512-512-10 with ReLU and Adam."""
    x, t, feeds = classifier_feeds(tf)
    w1, b1, w2, b2, w3, b3 = variables(tf, 30, (PIXELS, 512), (512, 512), (512, CLASSES))
    h = tf.nn.relu(tf.matmul(x, w1) + b1)
    h = tf.nn.relu(tf.matmul(h, w2) + b2)
    return Program(tf.train.AdamOptimizer(0.001).minimize(cross_entropy(tf, tf.matmul(h, w3) + b3, t)), feeds, {})


def adversarial(tf: Any) -> Program:
    """Two perceptrons of one hidden layer that train against each other."""
    noise, x = tf.placeholder(tf.float32, [None, NOISE]), tf.placeholder(tf.float32, [None, PIXELS])
    generator = variables(tf, 40, (NOISE, HIDDEN), (HIDDEN, PIXELS))
    discriminator = variables(tf, 50, (PIXELS, HIDDEN), (HIDDEN, 1))

    def layers(x: Any, held: list[Any]) -> Any:
        h = tf.nn.relu(tf.add(tf.matmul(x, held[0]), held[1]))
        return tf.nn.sigmoid(tf.add(tf.matmul(h, held[2]), held[3]))

    made = layers(noise, generator)
    real, fake = layers(x, discriminator), layers(made, discriminator)
    generator_loss = -tf.reduce_mean(tf.log(fake))
    discriminator_loss = -tf.reduce_mean(tf.log(real) + tf.log(1.0 - fake))
    steps = [
        tf.train.AdamOptimizer(0.0002).minimize(generator_loss, var_list=generator),
        tf.train.AdamOptimizer(0.0002).minimize(discriminator_loss, var_list=discriminator),
    ]
    return Program(tf.group(*steps), {noise: random_floats(7, BATCH, NOISE), x: digits()[0]}, {})


def recurrent(tf: Any) -> Program:
    """An LSTM of 128 units over the 28 rows of an image, unrolled."""
    units = 128
    x, t, feeds = classifier_feeds(tf)
    kernel, bias, w, b = variables(tf, 60, (IMAGE + units, 4 * units), (units, CLASSES))
    rows = tf.unstack(tf.reshape(x, [-1, IMAGE, IMAGE]), IMAGE, 1)
    state = output = tf.zeros([BATCH, units])
    for row in rows:
        gates = tf.nn.bias_add(tf.matmul(tf.concat([row, output], 1), kernel), bias)
        i, j, f, o = tf.split(gates, 4, 1)
        state = state * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
        output = tf.tanh(state) * tf.sigmoid(o)
    loss = cross_entropy(tf, tf.matmul(output, w) + b, t)
    return Program(tf.train.GradientDescentOptimizer(0.001).minimize(loss), feeds, {})


def variational(tf: Any) -> Program:
    """A variational autoencoder 784-512-2-512-784 with RMSProp."""
    x = tf.placeholder(tf.float32, [None, PIXELS])
    held = variables(tf, 70, (PIXELS, 512), (512, 2), (512, 2), (2, 512), (512, PIXELS))
    h = tf.nn.tanh(tf.matmul(x, held[0]) + held[1])
    mean, deviation = tf.matmul(h, held[2]) + held[3], tf.matmul(h, held[4]) + held[5]
    noise = tf.random_normal(tf.shape(deviation), dtype=tf.float32, mean=0.0, stddev=1.0)
    z = mean + tf.exp(deviation / 2) * noise
    y = tf.nn.sigmoid(tf.matmul(tf.nn.tanh(tf.matmul(z, held[6]) + held[7]), held[8]) + held[9])
    reconstruction = -tf.reduce_sum(x * tf.log(1e-10 + y) + (1 - x) * tf.log(1e-10 + 1 - y), 1)
    divergence = -0.5 * tf.reduce_sum(1 + deviation - tf.square(mean) - tf.exp(deviation), 1)
    step = tf.train.RMSPropOptimizer(learning_rate=0.001).minimize(tf.reduce_mean(reconstruction + divergence))
    return Program(step, {x: digits(64)[0]}, {noise: random_floats(8, 64, 2)})


def pooled(tf: Any, x: Any, w: Any, b: Any) -> Any:
    """A convolution with ReLU and a maximum over 2 x 2."""
    y = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w, strides=[1, 1, 1, 1], padding="SAME"), b))
    return tf.nn.max_pool(y, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")


def convolutional(tf: Any) -> Program:
    """Two 5 x 5 convolutions, 1 to 32 to 64 channels, a layer of 1024, dropout and Adam."""
    x, t, feeds = classifier_feeds(tf)
    kept = tf.placeholder(tf.float32)
    held = variables(tf, 80, (5, 5, 1, 32), (5, 5, 32, 64), (7 * 7 * 64, 1024), (1024, CLASSES))
    h = pooled(tf, tf.reshape(x, [-1, IMAGE, IMAGE, 1]), held[0], held[1])
    h = pooled(tf, h, held[2], held[3])
    h = tf.nn.relu(tf.matmul(tf.reshape(h, [-1, 7 * 7 * 64]), held[4]) + held[5])
    logits = tf.matmul(tf.nn.dropout(h, kept), held[6]) + held[7]
    step = tf.train.AdamOptimizer(learning_rate=0.001).minimize(cross_entropy(tf, logits, t))
    return Program(step, {**feeds, kept: 0.75}, {kept: 1.0})


def deep_convolutional(tf: Any) -> Program:
    """Three 3 x 3 convolutions, 1 to 32 to 64 to 128 channels, each with dropout, and RMSProp."""
    x, t, feeds = classifier_feeds(tf)
    kept = tf.placeholder(tf.float32)
    held = variables(tf, 90, (3, 3, 1, 32), (3, 3, 32, 64), (3, 3, 64, 128), (128 * 4 * 4, 625), (625, CLASSES))
    h = tf.reshape(x, [-1, IMAGE, IMAGE, 1])
    for layer in range(3):
        h = tf.nn.dropout(pooled(tf, h, held[2 * layer], held[2 * layer + 1]), kept)
    h = tf.nn.dropout(tf.nn.relu(tf.matmul(tf.reshape(h, [-1, 128 * 4 * 4]), held[6]) + held[7]), kept)
    step = tf.train.RMSPropOptimizer(0.001, 0.9).minimize(cross_entropy(tf, tf.matmul(h, held[8]) + held[9], t))
    return Program(step, {**feeds, kept: 0.8}, {kept: 1.0})


def transposed(tf: Any) -> Program:
    """Adversarial networks of convolutions; transposed ones generate."""
    size = 32
    noise, x = tf.placeholder(tf.float32, [size, 200]), tf.placeholder(tf.float32, [size, IMAGE, IMAGE, 1])
    generator = variables(tf, 100, (200, 6 * 6 * 128), (4, 4, 64, 128), (2, 2, 1, 64))
    discriminator = variables(tf, 110, (5, 5, 1, 64), (5, 5, 64, 128), (4 * 4 * 128, 1024), (1024, 2))

    def generate(noise: Any) -> Any:
        w1, b1, w2, _, w3, _ = generator
        h = tf.reshape(tf.nn.tanh(tf.matmul(noise, w1) + b1), [-1, 6, 6, 128])
        h = tf.nn.conv2d_transpose(h, w2, [size, 14, 14, 64], strides=[1, 2, 2, 1], padding="VALID")
        return tf.nn.sigmoid(tf.nn.conv2d_transpose(h, w3, [size, 28, 28, 1], strides=[1, 2, 2, 1], padding="VALID"))

    def discriminate(x: Any) -> Any:
        h = x
        for layer in range(2):
            h = tf.nn.bias_add(tf.nn.conv2d(h, discriminator[2 * layer], [1, 1, 1, 1], "VALID"), discriminator[2 * layer + 1])
            h = tf.nn.avg_pool(tf.nn.tanh(h), [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
        h = tf.nn.tanh(tf.matmul(tf.reshape(h, [-1, 4 * 4 * 128]), discriminator[4]) + discriminator[5])
        return tf.matmul(h, discriminator[6]) + discriminator[7]

    def loss(logits: Any, label: int) -> Any:
        labels = tf.constant(np.full(size, label, np.int32))
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=labels))

    fake = discriminate(generate(noise))
    losses = [loss(fake, 1), loss(discriminate(x), 1) + loss(fake, 0)]
    trained = [[held for held in generator if held not in (generator[3], generator[5])], discriminator]
    steps = [tf.train.AdamOptimizer(0.001).minimize(of, var_list=held) for of, held in zip(losses, trained, strict=True)]
    return Program(tf.group(*steps), {noise: random_floats(9, size, 200), x: digits(size)[0].reshape(size, IMAGE, IMAGE, 1)}, {})


def trained(tf: Any, session: Any, build: Build) -> Work:
    """The work of a program; its outcome is the variables after some steps."""
    program, held = build(tf), tf.trainable_variables()
    init = tf.global_variables_initializer()
    run = session()
    run.run(init)

    def outcome() -> list[Float]:
        for _ in range(STEPS):
            run.run(program.step, {**program.feeds, **program.settled})
        return [np.asarray(value) for value in run.run(held)]

    return Work(run=lambda: run.run(program.step, program.feeds), outcome=outcome)


def ours(build: Build, threads: int) -> Callable[[], Work]:
    """The program here."""

    def work() -> Work:
        from threadpoolctl import threadpool_limits

        import graphcore as tf

        threadpool_limits(threads)
        options = tf.SessionOptions(inter_op_threads=threads)
        with tf.Graph().as_default():
            return trained(tf, lambda: tf.Session(options=options), build)

    return work


def tensorflow(build: Build, threads: int) -> Callable[[], Work]:
    """The program in TensorFlow."""

    def work() -> Work:
        from tensorflow.compat import v1 as tf

        tf.disable_resource_variables()
        config = tf.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads)
        with tf.Graph().as_default():
            return trained(tf, lambda: tf.Session(config=config), build)

    return work


def row(order: float, title: str, build: Build, limit: float, threads: int) -> Row:
    """The row of a program with so many threads."""
    name = "one thread" if threads == 1 else "two threads"
    return Row(
        order=order + threads / 100,
        title=f"{title}, {name}",
        unit="ms",
        budgets=(Budget(limit, "tensorflow"),),
        ours=ours(build, threads),
        tensorflow=tensorflow(build, threads),
        tolerance=1e-3,
    )


PERCEPTRON, PERCEPTRON_2 = (row(8.2, "perceptron with Adam", perceptron, 1.2, threads) for threads in (1, 2))
ADVERSARIAL, ADVERSARIAL_2 = (row(8.3, "adversarial perceptrons", adversarial, 1.2, threads) for threads in (1, 2))
RECURRENT, RECURRENT_2 = (row(8.4, "LSTM over 28 rows", recurrent, 1.2, threads) for threads in (1, 2))
VARIATIONAL, VARIATIONAL_2 = (row(8.5, "variational autoencoder", variational, 1.2, threads) for threads in (1, 2))
CONVOLUTIONAL, CONVOLUTIONAL_2 = (row(8.6, "5x5 convolutions and dropout", convolutional, 2.0, threads) for threads in (1, 2))
DEEP, DEEP_2 = (row(8.7, "three 3x3 convolutions", deep_convolutional, 2.0, threads) for threads in (1, 2))
TRANSPOSED, TRANSPOSED_2 = (row(8.8, "transposed convolutions", transposed, 2.0, threads) for threads in (1, 2))
