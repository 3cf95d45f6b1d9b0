"""Parts of the readers of PyTorch models."""
