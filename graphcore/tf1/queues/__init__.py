"""Queues, the threads that fill them, and the pipelines of `tf.train` that are made of both."""
