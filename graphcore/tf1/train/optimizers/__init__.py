"""Optimizers, which add the nodes of a training step to the graph."""

from graphcore.tf1.train.optimizers.adam import AdamOptimizer
from graphcore.tf1.train.optimizers.descent import GradientDescentOptimizer, MomentumOptimizer
from graphcore.tf1.train.optimizers.optimizer import Optimizer

__all__ = ["AdamOptimizer", "GradientDescentOptimizer", "MomentumOptimizer", "Optimizer"]
