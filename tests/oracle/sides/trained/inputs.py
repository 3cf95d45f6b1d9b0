"""Words, tables, sparse tensors, images and queues on the way to a model."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tests.oracle.sides.trained.building import Trained, dense, graph, half_squared, numbers, trained, v1, variable

__all__ = ["trained"]


@graph
def an_embedding_with_adagrad() -> Trained:
    words = v1.placeholder(tf.int32, [None, 3])
    table = variable("table", 20, 4)
    y = tf.reduce_mean(tf.nn.embedding_lookup(table, words), 1)
    loss = tf.reduce_mean(v1.nn.sparse_softmax_cross_entropy_with_logits(labels=words[:, 0], logits=dense(y, "out", 20)))
    loss += 0.1 * tf.reduce_mean(
        tf.nn.sampled_softmax_loss(variable("sw", 20, 4), variable("sb", 20), tf.cast(words[:, :1], tf.int64), y, 5, 20, seed=4)
    )
    return Trained(loss, v1.train.AdagradOptimizer(0.3).minimize(loss), {words: np.array([[1, 5, 1], [7, 5, 2]], np.int32)})


@graph
def embeddings_in_shards_with_adam() -> Trained:
    words = v1.placeholder(tf.int64, [None])
    shards = [variable(f"shard{i}", 5, 4) for i in range(3)]
    rows = tf.nn.embedding_lookup(shards, words)
    divided = v1.nn.embedding_lookup(shards, words, partition_strategy="div", max_norm=0.5)
    loss = half_squared(rows - 1.0) + half_squared(divided + 1.0)
    loss += tf.reduce_mean(tf.nn.nce_loss(shards[0], variable("bias", 5), words[:, None] % 5, rows, 2, 5))
    return Trained(loss, v1.train.AdamOptimizer(0.1).minimize(loss), {words: np.array([1, 7, 1, 12], np.int64)})


@graph
def a_wide_and_deep_model() -> Trained:
    places, ages = v1.placeholder(tf.string, [None]), v1.placeholder(tf.float32, [None])
    tags = v1.sparse_placeholder(tf.string)
    deep_ids = v1.string_to_hash_bucket_fast(places, 50)
    crossed = tf.strings.join([places, tf.strings.as_string(tf.cast(ages, tf.int32))], separator="_x_")
    hashed = v1.SparseTensor(tags.indices, v1.string_to_hash_bucket_fast(tags.values, 30), tags.dense_shape)
    weights = v1.SparseTensor(tags.indices, tf.cast(tf.strings.length(tags.values), tf.float32), tags.dense_shape)
    deep = tf.concat(
        [
            tf.nn.embedding_lookup(variable("places", 50, 4), deep_ids),
            v1.nn.embedding_lookup_sparse(variable("tags", 30, 3), hashed, weights, combiner="mean"),
            v1.nn.safe_embedding_lookup_sparse([variable("more", 30, 2)], hashed, combiner="sqrtn"),
            tf.one_hot(tf.raw_ops.Bucketize(input=ages, boundaries=[18.0, 30.0, 60.0]), 4),
            ages[:, None] / 100,
        ],
        1,
    )

    deep = tf.ensure_shape(deep, [None, 14])
    wide = tf.gather(variable("crossed", 40, 1), v1.string_to_hash_bucket_strong(crossed, 40, [3, 5]))
    wide += v1.sparse_tensor_dense_matmul(weights, variable("linear", 3, 1))
    logits = wide + dense(tf.nn.relu(dense(deep, "h", 6)), "out", 1)
    loss = tf.reduce_mean(v1.nn.sigmoid_cross_entropy_with_logits(labels=tf.constant([[1.0], [0.0], [1.0], [1.0]]), logits=logits))
    linear = [each for each in v1.trainable_variables() if each.op.name in ("crossed", "linear")]
    others = [each for each in v1.trainable_variables() if each.op.name not in ("crossed", "linear")]
    train = v1.group(
        v1.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01).minimize(loss, var_list=linear),
        v1.train.AdagradOptimizer(0.1).minimize(loss, var_list=others),
    )
    feeds = {
        places: np.array([b"Oslo", b"Rome", b"Oslo", b"Kyoto"], object),
        ages: np.array([17, 30, 44, 75], np.float32),
        tags.indices: np.array([[0, 0], [0, 2], [1, 1], [3, 0]], np.int64),
        tags.values: np.array([b"a", b"bc", b"a", "größer".encode()], object),
        tags.dense_shape: np.array([4, 3], np.int64),
    }
    return Trained(loss, train, feeds, also=[deep_ids, hashed.values])


@graph
def words_through_a_lookup_table() -> Trained:
    texts = v1.placeholder(tf.string, [None])
    initializer = v1.lookup.KeyValueTensorInitializer(["the", "cat", "sat", "dog"], tf.range(4, dtype=tf.int64))
    table = v1.lookup.StaticVocabularyTable(initializer, 2)
    back = v1.lookup.StaticHashTable(v1.lookup.KeyValueTensorInitializer(tf.range(4, dtype=tf.int64), ["the", "cat", "sat", "dog"]), "?")
    words = v1.string_split(tf.strings.lower(tf.strings.regex_replace(texts, "[.,!]+", "")))
    ids = table.lookup(words)
    dense_ids = v1.sparse_tensor_to_dense(ids, default_value=-1)
    present = tf.cast(dense_ids >= 0, tf.float32)
    y = tf.nn.embedding_lookup(variable("table", 6, 4), tf.maximum(dense_ids, 0)) * present[..., None]
    y = tf.reduce_sum(y, 1) / tf.reduce_sum(present, 1, keepdims=True)
    loss = tf.reduce_mean(v1.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 1], logits=dense(y, "out", 2)))
    feeds = {texts: np.array([b"The cat sat.", b"A dog, the DOG barks!"], object)}
    also = [dense_ids, back.lookup(ids).values, table.size()]
    return Trained(loss, v1.train.AdamOptimizer(0.1).minimize(loss), feeds, also=also)


@graph
def a_classifier_of_png_files() -> Trained:
    rows, columns = np.mgrid[:12, :10]
    pixels = np.stack([rows * 20, columns * 25, (rows * columns) % 256], -1).astype(np.uint8)
    contents = v1.placeholder(tf.string, [])
    image = tf.image.convert_image_dtype(tf.image.decode_png(contents, channels=3), tf.float32)
    image = v1.random_crop(image, [8, 8, 3], seed=2)
    image = tf.image.random_flip_left_right(image, seed=3)
    image = tf.image.random_brightness(image, 0.2, seed=4)
    image = tf.image.random_contrast(image, 0.5, 1.5, seed=5)
    image = tf.image.random_saturation(image, 0.5, 1.5, seed=6)
    image = tf.image.random_hue(image, 0.1, seed=7)
    image = tf.image.per_image_standardization(v1.image.resize_images(image, [6, 6]))
    y = tf.nn.relu(v1.nn.conv2d(image[None], variable("k", 3, 3, 3, 4), [1, 2, 2, 1], "SAME"))
    logits = dense(tf.reduce_mean(y, [1, 2]), "out", 3)
    loss = tf.reduce_mean(v1.nn.softmax_cross_entropy_with_logits(labels=tf.one_hot([1], 3), logits=logits))
    return Trained(loss, v1.train.AdamOptimizer(0.01).minimize(loss), {contents: _png(pixels)}, also=[image])


def _png(pixels: Any) -> bytes:
    with tf.Graph().as_default(), v1.Session() as session:
        data: bytes = session.run(tf.io.encode_png(pixels))
        return data


@graph
def boxes_of_a_detector() -> Trained:
    features = v1.placeholder(tf.float32, [1, 6, 6, 4])
    boxes = tf.sigmoid(tf.reshape(v1.nn.conv2d(features, variable("boxes", 1, 1, 4, 4), [1, 1, 1, 1], "SAME"), [36, 4]))
    boxes = tf.concat([boxes[:, :2] * 0.5, boxes[:, :2] * 0.5 + 0.4], 1)
    scores = tf.sigmoid(tf.reshape(v1.nn.conv2d(features, variable("scores", 1, 1, 4, 2), [1, 1, 1, 1], "SAME"), [36, 2]))
    chosen = tf.image.non_max_suppression(boxes, scores[:, 0], 5, 0.4)
    crops = v1.image.crop_and_resize(features, tf.gather(boxes, chosen), tf.zeros_like(chosen), [3, 3])
    kept = tf.image.combined_non_max_suppression(boxes[None, :, None], scores[None], 4, 6, 0.4, 0.3)
    loss = half_squared(dense(tf.reshape(crops, [-1, 36]), "out", 2) - 1.0)
    drawn = v1.image.draw_bounding_boxes(features[..., :3], boxes[None, :2])
    also = [chosen, *kept, drawn]
    return Trained(loss, v1.train.RMSPropOptimizer(0.01).minimize(loss), {features: numbers(1, 6, 6, 4)}, also=also)


@graph
def batches_from_queues() -> Trained:
    queue = v1.FIFOQueue(20, [tf.float32, tf.int32], [[3], []])
    fill = queue.enqueue_many([tf.constant(numbers(4, 3)), tf.constant([0, 1, 1, 0])])
    shuffled = v1.RandomShuffleQueue(20, 1, [tf.float32, tf.int32], [[3], []], seed=5)
    more = shuffled.enqueue_many(queue.dequeue_many(4))
    x, labels = shuffled.dequeue_many(2)
    rest, _ = shuffled.dequeue()
    loss = tf.reduce_mean(v1.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=dense(x, "out", 2)))
    train = v1.train.GradientDescentOptimizer(0.5).minimize(loss + half_squared(rest) * 0.0)
    return Trained(loss, train, before=[fill, more], also=[shuffled.size()])


@graph
def gradients_gathered_in_accumulators() -> Trained:
    x = v1.placeholder(tf.float32, [None, 3])
    w, table = variable("w", 3, 2), variable("table", 5, 2)
    loss = half_squared(tf.matmul(x, w) - tf.nn.embedding_lookup(table, [1, 3, 1, 0]))
    of_w, of_table = tf.gradients(loss, [w, table])
    mean = v1.ConditionalAccumulator(tf.float32, [3, 2])
    rows = v1.SparseConditionalAccumulator(tf.float32, [None, 2])
    give = v1.group(mean.apply_grad(of_w, local_step=99), rows.apply_indexed_slices_grad(of_table, local_step=99))
    taken = rows.take_indexed_slices_grad(2)
    with tf.control_dependencies([loss]):
        apply = v1.group(v1.assign_sub(w, 0.5 * mean.take_grad(2)), v1.scatter_sub(table, taken.indices, 0.5 * taken.values))
    return Trained(loss, apply, {x: numbers(4, 3)}, before=[give, give], also=[mean.num_accumulated()])
