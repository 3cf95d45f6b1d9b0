"""Placement: the devices of nodes, and what follows from them."""

from graphcore.placement.partition import PartitionOptions, partition_graph, set_incarnation, topological_sort_nodes_with_time_priority

__all__ = ["PartitionOptions", "partition_graph", "set_incarnation", "topological_sort_nodes_with_time_priority"]
