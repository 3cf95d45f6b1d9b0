"""Partitions of a graph by device."""

from graphcore.placement.partition.incarnations import set_incarnation
from graphcore.placement.partition.partition import PartitionOptions, partition_graph
from graphcore.placement.partition.start_times import topological_sort_nodes_with_time_priority

__all__ = ["PartitionOptions", "partition_graph", "set_incarnation", "topological_sort_nodes_with_time_priority"]
