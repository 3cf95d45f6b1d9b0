"""Optimizers, which add the nodes of a training step to the graph."""

from graphcore.api.optimizers.adam import AdamOptimizer
from graphcore.api.optimizers.descent import GradientDescentOptimizer, MomentumOptimizer
from graphcore.api.optimizers.optimizer import Optimizer

__all__ = ["AdamOptimizer", "GradientDescentOptimizer", "MomentumOptimizer", "Optimizer"]
