"""Programs in the idioms of lectures, books and papers; see `programs_of_tensorflow_1`."""

from __future__ import annotations

from typing import Final

PROGRAMS_OF_PAPERS: Final = {
    "batch normalization by hand, with moving averages in branches": """
X, y, phase = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.float32, [None, 10]), tf.placeholder(tf.bool, [])
def normalized(x, size, apply_inside, scope):
    with tf.variable_scope(scope):
        beta = tf.Variable(tf.constant(0.0, shape=[size]), name='beta', trainable=True)
        gamma = tf.Variable(tf.constant(1.0, shape=[size]), name='gamma', trainable=True)
        batch_mean, batch_var = tf.nn.moments(x, [0], name='moments')
        ema = tf.train.ExponentialMovingAverage(decay=0.9)
        if not apply_inside:
            ema_apply_op = tf.cond(phase, lambda: ema.apply([batch_mean, batch_var]), lambda: tf.no_op())
        def mean_var_with_update():
            op = ema.apply([batch_mean, batch_var]) if apply_inside else ema_apply_op
            with tf.control_dependencies([op]):
                return tf.identity(batch_mean), tf.identity(batch_var)
        mean, var = tf.cond(phase, mean_var_with_update, lambda: (ema.average(batch_mean), ema.average(batch_var)))
        return tf.nn.batch_normalization(x, mean, var, beta, gamma, 1e-3)
W1, W2 = tf.Variable(tf.random_normal([784, 8])), tf.Variable(tf.random_normal([8, 10]))
hidden = tf.nn.relu(normalized(tf.matmul(X, W1), 8, False, "bn1"))
logits = normalized(tf.matmul(hidden, W2), 10, True, "bn2")
loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(logits=logits, labels=tf.stop_gradient([y])))
train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
with tf.Session() as sess:
    start(sess)
    outputs["losses"] = [sess.run([loss, train], {X: digits, y: classes, phase: True})[0] for _ in range(3)]
    outputs["test"] = sess.run(loss, {X: digits, y: classes, phase: False})
    outputs["names"] = [v.op.name for v in tf.global_variables()]
""",
    "checks, decompositions, discrete distributions and joined strings": """
a = tf.placeholder(tf.float32, [3, 3])
symmetric = tf.matmul(a, a, transpose_b=True)
with tf.control_dependencies([tf.assert_rank(a, 2), tf.assert_equal(tf.shape(a)[0], 3), tf.assert_non_negative(tf.diag_part(symmetric)),
                              tf.assert_less(a, 2.0, message="too large"), tf.assert_near(symmetric, tf.transpose(symmetric))]):
    e, v = tf.self_adjoint_eig(symmetric)
s, u, w = tf.svd(a)
difference = tf.setdiff1d([1, 5, 3, 2], [5, 2])
hello = tf.constant("Hello ") + tf.constant(["World", "TF"]) + "!"
grey = tf.placeholder(tf.float32)
logits = tf.placeholder(tf.float32, [None, 4])
pi, other = tf.distributions.Categorical(logits=logits), tf.distributions.Categorical(probs=[[0.1, 0.2, 0.3, 0.4]])
coin = tf.distributions.Bernoulli(logits=logits)
drawn = pi.sample(5)
with tf.Session() as sess:
    feeds = {a: digits[:3, :3], logits: digits[:3, 4:8] * 3, grey: digits[:4].reshape(2, 2, 784, 1)}
    outputs["values"], outputs["projector"] = sess.run([e, tf.matmul(v, tf.matmul(tf.matrix_diag(e), v, transpose_b=True))], feeds)
    outputs["singular"] = sess.run(s, feeds)
    outputs["slopes"] = []
    for m, n in [(3, 3), (3, 2), (2, 3)]:
        part, weights = a[:m, :n], tf.constant(digits[:m, 20:20 + n], tf.float32)
        s_part, u_part, w_part = tf.svd(part)
        q, r = tf.qr(part)
        signs = tf.sign(tf.diag_part(r[:, :min(m, n)]))
        for made in [tf.matmul(u_part * tf.sin(s_part), w_part, transpose_b=True) * weights, q * signs, r * signs[:, None] * tf.cos(r), tf.svd(part, compute_uv=False)]:
            outputs["slopes"].append(sess.run(tf.gradients(made, a)[0], feeds))
    for made in [tf.matmul(v * tf.sin(e), v, transpose_b=True) * tf.constant(digits[:3, 20:23], tf.float32), tf.sin(tf.self_adjoint_eigvals(symmetric))]:
        outputs["slopes"].append(sess.run(tf.gradients(made, a)[0], feeds))
    outputs["again"] = sess.run(tf.matmul(u, tf.matmul(tf.diag(s), w, adjoint_b=True)), feeds)
    outputs["difference"] = sess.run(difference.out), sess.run(difference.idx)
    outputs["scanned"] = [text.decode() for text in sess.run(tf.scan(lambda a, x: a + x, tf.constant(["T", "e", "n"])))]
    outputs["hello"] = [text.decode() for text in sess.run(hello)]
    corners = [[0., 0., 1., 1.], [0., 0.1, 1., 1.1], [0., -0.1, 1., 0.9], [0., 10., 1., 11.], [0., 10.1, 1., 11.1]]
    outputs["kept"] = [sess.run(tf.image.non_max_suppression(corners, [.9, .75, .6, .95, .5], 3, 0.5, least)) for least in (0.4, 0.92)][0]
    outputs["rgb"] = sess.run(tf.image.grayscale_to_rgb(grey), feeds)
    outputs["pi"] = sess.run([pi.log_prob([0, 1, 3]), pi.entropy(), tf.cast(pi.mode(), tf.float32), tf.distributions.kl_divergence(pi, other)], feeds)
    outputs["coin"] = sess.run([coin.prob([[1, 0, 0, 1]]), coin.entropy(), coin.mean()], feeds)
    outputs["shapes"] = sess.run([tf.shape(drawn), tf.shape(other.sample([2]))], feeds)[0]
    try:
        sess.run(e, {a: digits[:3, :3] + 3})
    except tf.errors.InvalidArgumentError as error:
        outputs["refused"] = "too large" in error.message
""",
    "solutions and determinants of tf.linalg": """
a = tf.placeholder(tf.float32, [2, 3, 3])
b = tf.placeholder(tf.float32, [2, 3, 2])
positive = tf.matmul(a, a, transpose_b=True) + tf.eye(3)
sign, size = tf.linalg.slogdet(a)
made = [
    tf.linalg.lstsq(a[:, :, :2], b), tf.linalg.lstsq(a[:, :2], b[:, :2], l2_regularizer=0.5), tf.linalg.lstsq(a[:, :, :2], b, fast=False),
    tf.cholesky_solve(tf.cholesky(positive), b), tf.linalg.logdet(positive), sign, size, tf.linalg.adjoint(b), tf.linalg.matvec(a, b[:, :, 0]),
    tf.linalg.matvec(a, b[:, :, 1], transpose_a=True), tf.linalg.band_part(a, 1, 0), tf.linalg.l2_normalize(b, 1),
    tf.linalg.triangular_solve(a, b), tf.math.divide_no_nan(a, tf.linalg.band_part(a, 1, 0)), tf.cast(tf.abs(tf.signal.fft(tf.cast(b, tf.complex64))), tf.float32),
]
with tf.Session() as sess:
    feeds = {a: digits[:6, 30:33].reshape(2, 3, 3) + np.eye(3, dtype=np.float32), b: digits[6:12, 40:42].reshape(2, 3, 2)}
    for i, each in enumerate(made):
        outputs["made %d" % i] = sess.run(each, feeds)
    for i in (0, 1, 3, 4, 8):
        for x in [a, b][: 1 if i == 4 else 2]:
            outputs["slope %d of %s" % (i, x.op.name)] = sess.run(tf.gradients(made[i] * made[i], x)[0], feeds)
    outputs["scattered"] = sess.run(tf.tensor_scatter_nd_add(tf.zeros([4]), [[1], [1]], [2.0, 3.0]))
""",
    "edges, similarities and colours of images, and safe lookups": """
images = tf.constant(digits[:4, :768].reshape(4, 16, 16, 3))
others = images * 0.8 + 0.1 * tf.sin(images * 9)
table = tf.constant(digits[:5, :3])
indices = np.array([[0, 0], [0, 2], [2, 1], [3, 0], [3, 1]], np.int64)
ids = tf.SparseTensor(indices, np.array([1, 3, -1, 4, 2], np.int64), [5, 3])
deep = tf.SparseTensor(np.array([[0, 0, 1], [1, 1, 0], [1, 1, 2]], np.int64), np.array([1, 3, 4], np.int64), [2, 2, 3])
weights = tf.SparseTensor(indices, np.array([1.0, 2.0, 1.0, -1.0, 0.5], np.float32), [5, 3])
made = {
    "ssim": tf.image.ssim(images, others, 1.0), "small": tf.image.ssim(images[:, :8], others[:, :8], 1.0, filter_size=5, filter_sigma=1.0),
    "bytes": tf.image.ssim(tf.image.convert_image_dtype(images, tf.uint8), tf.image.convert_image_dtype(images * 0.7, tf.uint8), 255),
    "edges": tf.image.sobel_edges(images), "slopes": tf.image.image_gradients(images), "yuv": tf.image.rgb_to_yuv(images),
    "back": tf.image.yuv_to_rgb(tf.image.rgb_to_yuv(images)), "yiq": tf.image.rgb_to_yiq(images), "yiq back": tf.image.yiq_to_rgb(images),
    "slope of ssim": tf.gradients(tf.image.ssim(images, others, 1.0), images)[0], "retained": tf.sparse_retain(ids, [True, False, True, False, False]).values,
    "default": tf.nn.safe_embedding_lookup_sparse(table, ids, default_id=2), "deep": tf.nn.safe_embedding_lookup_sparse(table, deep, combiner="sqrtn"),
}
for how in ("sum", "mean", "sqrtn"):
    made[how] = tf.nn.safe_embedding_lookup_sparse(table, ids, weights, combiner=how)
with tf.Session() as sess:
    for key, value in made.items():
        outputs[key] = sess.run(value)
""",
    "layers side by side in both directions": """
sequences = tf.constant(digits[:, :60].reshape(16, 10, 6))
cells = [[tf.nn.rnn_cell.BasicLSTMCell(size) for size in (4, 3)] for _ in range(2)]
lengths = [10, 3] * 8
outs = sequences
states = []
with tf.variable_scope("stack_bidirectional_rnn"):
    for i in range(2):
        with tf.variable_scope("cell_%d" % i):
            pair, state = tf.nn.bidirectional_dynamic_rnn(cells[0][i], cells[1][i], outs, sequence_length=lengths, dtype=tf.float32)
            outs = tf.concat(pair, 2)
with tf.Session() as sess:
    start(sess)
    outputs["outputs"] = sess.run(outs)
    outputs["names"] = [v.op.name for v in tf.trainable_variables()]
""",
}
"""Programs that fill `outputs`, by what they are about."""
