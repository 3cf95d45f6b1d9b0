"""The choice of trees and rings for the sums of gradients, by the predicted step."""

from __future__ import annotations

from collections.abc import Sequence

from graphcore.graph import Tensor
from graphcore.graph.model.search import reachable
from graphcore.placement.cost_model import CostModel
from graphcore.placement.device import Device
from graphcore.placement.exchange import Machines, least_of_rings
from graphcore.placement.replica import Parameter, Replica
from graphcore.placement.step_prediction import predict_step
from graphcore.tf1.indexed_slices import IndexedSlices
from graphcore.tf1.variables.variables import Variable

Gradient = Tensor | IndexedSlices


def predicted_least_of_rings(
    variables: Sequence[Variable], gradients: Sequence[Gradient], workers: Sequence[Device], servers: Sequence[Device], *, mirrored: bool
) -> float:
    """The bytes of the smallest gradients that go around a ring in the fastest predicted step.

    Args:
        variables: the trained variables.
        gradients: the gradient of each variable, from one replica.
        workers: the devices of the replicas; the one with the least bandwidth stands for all.
        servers: the devices of the variables.
        mirrored: True if each replica has its own variables.
    """
    model = CostModel()
    worker, server = [min(places, key=lambda place: place.bandwidth or float("inf")) for places in (workers, servers)]
    values = [gradient.values if isinstance(gradient, IndexedSlices) else gradient for gradient in gradients]
    nodes = reachable([value.node for value in values], lambda node: [*[tensor.node for tensor in node.inputs], *node.control_inputs])
    prediction = predict_step(dict.fromkeys(nodes, worker), model)
    ends = {span.name: span.end for span in prediction.spans}
    parameters = []
    for variable, gradient, value in zip(variables, gradients, values, strict=True):
        elements = max(0, variable.shape.num_elements)
        size = elements * variable.dtype.size
        updating = model.elementwise_seconds(size, worker if mirrored else server)
        by_rows = isinstance(gradient, IndexedSlices)
        times = 0.0, ends[value.node.name], 0.0, updating
        parameters.append(Parameter(variable.op.name, elements, size, size, size, *times, by_rows))
    replica = Replica(tuple(parameters), prediction.makespan, 0.0, ())
    return least_of_rings(replica, Machines(worker, server, len(workers), len(servers), model), mirrored=mirrored)
