"""graphcore."""
