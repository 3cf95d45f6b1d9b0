"""Images, generators and optimizers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from tests.oracle.sides.trained.building import Trained, dense, graph, half_squared, numbers, trained, v1, variable, zeros

__all__ = ["trained"]


def _batch_norm(x: Any, name: str) -> Any:
    """Batch normalisation in training, with moving averages that UPDATE_OPS renew."""
    wide = int(x.shape[-1])
    scale, offset = v1.get_variable(f"{name}_scale", [wide], initializer=v1.ones_initializer()), zeros(f"{name}_offset", wide)
    moving = [v1.get_variable(f"{name}_{part}", [wide], initializer=v1.ones_initializer(), trainable=False) for part in ("mean", "var")]
    y, mean, variance = v1.nn.fused_batch_norm(x, scale, offset)
    for old, new in zip(moving, (mean, variance), strict=True):
        v1.add_to_collection(v1.GraphKeys.UPDATE_OPS, v1.assign_sub(old, (old - new) * 0.1))
    return y


@graph
def convolutions_with_batch_norm_and_adam() -> Trained:
    x, labels = v1.placeholder(tf.float32, [None, 8, 8, 2]), v1.placeholder(tf.int32, [None])
    y = tf.nn.relu(_batch_norm(v1.nn.conv2d(x, variable("k1", 3, 3, 2, 4), [1, 1, 1, 1], "SAME"), "bn1"))
    y = v1.nn.max_pool(y, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    y = tf.nn.relu(_batch_norm(v1.nn.depthwise_conv2d(y, variable("k2", 3, 3, 4, 2), [1, 1, 1, 1], "VALID"), "bn2"))
    y = v1.nn.dropout(tf.reshape(y, [-1, 2 * 2 * 8]), rate=0.25)
    loss = tf.reduce_mean(v1.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=dense(y, "out", 3)))
    with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):
        train = v1.train.AdamOptimizer(0.01).minimize(loss)
    return Trained(loss, train, {x: numbers(6, 8, 8, 2), labels: np.arange(6, dtype=np.int32) % 3}, also=v1.global_variables())


@graph
def transposed_convolutions_with_ftrl() -> Trained:
    x = v1.placeholder(tf.float32, [4, 3, 3, 2])
    y = tf.nn.leaky_relu(v1.nn.conv2d_transpose(x, variable("k1", 3, 3, 4, 2), [4, 6, 6, 4], [1, 2, 2, 1]))
    y = v1.image.resize_bilinear(y, [7, 7], align_corners=True)
    y = tf.tanh(v1.nn.atrous_conv2d(y, variable("k2", 2, 2, 4, 1), 2, "SAME"))
    loss = half_squared(y - numbers(4, 7, 7, 1, seed=1)) + 1e-3 * tf.nn.l2_loss(v1.trainable_variables()[0])
    optimizer = v1.train.FtrlOptimizer(0.1, l1_regularization_strength=0.001, l2_regularization_strength=0.01)
    return Trained(loss, optimizer.minimize(loss), {x: numbers(4, 3, 3, 2)})


@graph
def two_adams_of_a_gan() -> Trained:
    noise, real = v1.placeholder(tf.float32, [None, 4]), v1.placeholder(tf.float32, [None, 6])

    def discriminator(x: Any) -> Any:
        with v1.variable_scope("D", reuse=v1.AUTO_REUSE):
            return dense(tf.nn.relu(dense(x, "h", 8)), "out", 1)

    with v1.variable_scope("G"):
        fake = tf.tanh(dense(tf.nn.relu(dense(noise, "h", 8)), "out", 6))
    on_real, on_fake = discriminator(real), discriminator(fake)
    entropy = v1.nn.sigmoid_cross_entropy_with_logits
    loss_d = tf.reduce_mean(entropy(labels=tf.ones_like(on_real), logits=on_real) + entropy(labels=tf.zeros_like(on_fake), logits=on_fake))
    loss_g = tf.reduce_mean(entropy(labels=tf.ones_like(on_fake), logits=on_fake))
    of_g, of_d = (v1.get_collection(v1.GraphKeys.TRAINABLE_VARIABLES, scope) for scope in ("G", "D"))
    step_d = v1.train.AdamOptimizer(0.01, beta1=0.5).minimize(loss_d, var_list=of_d)
    step_g = v1.train.AdamOptimizer(0.01, beta1=0.5).minimize(loss_g, var_list=of_g)
    return Trained(loss_d, step_g, {noise: numbers(5, 4), real: numbers(5, 6, seed=1)}, before=[step_d], also=[loss_g])


@graph
def noise_of_an_autoencoder() -> Trained:
    x = v1.placeholder(tf.float32, [None, 10])
    hidden = tf.nn.softplus(dense(x, "encoder", 8))
    mean, log_variance = tf.split(dense(hidden, "latent", 4), 2, axis=1)
    z = mean + tf.exp(log_variance / 2) * v1.random_normal(tf.shape(mean), seed=3)
    logits = dense(tf.nn.elu(dense(z, "decoder", 8)), "out", 10)
    likelihood = tf.reduce_sum(v1.nn.sigmoid_cross_entropy_with_logits(labels=tf.sigmoid(x), logits=logits), 1)
    divergence = -0.5 * tf.reduce_sum(1 + log_variance - mean**2 - tf.exp(log_variance), 1)
    loss = tf.reduce_mean(likelihood + divergence)
    return Trained(loss, v1.train.RMSPropOptimizer(0.01, momentum=0.9, centered=True).minimize(loss), {x: numbers(7, 10)})


@graph
def a_schedule_with_averages_and_clipping() -> Trained:
    x = v1.placeholder(tf.float32, [None, 5])
    step = v1.train.get_or_create_global_step()
    rate = v1.train.exponential_decay(0.1, step, 2, 0.5, staircase=True) + v1.train.piecewise_constant(step, [1, 3], [0.01, 0.02, 0.03])
    loss = half_squared(dense(tf.nn.selu(dense(x, "h", 6)), "out", 2) - 1.0)
    loss += v1.train.polynomial_decay(0.1, step, 10) * tf.add_n([tf.nn.l2_loss(each) for each in v1.trainable_variables()])
    optimizer = v1.train.MomentumOptimizer(rate, 0.9, use_nesterov=True)
    gradients, variables = zip(*optimizer.compute_gradients(loss), strict=True)
    clipped, norm = tf.clip_by_global_norm(gradients, 0.5)
    step_taken = optimizer.apply_gradients(zip(clipped, variables, strict=True), global_step=step)
    averages = v1.train.ExponentialMovingAverage(0.9)
    with tf.control_dependencies([step_taken]):
        train = averages.apply(v1.trainable_variables())
    return Trained(loss, train, {x: numbers(4, 5)}, also=[norm, rate])


@graph
def one_of_each_optimizer() -> Trained:
    x = v1.placeholder(tf.float32, [None, 3])
    makers: list[Callable[[], Any]] = [
        lambda: v1.train.AdadeltaOptimizer(0.5),
        lambda: v1.train.AdagradDAOptimizer(0.1, v1.train.get_or_create_global_step(), l2_regularization_strength=0.1),
        lambda: v1.train.ProximalAdagradOptimizer(0.1, l1_regularization_strength=0.01),
        lambda: v1.train.ProximalGradientDescentOptimizer(0.1, l2_regularization_strength=0.01),
        lambda: v1.train.GradientDescentOptimizer(0.1),
        lambda: v1.train.AdagradOptimizer(0.1),
        lambda: v1.train.MomentumOptimizer(0.1, 0.9),
        lambda: v1.train.FtrlOptimizer(0.1, l2_shrinkage_regularization_strength=0.01),
    ]
    losses, steps = [], []
    for i, make in enumerate(makers):
        dense_part, table = variable(f"w{i}", 3, 2), variable(f"e{i}", 5, 2)
        rows = tf.nn.embedding_lookup(table, [0, 3, 3])
        losses.append(half_squared(tf.matmul(x, dense_part)[:3] - rows - 1.0))
        steps.append(make().minimize(losses[-1], var_list=[dense_part, table]))
    step = v1.assign_add(v1.train.get_or_create_global_step(), 1)
    return Trained(tf.stack(losses), v1.group(*steps, getattr(step, "op", step)), {x: numbers(4, 3)}, also=v1.global_variables())


@graph
def three_dimensions_and_other_layers() -> Trained:
    x = v1.placeholder(tf.float32, [2, 4, 4, 4, 2])
    y = tf.nn.relu6(tf.nn.conv3d(x, variable("k", 2, 2, 2, 2, 3), [1, 1, 1, 1, 1], "SAME"))
    y = tf.nn.max_pool3d(y, 2, 2, "VALID") + tf.nn.avg_pool3d(y, 2, 2, "VALID")
    y = tf.reshape(y, [2, 4, 2, 3])
    y = tf.nn.lrn(y, 2, bias=1.0, alpha=0.1, beta=0.5)
    y = tf.pad(y, [[0, 0], [1, 1], [1, 1], [0, 0]], "REFLECT")
    y = v1.nn.separable_conv2d(y, variable("d", 2, 2, 3, 2), variable("p", 1, 1, 6, 4), [1, 1, 1, 1], "VALID")
    mean, var = tf.nn.moments(y, [1, 2], keepdims=True)
    y = tf.nn.batch_normalization(y, mean, var, zeros("beta", 4), None, 1e-3)
    y = v1.depth_to_space(y, 2)
    y = v1.image.resize_nearest_neighbor(y, [5, 4])
    alpha = variable("alpha", 1)
    y = tf.maximum(0.0, y) + alpha * tf.minimum(0.0, y)
    loss = half_squared(y - 0.5) + tf.reduce_mean(tf.nn.local_response_normalization(y)) + tf.reduce_mean(tf.nn.top_k(y[..., 0], 2).values)
    return Trained(loss, v1.train.AdamOptimizer(0.01).minimize(loss), {x: numbers(2, 4, 4, 4, 2)})


@graph
def a_process_of_matrices() -> Trained:
    x, y = numbers(6, 2), numbers(6, 1, seed=2)
    length, noise = v1.get_variable("length", initializer=0.3), v1.get_variable("noise", initializer=-0.5)
    squares = tf.reduce_sum(tf.square(x[:, None] - x[None]), -1)
    covariance = tf.exp(-squares / tf.exp(length)) + (1e-2 + tf.nn.softplus(noise)) * tf.eye(6)
    factor = tf.linalg.cholesky(covariance)
    solved = tf.linalg.triangular_solve(factor, y)
    loss = tf.reduce_sum(solved**2) / 2 + tf.reduce_sum(tf.math.log(tf.linalg.diag_part(factor)))
    return Trained(loss, v1.train.AdamOptimizer(0.1).minimize(loss), also=[tf.linalg.cholesky_solve(factor, y)])
