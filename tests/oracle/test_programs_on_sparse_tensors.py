"""Programs on sparse tensors, strings and lookup tables give TensorFlow's numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc
from tests.oracle.conftest import Oracle

PROGRAMS = {
    "words through tables": """
texts = tf.placeholder(tf.string, [None])
table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["the", "cat", "sat"], tf.range(3, dtype=tf.int64)), -1)
words = tf.string_split(tf.strings.lower(tf.regex_replace(texts, "[.,]", "")))
ids = table.lookup(words)
dense = tf.sparse_tensor_to_dense(ids, default_value=-2)
with tf.Session() as sess:
    sess.run(tf.tables_initializer())
    feed = {texts: ["The cat sat.", "A dog, the cat"]}
    found = sess.run(ids, feed)
    outputs["indices"], outputs["values"], outputs["shape"] = found.indices, found.values, found.dense_shape
    outputs["dense"], outputs["size"] = sess.run([dense, table.size()], feed)
    outputs["buckets"] = sess.run(tf.string_to_hash_bucket_fast(texts, 100), feed)
    outputs["numbers"] = sess.run(tf.string_to_number(tf.string_split(["1.5 2 -3e2"]).values))
    outputs["cut"] = sess.run(tf.strings.length(tf.substr(texts, 1, 4)), feed)
""",
    "sparse arithmetic and embeddings": """
x = tf.sparse_placeholder(tf.float32)
ids = tf.SparseTensor([[0, 0], [0, 2], [1, 1]], tf.constant([1, 4, 1], tf.int64), [2, 3])
weights = tf.SparseTensor([[0, 0], [0, 2], [1, 1]], [1.0, 2.0, 0.5], [2, 3])
table = tf.Variable(np.arange(15, dtype=np.float32).reshape(5, 3) / 7)
w = tf.Variable(np.arange(6, dtype=np.float32).reshape(3, 2) / 5)
results = [tf.sparse_tensor_dense_matmul(x, w), tf.sparse_reduce_sum(x, 1), tf.sparse_tensor_to_dense(tf.sparse_add(x, x)),
           tf.sparse_tensor_to_dense(tf.sparse_reorder(tf.sparse_reshape(x, [3, 2]))), tf.sparse_softmax(x).values]
for combiner in ("sum", "mean", "sqrtn"):
    results += [tf.nn.embedding_lookup_sparse(table, ids, None, combiner=combiner), tf.nn.embedding_lookup_sparse(table, ids, weights, combiner=combiner)]
loss = tf.add_n([tf.reduce_sum(tf.square(r)) for r in results])
gradients = [tf.convert_to_tensor(g) for g in tf.gradients(loss, [table, w])]
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    value = tf.SparseTensorValue(np.array([[0, 1], [1, 0], [1, 2]], np.int64), np.array([1.5, -2.0, 3.0], np.float32), np.array([2, 3], np.int64))
    for i, y in enumerate(sess.run(results + gradients, {x: value})):
        outputs["y%d" % i] = y
""",
    "sequences of labels": """
logits = tf.Variable(np.sin(np.arange(60)).reshape(5, 3, 4).astype(np.float32))
labels = tf.SparseTensor([[0, 0], [0, 1], [1, 0], [2, 0], [2, 1]], tf.constant([0, 1, 2, 1, 1]), [3, 2])
lengths = tf.constant([5, 3, 5])
loss = tf.nn.ctc_loss(labels, logits, lengths)
gradient, = tf.gradients(loss, [logits])
(greedy,), scores = tf.nn.ctc_greedy_decoder(logits, lengths)
(beam,), probabilities = tf.nn.ctc_beam_search_decoder(logits, lengths, beam_width=10, merge_repeated=False)
error = tf.edit_distance(tf.SparseTensor(greedy.indices, tf.cast(greedy.values, tf.int32), greedy.dense_shape), labels)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    outputs["loss"], outputs["gradient"], outputs["scores"], outputs["probabilities"] = sess.run([loss, gradient, scores, probabilities])
    outputs["greedy"], outputs["beam"], outputs["error"] = sess.run([greedy.values, tf.sparse_tensor_to_dense(beam), error])
""",
}
SOURCE = "import builtins\nv1 = tf.compat.v1\ntf = v1\nwith tf.Graph().as_default():\n"


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_tensorflows_numbers(oracle: Oracle, name: str) -> None:
    indented = "".join(f"    {line}\n" for line in PROGRAMS[name].splitlines())
    expected = oracle.run(SOURCE + indented).outputs
    found: dict[str, Any] = {}
    with gc.Graph().as_default():
        exec(PROGRAMS[name], {"tf": gc, "np": np, "outputs": found})
    assert sorted(found) == sorted(expected)
    for key, value in expected.items():
        np.testing.assert_allclose(np.asarray(found[key]), value, rtol=1e-4, atol=1e-5, err_msg=key)
