"""Parts of `tf.contrib`."""
