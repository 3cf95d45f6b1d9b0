"""Names of TensorFlow 1 on both sides: the same signatures, and the same values of expressions."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from tests.oracle.conftest import Oracle

VALUES = """
v1 = tf.compat.v1
def values_of(tensors):
    return [np.asarray(value) for value in tensors]
results = []
for expression in arguments["expressions"]:
    with v1.Graph().as_default(), v1.Session() as session:
        try:
            found = eval(expression, {"tf": v1, "np": np, **inputs})
        except Exception as error:
            results.append(repr(error))
            continue
        found = list(found) if isinstance(found, (list, tuple)) else [found]
        results.append([np.asarray(value) for value in session.run([each for each in found if each is not None])])
answer = results
"""
SIGNATURES = """
import inspect
answer = {}
for name in arguments["names"]:
    found = tf.compat.v1
    for part in name.split("."):
        found = getattr(found, part)
    try:
        answer[name] = list(inspect.signature(found).parameters)
    except (TypeError, ValueError):
        pass
"""
RANDOM = np.random.default_rng(7)
INPUTS = {
    "x": RANDOM.normal(size=(3, 4)).astype(np.float32),
    "y": RANDOM.normal(size=(3, 4)).astype(np.float32),
    "cube": RANDOM.normal(size=(2, 3, 4)).astype(np.float32),
    "images": RANDOM.normal(size=(2, 5, 6, 3)).astype(np.float32),
    "kernels": RANDOM.normal(size=(3, 3, 3, 2)).astype(np.float32),
    "n": np.array([3, 1, 2, 1], np.int32),
    "labels": np.array([1, 0, 3], np.int32),
    "p": np.array([[0.1, 0.2, 0.3, 0.4], [0.7, 0.1, 0.1, 0.1], [0, 0, 1, 0]], np.float32),
    "z": (RANDOM.normal(size=3) + 1j * RANDOM.normal(size=3)).astype(np.complex64),
}
EXPRESSIONS = [
    "tf.constant(n) / 2",
    "tf.constant(n) % 2",
    "tf.div(n, 2)",
    "tf.truediv(n, 2)",
    "tf.abs(tf.constant(z))",
    "[tf.real(z), tf.imag(z), tf.angle(z), tf.conj(z)]",
    "tf.matmul(cube, cube, transpose_b=True)",
    "tf.tensordot(cube, cube, [[0, 2], [0, 2]])",
    "tf.tensordot(x, tf.transpose(y), 1)",
    "tf.einsum('bij,bkj->bik', cube, cube)",
    "tf.reduce_logsumexp(cube, [1])",
    "tf.reduce_mean(cube, reduction_indices=[0, 2], keep_dims=True)",
    "tf.reduce_all(x > 0, 1)",
    "tf.count_nonzero(n - 1)",
    "tf.bincount(n)",
    "tf.confusion_matrix(n, [3, 3, 2, 1])",
    "tf.argmax(x, dimension=1)",
    "tf.one_hot(labels, 4, on_value=2.0, off_value=-1.0, axis=0)",
    "tf.split(x, [1, 3], 1)",
    "tf.split(x, 2, axis=1)",
    "tf.unstack(cube, axis=1)",
    "tf.pad(x, [[1, 0], [0, 2]], constant_values=1.5)",
    "tf.pad(x, [[1, 1], [2, 2]], 'REFLECT')",
    "tf.boolean_mask(x, [True, False, True])",
    "tf.sequence_mask(n, 4, tf.float32)",
    "tf.meshgrid([1, 2, 3], [4, 5])",
    "tf.meshgrid([1, 2, 3], [4, 5], indexing='ij')",
    "tf.eye(2, 3, batch_shape=[2])",
    "tf.range(5)",
    "tf.range(1.0, 4.0, 0.5)",
    "tf.gather(x, [2, 0], axis=1)",
    "tf.reverse(x, [1])",
    "tf.reverse_sequence(cube, [1, 3], 1, 0)",
    "tf.squeeze(tf.expand_dims(x, 1), 1)",
    "tf.transpose(cube)",
    "tf.zeros_like(x, tf.int32)",
    "tf.where(x > 0)",
    "tf.where(x > 0, x, y)",
    "tf.matrix_transpose(cube)",
    "tf.strided_slice(x, [0, 1], [3, 4], [2, 2])",
    "tf.slice(x, [1, 0], [-1, 2])",
    "tf.saturate_cast([-1.0, 300.0], tf.uint8)",
    "tf.clip_by_value(x, -0.5, 0.5)",
    "tf.clip_by_norm(x, 1.0, [1])",
    "tf.clip_by_average_norm(x, 0.1)",
    "tf.clip_by_global_norm([x, y], 1.0)[0]",
    "tf.global_norm([x, None, y])",
    "tf.norm(x, axis=1)",
    "tf.norm(x, ord=1, axis=0, keep_dims=True)",
    "tf.cumsum(x, 1, reverse=True)",
    "tf.logical_xor(x > 0, y > 0)",
    "tf.to_int32([1.7, -1.7])",
    "tf.unsorted_segment_mean(x, [0, 1, 0], 3)",
    "tf.sparse_segment_sum(x, [0, 2], [0, 0])",
    "tf.sparse_to_dense([[0, 1], [2, 0]], [3, 2], [5, 6])",
    "tf.space_to_depth(images[:, :4], 2)",
    "tf.extract_image_patches(images, [1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], 'VALID')",
    "tf.nn.softmax(x, dim=0)",
    "tf.nn.log_softmax(cube, axis=1)",
    "[tf.nn.relu(x), tf.nn.relu6(x * 6), tf.nn.elu(x), tf.nn.selu(x), tf.nn.softplus(x), tf.nn.softsign(x), tf.nn.leaky_relu(x)]",
    "[tf.nn.crelu(x), tf.nn.swish(x), tf.log_sigmoid(x), tf.nn.l2_loss(x)]",
    "tf.nn.l2_normalize(x, 1)",
    "tf.nn.softmax_cross_entropy_with_logits(labels=p, logits=x)",
    "tf.nn.softmax_cross_entropy_with_logits_v2(p, x)",
    "tf.gradients(tf.nn.softmax_cross_entropy_with_logits_v2(labels=tf.nn.softmax(y_), logits=y_), y_) if (y_ := tf.constant(y)) is not None else 0",
    "tf.gradients(tf.nn.softmax_cross_entropy_with_logits(labels=tf.nn.softmax(y_), logits=y_), y_) if (y_ := tf.constant(y)) is not None else 0",
    "tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x)",
    "tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[[0, 1, 2], [3, 0, 1]], logits=cube)",
    "tf.nn.sigmoid_cross_entropy_with_logits(labels=p, logits=x)",
    "tf.nn.weighted_cross_entropy_with_logits(p, x, 2.0)",
    "tf.nn.log_poisson_loss(p, x, True)",
    "tf.nn.top_k(x, 2)",
    "tf.nn.in_top_k(x, labels, 2)",
    "tf.nn.xw_plus_b(x, np.ones([4, 2], np.float32), [1.0, 2.0])",
    "tf.nn.bias_add(x, [1.0, 2.0, 3.0, 4.0])",
    "tf.nn.conv2d(images, kernels, [1, 2, 2, 1], 'SAME')",
    "tf.nn.conv2d(images, filter=kernels, strides=[1, 1, 1, 1], padding='VALID', dilations=[1, 2, 2, 1])",
    "tf.nn.conv2d_transpose(images, np.ones([2, 2, 4, 3], np.float32), [2, 10, 12, 4], [1, 2, 2, 1])",
    "tf.nn.conv1d(cube, np.ones([2, 4, 3], np.float32), 2, 'SAME')",
    "tf.nn.depthwise_conv2d(images, kernels, [1, 1, 1, 1], 'SAME')",
    "tf.nn.separable_conv2d(images, kernels, np.ones([1, 1, 6, 2], np.float32), [1, 1, 1, 1], 'SAME')",
    "tf.nn.atrous_conv2d(images, kernels, 2, 'SAME')",
    "tf.nn.max_pool(images, [1, 2, 2, 1], [1, 2, 2, 1], 'SAME')",
    "tf.nn.avg_pool(images, ksize=[1, 3, 3, 1], strides=[1, 1, 1, 1], padding='VALID')",
    "tf.nn.moments(images, [0, 1, 2])",
    "tf.nn.moments(x, [0], keep_dims=True)",
    "tf.nn.weighted_moments(x, [0], p)",
    "tf.nn.normalize_moments(*tf.nn.sufficient_statistics(x, [0]))",
    "tf.nn.batch_normalization(x, np.float32([0.5] * 4), np.float32([1.0] * 4), None, np.float32([2.0] * 4), 1e-3)",
    "tf.nn.batch_norm_with_global_normalization(images, *np.float32([[0.1] * 3, [1.0] * 3, [0.2] * 3, [2.0] * 3]), 1e-3, True)",
    "tf.nn.fused_batch_norm(images, [1.0] * 3, [0.0] * 3)",
    "tf.nn.lrn(images, 1, bias=1.0, alpha=0.5, beta=0.75)",
    "tf.nn.embedding_lookup(x, [[2, 0], [1, 1]])",
    "tf.nn.embedding_lookup([x, y], [0, 1, 4, 5])",
    "tf.nn.embedding_lookup([x, y], [0, 1, 4, 5], partition_strategy='div')",
    "tf.nn.embedding_lookup(x, [2, 0], max_norm=0.5)",
    "tf.nn.dropout(x, 1.0)",
    "tf.nn.nce_loss(y, np.float32([0.1, 0.2, 0.3]), np.int64([[0], [1], [2]]), x, 2, 3, sampled_values=(tf.constant([1, 2]), tf.constant([[0.5], [0.4], [0.3]]), tf.constant([0.2, 0.1])))",
    "tf.nn.sampled_softmax_loss(y, np.float32([0.1, 0.2, 0.3]), np.int64([[0], [1], [2]]), x, 2, 3, sampled_values=(tf.constant([1, 2]), tf.constant([[0.5], [0.4], [0.3]]), tf.constant([0.2, 0.1])))",
    "tf.nn.zero_fraction(p)",
    "tf.matrix_diag([1.0, 2.0], k=1)",
    "tf.matrix_diag_part(x)",
    "tf.tuple([tf.constant(x), tf.constant(y)])",
    "tf.losses.mean_squared_error(x, y)",
    "tf.losses.mean_squared_error(x, y, weights=p)",
    "tf.losses.mean_squared_error(x, y, weights=[[1.0], [0.0], [2.0]], reduction=tf.losses.Reduction.SUM_OVER_BATCH_SIZE)",
    "tf.losses.absolute_difference(x, y, reduction=tf.losses.Reduction.NONE)",
    "tf.losses.huber_loss(x, y, weights=2.0, delta=0.5)",
    "tf.losses.log_loss(p, p)",
    "tf.losses.hinge_loss(p, x)",
    "tf.losses.cosine_distance(x, y, axis=1)",
    "tf.losses.sigmoid_cross_entropy(p, x, label_smoothing=0.1)",
    "tf.losses.softmax_cross_entropy(p, x, weights=np.float32([1, 0, 2]), label_smoothing=0.1)",
    "tf.losses.sparse_softmax_cross_entropy(labels, x)",
    "[tf.losses.mean_squared_error(x, y), tf.losses.get_total_loss()]",
    "tf.math.log_softmax(x)",
    "tf.linalg.transpose(cube)",
    "[tf.linalg.expm(size * cube[:, :, :3]) for size in (0.01, 0.5, 1, 9)]",
    "tf.linalg.expm(tf.complex(x[:, :3], y[:, :3]))",
    "[tf.linalg.expm(tf.constant(size * cube[:, :, :3], tf.float64)) for size in (0.001, 0.1, 0.4, 0.9, 9)]",
    "[tf.gradients(tf.linalg.expm(a), a)[0] for a in [tf.constant(cube[:, :, :3])]]",
    "tf.linalg.sqrtm(cube[:, :, :3] + 4 * np.eye(3, dtype=np.float32))",
    "[tf.gradients(tf.matrix_square_root(a), a)[0] for a in [tf.constant(cube[:, :, :3] + 4 * np.eye(3, dtype=np.float32))]]",
    "tf.linalg.sqrtm(np.diag([-1.0, 4.0]))",
    "tf.linalg.logm(tf.complex(x[:, :3], y[:, :3]))",
    "tf.linalg.logm(np.diag([-1.0, 4.0]).astype(np.complex64))",
    "tf.linalg.lu(cube[:, :, :3], output_idx_type=tf.int64)",
    "tf.nn.dilation2d(images, images[0, :2, :3], [1, 2, 1, 1], [1, 1, 2, 1], 'SAME')",
    "tf.nn.dilation2d(images, filters=images[0, :2, :3], strides=[1, 1, 2, 1], dilations=[1, 2, 1, 1], padding='VALID')",
    "tf.nn.erosion2d(images, images[0, :2, :3], [1, 1, 2, 1], [1, 2, 1, 1], 'SAME')",
    "[tf.gradients(tf.nn.dilation2d(a, images[0, :2, :3], [1, 1, 2, 1], [1, 2, 1, 1], 'SAME'), a)[0] for a in [tf.constant(images)]]",
]
TENSORFLOW_LATER = {
    "layout",
    "bad_indices_policy",
    "index_type",
    "output_type",
    "grad_a",
    "grad_b",
    "_sentinel",
    "align",
    "sparse_gradient",
    "stateful",
}
"""Arguments that TensorFlow got after 1.15, and one of 1.15 that it lost."""
OTHERS = {
    "name_scope", "device", "Session", "Variable", "function", "load", "save", "gradients", "cond", "case", "while_loop", "convert_to_tensor",
    "import_graph_def", "enable_resource_variables", "is_variable_initialized", "set_random_seed", "group",
    "print", "Print", "random_uniform", "random_normal", "truncated_normal", "get_collection_ref", "norm", "einsum", "meshgrid", "argmax",
    "GPUOptions", "GraphOptions", "ConfigProto", "OptimizerOptions", "InteractiveSession", "app.run", "control_dependencies",
    "tensor_scatter_update", "linspace", "lin_space", "multinomial", "check_numerics",
}  # fmt: skip
"""Names whose signatures are their own: by design, or because TensorFlow's forms say less."""


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def ours(expression: str) -> list[Any]:
    with gc.Graph().as_default(), gc.Session() as session:
        found = eval(expression, {"tf": gc, "np": np, **INPUTS})
        found = list(found) if isinstance(found, list | tuple) else [found]
        return [np.asarray(value) for value in session.run([each for each in found if each is not None])]


