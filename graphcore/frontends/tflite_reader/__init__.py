"""The parts of TensorFlow Lite models."""
