"""Derivation of nodes (gradients, training steps, calls) after changes of their origins."""
