"""Placement: devices, kernels by device type, the choice of a device for each node, and partitions."""

from graphcore.placement.cost_model import CostModel
from graphcore.placement.device import Device, DeviceSet, register_device_type
from graphcore.placement.explanation import PlacementExplanation
from graphcore.placement.kernels import register_kernel
from graphcore.placement.partition import PartitionOptions, partition_graph, set_incarnation, topological_sort_nodes_with_time_priority
from graphcore.placement.placement import Placement
from graphcore.placement.placer import Placer, explain_placement
from graphcore.placement.proposal import Proposal, propose_placement
from graphcore.placement.scaling import Scaling, ScalingRow, predict_scaling
from graphcore.placement.simulated import SimulatedHardware, simulated_devices
from graphcore.placement.step_prediction import StepPrediction, predict_step
from graphcore.placement.timeline import Lane, Span, Timeline
from graphcore.placement.what_if import PlacementEffect, what_if

__all__ = [
    "CostModel",
    "Device",
    "DeviceSet",
    "Lane",
    "PartitionOptions",
    "Placement",
    "PlacementEffect",
    "PlacementExplanation",
    "Placer",
    "Proposal",
    "Scaling",
    "ScalingRow",
    "SimulatedHardware",
    "Span",
    "StepPrediction",
    "Timeline",
    "explain_placement",
    "partition_graph",
    "predict_scaling",
    "predict_step",
    "propose_placement",
    "register_device_type",
    "register_kernel",
    "set_incarnation",
    "simulated_devices",
    "topological_sort_nodes_with_time_priority",
    "what_if",
]
