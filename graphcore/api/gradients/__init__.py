"""Gradients: building, explaining and checking them."""
