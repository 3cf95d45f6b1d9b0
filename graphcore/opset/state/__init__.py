"""Ops with state: variables, optimizers, queues, stacks, TensorArrays, random numbers."""
