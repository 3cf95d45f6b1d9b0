"""Programs in the idioms of TensorFlow 1, from networks to reinforcement learning.

`start(sess)` initializes variables and gives the trainable ones values of its own; `digits` [16, 784] and `classes` [16, 10] are data.
"""

from __future__ import annotations

from typing import Final

IDIOMS: Final = {
    "an autoencoder with RMSProp": """
X = tf.placeholder("float", [None, 784])
weights = {"encoder_h1": tf.Variable(tf.random_normal([784, 16])), "encoder_h2": tf.Variable(tf.random_normal([16, 8])),
           "decoder_h1": tf.Variable(tf.random_normal([8, 16])), "decoder_h2": tf.Variable(tf.random_normal([16, 784]))}
biases = {name: tf.Variable(tf.random_normal([size])) for name, size in [("b1", 16), ("b2", 8), ("b3", 16), ("b4", 784)]}
def encoder(x):
    layer_1 = tf.nn.sigmoid(tf.add(tf.matmul(x, weights["encoder_h1"]), biases["b1"]))
    return tf.nn.sigmoid(tf.add(tf.matmul(layer_1, weights["encoder_h2"]), biases["b2"]))
def decoder(x):
    layer_1 = tf.nn.sigmoid(tf.add(tf.matmul(x, weights["decoder_h1"]), biases["b3"]))
    return tf.nn.sigmoid(tf.add(tf.matmul(layer_1, weights["decoder_h2"]), biases["b4"]))
y_pred = decoder(encoder(X))
loss = tf.reduce_mean(tf.pow(X - y_pred, 2))
optimizer = tf.train.RMSPropOptimizer(0.01).minimize(loss)
with tf.Session() as sess:
    start(sess)
    outputs["losses"] = [sess.run([optimizer, loss], feed_dict={X: digits})[1] for step in range(3)]
    outputs["weights"] = sess.run(weights["encoder_h2"])
""",
    "a variational autoencoder": """
def glorot_init(shape):
    return tf.random_normal(shape=shape, stddev=1. / tf.sqrt(shape[0] / 2.))
weights = {"M1": tf.Variable(glorot_init([784, 12])), "z_mean": tf.Variable(glorot_init([12, 2])), "z_std": tf.Variable(glorot_init([12, 2])),
           "H1": tf.Variable(glorot_init([2, 12])), "out": tf.Variable(glorot_init([12, 784]))}
input_image = tf.placeholder(tf.float32, shape=[None, 784])
hidden = tf.nn.tanh(tf.matmul(input_image, weights["M1"]))
z_mean, z_std = tf.matmul(hidden, weights["z_mean"]), tf.matmul(hidden, weights["z_std"])
eps = tf.random_normal(tf.shape(z_std), dtype=tf.float32, mean=0., stddev=1.0, name="epsilon", seed=4)
z = z_mean + tf.exp(z_std / 2) * eps
decoded = tf.nn.sigmoid(tf.matmul(tf.nn.tanh(tf.matmul(z, weights["H1"])), weights["out"]))
def vae_loss(x_reconstructed, x_true):
    encode_decode_loss = x_true * tf.log(1e-10 + x_reconstructed) + (1 - x_true) * tf.log(1e-10 + 1 - x_reconstructed)
    encode_decode_loss = -tf.reduce_sum(encode_decode_loss, 1)
    kl_div_loss = 1 + z_std - tf.square(z_mean) - tf.exp(z_std)
    kl_div_loss = -0.5 * tf.reduce_sum(kl_div_loss, 1)
    return tf.reduce_mean(encode_decode_loss + kl_div_loss)
loss_op = vae_loss(decoded, input_image)
train_op = tf.train.RMSPropOptimizer(learning_rate=0.001).minimize(loss_op)
with tf.Session() as sess:
    start(sess)
    outputs["losses"] = [sess.run([train_op, loss_op], feed_dict={input_image: digits})[1] for i in range(3)]
""",
    "a GAN of two optimizers": """
gen_input = tf.placeholder(tf.float32, shape=[None, 6], name="input_noise")
disc_input = tf.placeholder(tf.float32, shape=[None, 784], name="disc_input")
w = {name: tf.Variable(tf.zeros(shape)) for name, shape in [("gen1", [6, 9]), ("gen_out", [9, 784]), ("disc1", [784, 9]), ("disc_out", [9, 1])]}
def generator(x):
    return tf.nn.sigmoid(tf.matmul(tf.nn.relu(tf.matmul(x, w["gen1"])), w["gen_out"]))
def discriminator(x):
    return tf.nn.sigmoid(tf.matmul(tf.nn.relu(tf.matmul(x, w["disc1"])), w["disc_out"]))
disc_real, disc_fake = discriminator(disc_input), discriminator(generator(gen_input))
gen_loss = -tf.reduce_mean(tf.log(disc_fake))
disc_loss = -tf.reduce_mean(tf.log(disc_real) + tf.log(1. - disc_fake))
train_gen = tf.train.AdamOptimizer(learning_rate=0.002).minimize(gen_loss, var_list=[w["gen1"], w["gen_out"]])
train_disc = tf.train.AdamOptimizer(learning_rate=0.002).minimize(disc_loss, var_list=[w["disc1"], w["disc_out"]])
with tf.Session() as sess:
    start(sess)
    feeds = {disc_input: digits * 0.1, gen_input: digits[:, :6]}
    for i in range(3):
        sess.run([train_gen, train_disc], feed_dict=feeds)
        outputs["losses %d" % i] = sess.run([gen_loss, disc_loss], feeds)
""",
    "a DCGAN of layers in reused scopes": """
noise_input = tf.placeholder(tf.float32, shape=[None, 5])
real_image_input = tf.placeholder(tf.float32, shape=[None, 28, 28, 1])
is_training = tf.placeholder(tf.bool)
def leakyrelu(x, alpha=0.2):
    return 0.5 * (1 + alpha) * x + 0.5 * (1 - alpha) * abs(x)
def generator(x, reuse=False):
    with tf.variable_scope('Generator', reuse=reuse):
        x = tf.layers.dense(x, units=7 * 7 * 4)
        x = tf.layers.batch_normalization(x, training=is_training)
        x = tf.nn.relu(x)
        x = tf.reshape(x, shape=[-1, 7, 7, 4])
        x = tf.layers.conv2d_transpose(x, 3, 5, strides=2, padding='same')
        x = tf.layers.batch_normalization(x, training=is_training)
        x = tf.nn.relu(x)
        x = tf.layers.conv2d_transpose(x, 1, 5, strides=2, padding='same')
        return tf.nn.tanh(x)
def discriminator(x, reuse=False):
    with tf.variable_scope('Discriminator', reuse=reuse):
        x = tf.layers.conv2d(x, 4, 5, strides=2, padding='same')
        x = leakyrelu(tf.layers.batch_normalization(x, training=is_training))
        x = tf.reshape(x, shape=[-1, 14 * 14 * 4])
        x = tf.layers.dense(x, 2)
    return x
gen_sample = generator(noise_input)
disc_real, disc_fake = discriminator(real_image_input), discriminator(gen_sample, reuse=True)
disc_loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(logits=disc_real, labels=tf.ones([4], dtype=tf.int32)))
disc_loss += tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(logits=disc_fake, labels=tf.zeros([4], dtype=tf.int32)))
gen_loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(logits=disc_fake, labels=tf.ones([4], dtype=tf.int32)))
optimizer_gen = tf.train.AdamOptimizer(learning_rate=0.001, beta1=0.5, beta2=0.999)
gen_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope='Generator')
disc_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope='Discriminator')
gen_update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS, scope='Generator')
with tf.control_dependencies(gen_update_ops):
    train_gen = optimizer_gen.minimize(gen_loss, var_list=gen_vars)
with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS, scope='Discriminator')):
    train_disc = tf.train.AdamOptimizer(0.001, beta1=0.5).minimize(disc_loss, var_list=disc_vars)
outputs["names"] = [v.name for v in gen_vars + disc_vars]
with tf.Session() as sess:
    start(sess)
    feeds = {real_image_input: digits[:4].reshape(4, 28, 28, 1), noise_input: digits[:4, :5], is_training: True}
    outputs["loss"] = sess.run([gen_loss, disc_loss], feeds)
    sess.run(train_gen, feeds); sess.run(train_disc, feeds)
    feeds[is_training] = False
    outputs["after"] = sess.run([gen_loss, disc_loss], feeds)
""",
    "a recurrent network of static_rnn": """
from tensorflow.contrib import rnn
X, Y = tf.placeholder("float", [None, 28, 28]), tf.placeholder("float", [None, 10])
weights, biases = {'out': tf.Variable(tf.random_normal([5, 10]))}, {'out': tf.Variable(tf.random_normal([10]))}
def RNN(x, weights, biases):
    x = tf.unstack(x, 28, 1)
    lstm_cell = rnn.BasicLSTMCell(5, forget_bias=1.0)
    outputs, states = rnn.static_rnn(lstm_cell, x, dtype=tf.float32)
    return tf.matmul(outputs[-1], weights['out']) + biases['out']
logits = RNN(X, weights, biases)
prediction = tf.nn.softmax(logits)
loss_op = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(logits=logits, labels=Y))
train_op = tf.train.GradientDescentOptimizer(learning_rate=0.01).minimize(loss_op)
accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(prediction, 1), tf.argmax(Y, 1)), tf.float32))
outputs["names"] = [v.op.name for v in tf.trainable_variables()]
with tf.Session() as sess:
    start(sess)
    feeds = {X: digits.reshape((16, 28, 28)), Y: classes}
    for step in range(2): sess.run(train_op, feed_dict=feeds)
    outputs["loss"] = sess.run([loss_op, accuracy], feed_dict=feeds)
    outputs["prediction"] = sess.run(prediction, feeds)
""",
    "a bidirectional network": """
from tensorflow.contrib import rnn
X = tf.placeholder("float", [None, 28, 28])
x = tf.unstack(X, 28, 1)
fw, bw = rnn.BasicLSTMCell(4, forget_bias=1.0), rnn.BasicLSTMCell(4, forget_bias=1.0)
results, _, _ = rnn.static_bidirectional_rnn(fw, bw, x, dtype=tf.float32)
(f, b), states = tf.nn.bidirectional_dynamic_rnn(tf.nn.rnn_cell.GRUCell(3), tf.nn.rnn_cell.GRUCell(3), X, dtype=tf.float32)
both = tf.concat([f, b], 2)
with tf.Session() as sess:
    start(sess)
    outputs["last"], outputs["both"] = sess.run([results[-1], both], {X: digits.reshape((16, 28, 28))})
""",
    "a dynamic network over sequences of different lengths": """
x, y, seqlen = tf.placeholder("float", [None, 7, 1]), tf.placeholder("float", [None, 2]), tf.placeholder(tf.int32, [None])
weights, biases = tf.Variable(tf.random_normal([6, 2])), tf.Variable(tf.random_normal([2]))
def dynamicRNN(x, seqlen):
    x = tf.unstack(x, 7, 1)
    lstm_cell = tf.contrib.rnn.BasicLSTMCell(6)
    outputs, states = tf.contrib.rnn.static_rnn(lstm_cell, x, dtype=tf.float32, sequence_length=seqlen)
    outputs = tf.transpose(tf.stack(outputs), [1, 0, 2])
    batch_size = tf.shape(outputs)[0]
    index = tf.range(0, batch_size) * 7 + (seqlen - 1)
    outputs = tf.gather(tf.reshape(outputs, [-1, 6]), index)
    return tf.matmul(outputs, weights) + biases
pred = dynamicRNN(x, seqlen)
cost = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(logits=pred, labels=y))
optimizer = tf.train.GradientDescentOptimizer(learning_rate=0.1).minimize(cost)
dynamic, state = tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(4, use_peepholes=True), x, sequence_length=seqlen, dtype=tf.float32, scope="dynamic")
with tf.Session() as sess:
    start(sess)
    feeds = {x: digits[:5, :7].reshape(5, 7, 1), y: classes[:5, :2], seqlen: [7, 3, 1, 5, 2]}
    outputs["costs"] = [sess.run([cost, optimizer], feeds)[0] for i in range(3)]
    outputs["dynamic"], c = sess.run([dynamic, state], feeds)
    outputs["state"] = c.h
""",
    "a network saved and restored in another session": """
import os, tempfile
model_path = os.path.join(tempfile.mkdtemp(), "model.ckpt")
x, y = tf.placeholder("float", [None, 784]), tf.placeholder("float", [None, 10])
h = tf.nn.relu(tf.add(tf.matmul(x, tf.Variable(tf.random_normal([784, 9]))), tf.Variable(tf.random_normal([9]))))
pred = tf.matmul(h, tf.Variable(tf.random_normal([9, 10])))
cost = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(logits=pred, labels=y))
optimizer = tf.train.AdamOptimizer(learning_rate=0.001).minimize(cost)
saver = tf.train.Saver()
with tf.Session() as sess:
    start(sess)
    sess.run(optimizer, feed_dict={x: digits, y: classes})
    save_path = saver.save(sess, model_path)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    saver.restore(sess, model_path)
    outputs["costs"] = [sess.run([optimizer, cost], feed_dict={x: digits, y: classes})[1] for i in range(2)]
outputs["same"] = [save_path == model_path, tf.train.latest_checkpoint(os.path.dirname(model_path)) == model_path]
""",
    "summaries of a training run": """
import tempfile
x, y = tf.placeholder(tf.float32, [None, 784], name='InputData'), tf.placeholder(tf.float32, [None, 10], name='LabelData')
W, b = tf.Variable(tf.zeros([784, 10]), name='Weights'), tf.Variable(tf.zeros([10]), name='Bias')
with tf.name_scope('Model'):
    pred = tf.nn.softmax(tf.matmul(x, W) + b)
with tf.name_scope('Objective'):
    cost = tf.reduce_mean(-tf.reduce_sum(y * tf.log(pred), reduction_indices=1))
with tf.name_scope('SGD'):
    optimizer = tf.train.GradientDescentOptimizer(0.01)
    grads = list(zip(tf.gradients(cost, tf.trainable_variables()), tf.trainable_variables()))
    apply_grads = optimizer.apply_gradients(grads_and_vars=grads)
tf.summary.scalar("loss", cost)
for grad, var in grads:
    tf.summary.histogram(var.name.replace(":", "_") + '/gradient', grad)
merged_summary_op = tf.summary.merge_all()
with tf.Session() as sess:
    start(sess)
    summary_writer = tf.summary.FileWriter(tempfile.mkdtemp(), graph=tf.get_default_graph())
    for i in range(2):
        _, c, summary = sess.run([apply_grads, cost, merged_summary_op], feed_dict={x: digits, y: classes})
        summary_writer.add_summary(summary, i)
        values = tf.Summary.FromString(summary).value
        outputs["tags %d" % i] = [v.tag for v in values]
        outputs["numbers %d" % i] = [c, values[0].simple_value, values[1].histo.sum_squares]
    summary_writer.close()
""",
    "word2vec with gradient descent": """
train_inputs, train_labels = tf.placeholder(tf.int32, shape=[6]), tf.placeholder(tf.int32, shape=[6, 1])
embeddings = tf.Variable(tf.random_uniform([50, 8], -1.0, 1.0))
embed = tf.nn.embedding_lookup(embeddings, train_inputs)
nce_weights, nce_biases = tf.Variable(tf.truncated_normal([50, 8], stddev=0.3)), tf.Variable(tf.zeros([50]))
sampled = tf.nn.log_uniform_candidate_sampler(tf.cast(train_labels, tf.int64), 1, 10, True, 50, seed=5)
loss = tf.reduce_mean(tf.nn.nce_loss(weights=nce_weights, biases=nce_biases, labels=train_labels, inputs=embed, num_sampled=10, num_classes=50, sampled_values=sampled))
global_step = tf.Variable(0, trainable=False)
rate = tf.train.exponential_decay(1.0, global_step, 2, 0.5, staircase=True)
optimizer = tf.train.GradientDescentOptimizer(rate).minimize(loss, global_step=global_step)
with tf.Session() as session:
    start(session)
    feed_dict = {train_inputs: [1, 4, 4, 9, 30, 2], train_labels: [[2], [3], [1], [8], [31], [0]]}
    outputs["losses"] = [session.run([optimizer, loss, rate], feed_dict)[1:] for step in range(3)]
    outputs["embeddings"] = embeddings.eval()
""",
    "a character model of several cells": """
from tensorflow.contrib import rnn
cells = [rnn.DropoutWrapper(rnn.BasicLSTMCell(6, state_is_tuple=True), output_keep_prob=1.0) for _ in range(2)]
cell = rnn.MultiRNNCell(cells, state_is_tuple=True)
input_data, targets = tf.placeholder(tf.int32, [3, 4]), tf.placeholder(tf.int32, [3, 4])
initial_state = cell.zero_state(3, tf.float32)
with tf.variable_scope('rnnlm'):
    softmax_w, softmax_b = tf.get_variable("softmax_w", [6, 11]), tf.get_variable("softmax_b", [11])
embedding = tf.get_variable("embedding", [11, 6])
inputs = tf.nn.embedding_lookup(embedding, input_data)
inputs = tf.split(inputs, 4, 1)
inputs = [tf.squeeze(input_, [1]) for input_ in inputs]
results, last_state = rnn.static_rnn(cell, inputs, initial_state, scope='rnnlm')
output = tf.reshape(tf.concat(results, 1), [-1, 6])
logits = tf.matmul(output, softmax_w) + softmax_b
loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(targets, [-1]), logits=logits)
cost = tf.reduce_sum(loss) / 3 / 4
lr = tf.Variable(0.0, trainable=False)
tvars = tf.trainable_variables()
grads, _ = tf.clip_by_global_norm(tf.gradients(cost, tvars), 0.5)
train_op = tf.train.AdamOptimizer(lr).apply_gradients(zip(grads, tvars))
outputs["names"] = [v.name for v in tvars]
with tf.Session() as sess:
    start(sess)
    sess.run(tf.assign(lr, 0.02))
    state = sess.run(initial_state)
    for step in range(2):
        feed = {input_data: [[1, 2, 3, 4], [0, 9, 8, 7], [5, 5, 5, 5]], targets: [[2, 3, 4, 5], [9, 8, 7, 6], [5, 5, 5, 10]]}
        for i, (c, h) in enumerate(initial_state):
            feed[c] = state[i].c
            feed[h] = state[i].h
        train_loss, state, _ = sess.run([cost, last_state, train_op], feed)
        outputs["loss %d" % step], outputs["state %d" % step] = train_loss, state[1].h
""",
    "MNIST for experts": """
sess = tf.InteractiveSession()
x, y_ = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.float32, [None, 10])
def weight_variable(shape):
    return tf.Variable(tf.truncated_normal(shape, stddev=0.1))
def bias_variable(shape):
    return tf.Variable(tf.constant(0.1, shape=shape))
x_image = tf.reshape(x, [-1, 28, 28, 1])
h_conv1 = tf.nn.relu(tf.nn.conv2d(x_image, weight_variable([5, 5, 1, 4]), strides=[1, 1, 1, 1], padding='SAME') + bias_variable([4]))
h_pool1 = tf.nn.max_pool(h_conv1, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding='SAME')
h_pool1_flat = tf.reshape(h_pool1, [-1, 14 * 14 * 4])
h_fc1 = tf.nn.relu(tf.matmul(h_pool1_flat, weight_variable([14 * 14 * 4, 8])) + bias_variable([8]))
keep_prob = tf.placeholder(tf.float32)
h_fc1_drop = tf.nn.dropout(h_fc1, keep_prob, seed=3)
y_conv = tf.matmul(h_fc1_drop, weight_variable([8, 10])) + bias_variable([10])
cross_entropy = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y_, logits=y_conv))
train_step = tf.train.AdamOptimizer(1e-4).minimize(cross_entropy)
accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(y_conv, 1), tf.argmax(y_, 1)), tf.float32))
start(sess)
for i in range(2):
    train_step.run(feed_dict={x: digits, y_: classes, keep_prob: 0.5})
outputs["loss"] = cross_entropy.eval({x: digits, y_: classes, keep_prob: 1.0})
outputs["dropped"] = sess.run(cross_entropy, {x: digits, y_: classes, keep_prob: 0.5})
outputs["accuracy"] = accuracy.eval(feed_dict={x: digits, y_: classes, keep_prob: 1.0})
sess.close()
""",
    "an autoencoder of corrupted inputs": """
X, mask = tf.placeholder("float", [None, 784], name='X'), tf.placeholder("float", [None, 784], name='mask')
W_init_max = 4 * np.sqrt(6. / (784 + 8))
W = tf.Variable(tf.random_uniform(shape=[784, 8], minval=-W_init_max, maxval=W_init_max), name='W')
b, b_prime = tf.Variable(tf.zeros([8]), name='b'), tf.Variable(tf.zeros([784]), name='b_prime')
W_prime = tf.transpose(W)
tilde_X = mask * X
Y = tf.nn.sigmoid(tf.matmul(tilde_X, W) + b)
Z = tf.nn.sigmoid(tf.matmul(Y, W_prime) + b_prime)
cost = tf.reduce_sum(tf.pow(X - Z, 2))
train_op = tf.train.GradientDescentOptimizer(0.02).minimize(cost)
with tf.Session() as sess:
    start(sess)
    mask_np = (digits > 0.3) * 1
    outputs["costs"] = [sess.run([train_op, cost], feed_dict={X: digits, mask: mask_np})[1] for i in range(3)]
""",
    "linear regression on a data set with the loss of Huber": """
dataset = tf.data.Dataset.from_tensor_slices((digits[:, 0], digits[:, 1])).batch(1)
iterator = dataset.make_initializable_iterator()
X, Y = iterator.get_next()
w, b = tf.get_variable('weights', initializer=tf.constant(0.0)), tf.get_variable('bias', initializer=tf.constant(0.0))
Y_predicted = X * w + b
def huber_loss(labels, predictions, delta=0.2):
    residual = tf.abs(labels - predictions)
    return tf.cond(tf.reduce_all(residual < delta), lambda: 0.5 * tf.square(residual), lambda: delta * residual - 0.5 * tf.square(delta))
loss = huber_loss(Y, Y_predicted)
optimizer = tf.train.GradientDescentOptimizer(learning_rate=0.1).minimize(loss)
with tf.Session() as sess:
    start(sess)
    for i in range(2):
        sess.run(iterator.initializer)
        total_loss = 0
        try:
            while True:
                _, l = sess.run([optimizer, loss])
                total_loss += l
        except tf.errors.OutOfRangeError:
            pass
        outputs["total %d" % i] = total_loss
    outputs["line"] = sess.run([w, b])
""",
    "deep Q-learning with a target network": """
s, s_ = tf.placeholder(tf.float32, [None, 6], name='s'), tf.placeholder(tf.float32, [None, 6], name='s_')
r, a = tf.placeholder(tf.float32, [None, ], name='r'), tf.placeholder(tf.int32, [None, ], name='a')
w_initializer, b_initializer = tf.random_normal_initializer(0., 0.3), tf.constant_initializer(0.1)
def net(x, scope):
    with tf.variable_scope(scope):
        e1 = tf.layers.dense(x, 7, tf.nn.relu, kernel_initializer=w_initializer, bias_initializer=b_initializer, name='l1')
        return tf.layers.dense(e1, 3, kernel_initializer=w_initializer, bias_initializer=b_initializer, name='q')
q_eval, q_next = net(s, 'eval_net'), net(s_, 'target_net')
q_target = tf.stop_gradient(r + 0.9 * tf.reduce_max(q_next, axis=1, name='Qmax_s_'))
a_indices = tf.stack([tf.range(tf.shape(a)[0], dtype=tf.int32), a], axis=1)
q_eval_wrt_a = tf.gather_nd(params=q_eval, indices=a_indices)
loss = tf.reduce_mean(tf.squared_difference(q_target, q_eval_wrt_a, name='TD_error'))
train_op = tf.train.RMSPropOptimizer(0.01).minimize(loss)
t_params = tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES, scope='target_net')
e_params = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope='eval_net')
replace_target_op = [tf.assign(t, e) for t, e in zip(t_params, e_params)]
with tf.Session() as sess:
    start(sess)
    feeds = {s: digits[:5, :6], s_: digits[5:10, :6], a: [0, 2, 1, 1, 0], r: [1, 0, 0.5, 0, 1]}
    outputs["first"] = [sess.run([train_op, loss], feeds)[1] for _ in range(2)]
    sess.run(replace_target_op)
    outputs["replaced"] = [sess.run([train_op, loss], feeds)[1] for _ in range(2)]
""",
    "policy gradients and an actor with a critic": """
obs, acts, vt = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.int32, [None, ]), tf.placeholder(tf.float32, [None, ])
layer = tf.layers.dense(obs, 5, activation=tf.nn.tanh, kernel_initializer=tf.random_normal_initializer(mean=0, stddev=0.3), name='fc1')
all_act = tf.layers.dense(inputs=layer, units=3, activation=None, name='fc2')
prob = tf.nn.softmax(all_act, name='act_prob')
neg_log_prob = tf.reduce_sum(-tf.log(prob) * tf.one_hot(acts, 3), axis=1)
loss = tf.reduce_mean(neg_log_prob * vt)
optimizer = tf.train.AdamOptimizer(0.01)
grads_and_vars = [(tf.clip_by_norm(g, 0.05), v) for g, v in optimizer.compute_gradients(loss) if g is not None]
placeholders = [tf.placeholder(tf.float32, shape=g.get_shape()) for g, _ in grads_and_vars]
train = optimizer.apply_gradients([(p, v) for p, (_, v) in zip(placeholders, grads_and_vars)])
action = tf.multinomial(tf.log(prob), num_samples=1, seed=3)
entropy = -tf.reduce_sum(prob * tf.log(prob + 1e-5), axis=1, keep_dims=True)
with tf.Session() as sess:
    start(sess)
    feeds = {obs: digits[:6, :4], acts: np.array([0, 1, 2, 2, 1, 0]), vt: np.linspace(-1, 1, 6)}
    outputs["actions"] = sess.run(action, feeds)
    for i in range(2):
        gradients = sess.run([g for g, _ in grads_and_vars], feeds)
        sess.run(train, dict(zip(placeholders, gradients)))
    outputs["after"] = sess.run([loss, tf.reduce_mean(entropy)], feeds)
""",
    "a normal policy with clipped ratios": """
s, a, advantage = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [None, 1]), tf.placeholder(tf.float32, [None, 1])
def build_anet(name, trainable):
    with tf.variable_scope(name):
        l1 = tf.layers.dense(s, 5, tf.nn.relu, trainable=trainable)
        mu = 2 * tf.layers.dense(l1, 1, tf.nn.tanh, trainable=trainable)
        sigma = tf.layers.dense(l1, 1, tf.nn.softplus, trainable=trainable)
        norm_dist = tf.distributions.Normal(loc=mu, scale=sigma)
    return norm_dist, tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES, scope=name)
pi, pi_params = build_anet('pi', trainable=True)
old, old_params = build_anet('oldpi', trainable=False)
sample = tf.squeeze(pi.sample(1, seed=3), axis=0)
update = [oldp.assign(p * 0.9) for p, oldp in zip(pi_params, old_params)]
ratio = pi.prob(a) / old.prob(a)
loss = -tf.reduce_mean(tf.minimum(ratio * advantage, tf.clip_by_value(ratio, 0.8, 1.2) * advantage))
train = tf.train.AdamOptimizer(0.01).minimize(loss)
kl = tf.distributions.kl_divergence(old, pi)
with tf.Session() as sess:
    start(sess)
    sess.run(update)
    feeds = {s: digits[:4, :3], a: digits[:4, 3:4], advantage: digits[:4, 4:5] - 0.5}
    outputs["sample"], outputs["entropy"], outputs["kl"] = sess.run([sample, pi.entropy(), kl], feeds)
    outputs["losses"] = [sess.run([train, loss, pi.log_prob(a)], feeds)[1:][0] for _ in range(2)]
""",
    "batch normalization with update ops, and clipped gradients": """
from functools import partial
X, y = tf.placeholder(tf.float32, shape=(None, 20), name="X"), tf.placeholder(tf.int32, shape=(None), name="y")
training = tf.placeholder_with_default(False, shape=(), name='training')
with tf.name_scope("dnn"):
    he_init = tf.variance_scaling_initializer()
    my_batch_norm_layer = partial(tf.layers.batch_normalization, training=training, momentum=0.9)
    my_dense_layer = partial(tf.layers.dense, kernel_initializer=he_init)
    bn1 = tf.nn.elu(my_batch_norm_layer(my_dense_layer(X, 8, name="hidden1")))
    logits = my_batch_norm_layer(my_dense_layer(bn1, 10, name="outputs"))
with tf.name_scope("loss"):
    xentropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
    loss = tf.reduce_mean(xentropy, name="loss")
with tf.name_scope("train"):
    global_step = tf.Variable(0, trainable=False, name="global_step")
    learning_rate = tf.train.exponential_decay(0.1, global_step, 10, 1/10)
    optimizer = tf.train.MomentumOptimizer(learning_rate, momentum=0.9, use_nesterov=True)
    capped_gvs = [(tf.clip_by_value(grad, -0.05, 0.05), var) for grad, var in optimizer.compute_gradients(loss)]
    training_op = optimizer.apply_gradients(capped_gvs, global_step=global_step)
with tf.name_scope("eval"):
    correct = tf.nn.in_top_k(logits, y, 1)
    accuracy = tf.reduce_mean(tf.cast(correct, tf.float32))
extra_update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
weights = tf.trainable_variables()[0]
clip = tf.assign(weights, tf.clip_by_norm(weights, clip_norm=1.0, axes=1))
with tf.Session() as sess:
    start(sess)
    feeds = {X: digits[:, :20], y: classes.argmax(1)}
    for step in range(3):
        sess.run([training_op, extra_update_ops], feed_dict={training: True, **feeds})
        clip.eval()
    outputs["loss"] = loss.eval(feeds)
    outputs["accuracy"] = accuracy.eval(feed_dict=feeds)
""",
    "assignments to slices of variables": """
v = tf.Variable(digits[0, :6], name="v")
m = tf.get_variable("m", initializer=tf.constant(digits[:3, :4]), use_resource=True)
place = tf.placeholder(tf.int32, [])
with tf.control_dependencies([v[place:place + 2].assign([7., 8.])]):
    total = tf.reduce_sum(v * 2.)
with tf.control_dependencies([m[1, ::2].assign(total), m[..., -1].assign([1., 2., 3.])]):
    rows = tf.reduce_sum(m.read_value(), 1)
branch = tf.cond(place > 0, lambda: v[:1].assign([5.]), lambda: v[::-3].assign([1., 2.])) * 2.
loop = tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s + tf.reduce_sum(v[i].assign(4.))), [0, 0.], parallel_iterations=1)[1]
with tf.Session() as sess:
    start(sess)
    outputs["rows"] = [sess.run(rows, {place: each}) for each in (1, 2)]
    outputs["branches"] = [sess.run(branch, {place: each}) for each in (1, 0)]
    outputs["loop"] = sess.run(loop)
    outputs["v"], outputs["m"] = sess.run([v, m])
""",
}
"""Programs that fill `outputs`, by what they are about."""
