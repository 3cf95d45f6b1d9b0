"""The training side of TensorFlow 1: schedules, averages, steps, sessions that train."""
