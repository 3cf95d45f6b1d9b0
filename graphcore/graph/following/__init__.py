"""Derives nodes again (gradients, training steps, calls) when what they follow from changes."""