@pytest.fixture(scope="module")
def theirs(oracle: Oracle) -> dict[str, list[Any]]:
    return dict(zip(EXPRESSIONS, oracle.run(VALUES, INPUTS, expressions=EXPRESSIONS).answer, strict=True))


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_has_tensorflows_value(theirs: dict[str, list[Any]], expression: str) -> None:
    assert not isinstance(theirs[expression], str), theirs[expression]
    found = ours(expression)
    assert [(value.dtype, value.shape) for value in found] == [(value.dtype, value.shape) for value in theirs[expression]]
    for value, expected in zip(found, theirs[expression], strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-6)


def functions_of(path: str) -> dict[str, Any]:
    module = getattr(gc, path) if path else gc
    start = f"{path}." if path else ""
    return {start + name: getattr(module, name) for name in dir(module) if name[:1].islower() or path}


@pytest.mark.parametrize("path", ["", "nn", "math", "losses"])
def test_functions_have_tensorflows_parameters_in_its_order(oracle: Oracle, path: str) -> None:
    known = oracle.run("answer = sorted(dir(tf.compat.v1" + (f".{path}" if path else "") + "))").answer
    mine = {name: each for name, each in functions_of(path).items() if inspect.isfunction(each) and name.rpartition(".")[2] in known}
    signatures = oracle.run(SIGNATURES, names=sorted(mine)).answer
    wrong = []
    for name, parameters in signatures.items():
        if name in OTHERS or name.rpartition(".")[2] in OTHERS or "args" in parameters or "kwargs" in parameters:
            continue
        expected = [each for each in parameters if each not in TENSORFLOW_LATER]
        found = [each for each in inspect.signature(mine[name]).parameters if each not in TENSORFLOW_LATER]
        if found != expected:
            wrong.append(f"{name}({', '.join(found)}) should be ({', '.join(expected)})")
    assert len(signatures) > 10
    assert not wrong, "\n".join(wrong)
