"""`tf.train`: optimizers, schedules, averages, savers, input pipelines, and sessions that train."""
