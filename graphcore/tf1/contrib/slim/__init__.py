"""`tf.contrib.slim`: the parts that `tf.contrib.layers` and `tf.contrib.framework` do not have."""
