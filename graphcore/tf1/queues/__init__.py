"""Queues, readers of files into them, and accumulators of gradients."""
