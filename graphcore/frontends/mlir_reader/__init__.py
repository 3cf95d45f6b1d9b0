"""Readers of MLIR modules and of the text of HLO modules."""
