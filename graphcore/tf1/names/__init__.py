"""TensorFlow 1's names: the home of each, their look-up, and advice on those that are missing."""
