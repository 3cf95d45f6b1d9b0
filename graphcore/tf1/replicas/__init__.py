"""Data-parallel training: one model on several devices, each with a share of the batch."""
