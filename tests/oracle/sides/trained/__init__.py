"""Training graphs in the manner of TensorFlow 1, built by TensorFlow itself."""
