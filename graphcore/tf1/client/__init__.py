"""`tf.python.client`: the list of devices, and timelines of runs."""
