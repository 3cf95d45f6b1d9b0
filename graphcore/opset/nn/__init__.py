"""Neural networks: convolution, pooling, activations, normalisation, images."""
