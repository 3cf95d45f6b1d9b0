"""`tf.train`'s checkpoints: savers, the list of checkpoints, and files of graphs with savers."""
