"""The work and memory of graphs from shapes alone: multiply-adds, operations, parameters and bytes."""

from graphcore.costing.costs import Costs, NodeCost
from graphcore.costing.counting import count_costs
from graphcore.costing.roofline import Roofline

__all__ = ["Costs", "NodeCost", "Roofline", "count_costs"]
