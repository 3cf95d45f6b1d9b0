"""The parts of CoreML models."""
