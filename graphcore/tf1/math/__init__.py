"""`tf.math`: mathematics on tensors, one family a file."""
