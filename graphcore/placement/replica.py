"""One replica of a training step: its computation, and the parameters that it shares with the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

import msgspec

from graphcore.dtypes import as_dtype
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Node, Tensor
from graphcore.graph.model.search import post_order, reachable
from graphcore.placement.copies import size_of
from graphcore.placement.cost_model import CostModel
from graphcore.placement.device import Device
from graphcore.placement.step_prediction import predict_step
from graphcore.plumbing import FEEDABLE
from graphcore.shapes import as_shape

_GRADIENTS: Final = frozenset({"grad", "delta"})
"""The arguments of update ops that are gradients."""
_INDICES: Final = "indices"
_CHANGES: Final = frozenset({"grad", "delta", "updates", "value", _INDICES})
"""The arguments by which ops change a variable."""
_TRAINABLE: Final = "trainable_variables"


class Parameter(msgspec.Struct, frozen=True):
    """A variable that a training step reads and changes.

    Args:
        name: its node.
        elements: their number in it.
        size: its bytes.
        bytes: what a worker reads of it in a step; rows only, where only rows are looked up.
        gradient_bytes: its gradient.
        needed: seconds from the start of the computation to its first use.
        ready: seconds from the start of the computation until its gradient is there.
        reading, updating: the seconds of the nodes that read and change it, on the device that holds it.
        by_rows: True if its gradient is some rows with their indices.
    """

    name: str
    elements: int
    size: int
    bytes: int
    gradient_bytes: int
    needed: float
    ready: float
    reading: float
    updating: float
    by_rows: bool


class Replica(msgspec.Struct, frozen=True):
    """The work of one worker in a step.

    Args:
        parameters: the variables that the step changes by gradients.
        seconds: the computation, from the values of the parameters to the gradients.
        after: the nodes after the updates.
        notes: the assumptions, in words.
    """

    parameters: tuple[Parameter, ...]
    seconds: float
    after: float
    notes: tuple[str, ...]

    def stretched(self, factor: float) -> Replica:
        """The same with a computation that takes `factor` times as long."""
        parameters = [msgspec.structs.replace(each, needed=each.needed * factor, ready=each.ready * factor) for each in self.parameters]
        return Replica(tuple(parameters), self.seconds * factor, self.after, self.notes)


def replicas_of(step: Node, model: CostModel, worker: Device, holders: Iterable[Device]) -> list[Replica]:
    """Divide a training step into the computation of gradients and the parameters, by holder of these.

    Args:
        step: the node of the training step.
        model: the times.
        worker: computes the gradients.
        holders: the devices that may hold the parameters.

    Raises:
        InvalidArgumentError: the step changes no variable by a gradient, or the shape of an input is not known.
    """
    order = post_order([step], _before)
    writes = _writes(order)
    if not writes:
        raise InvalidArgumentError.at(
            step, f"'{step.name}' changes no variable by a gradient: required a training step, as `minimize` of an optimizer returns it"
        )
    computing = reachable([tensor.node for found in writes.values() for write in found for tensor in _changes(write)], _before)
    reads: dict[Node, list[Node]] = {variable: [] for variable in writes}
    for node in order:
        if node in computing:
            for variable in {*_sources(node)} & reads.keys():
                reads[variable].append(node)
    held = {*writes, *[node for found in reads.values() for node in found]}
    worked = {node: worker for node in order if node in computing and node not in held}
    _check_sizes(worked, model)
    prediction = predict_step(worked, model)
    spans = {span.name: span for span in prediction.spans}
    needed: dict[Node, float] = {}
    for node in worked:
        for read in {*_sources(node)} & held:
            needed[read] = min(needed.get(read, spans[node.name].start), spans[node.name].start)
    updates = {node for found in writes.values() for node in found}
    notes = (*prediction.notes, *_whole(writes))
    later = _after(order, updates)
    replicas = []
    for holder in holders:
        parameters = []
        for variable in sorted(writes, key=lambda each: each.id):  # as `replicate` gives them to servers
            found = writes[variable]
            elements, size = _extent(variable)
            changes = [tensor for write in found for tensor in _changes(write)]
            parameters.append(
                Parameter(
                    variable.name,
                    elements,
                    size,
                    sum([_bytes(read.outputs[0], variable) for read in reads[variable]]),
                    sum([_bytes(tensor, variable) for tensor in changes]),
                    min([needed[read] for read in reads[variable] if read in needed], default=0.0),
                    max([spans[tensor.node.name].end for tensor in changes if tensor.node.name in spans], default=0.0),
                    sum([model.seconds(node, holder) for node in (variable, *reads[variable])]),
                    sum([model.seconds(node, holder) for node in found]),
                    any(_INDICES in _names(write) for write in found),
                )
            )
        after = sum([model.seconds(node, holder) for node in later])
        replicas.append(Replica(tuple(parameters), prediction.makespan, after, notes))
    return replicas


def _writes(nodes: list[Node]) -> dict[Node, list[Node]]:
    """The nodes that change each parameter, by the variable."""
    found: dict[Node, list[Node]] = defaultdict(list)
    trainable = {variable.op.name for variable in nodes[0].graph.collections.get(_TRAINABLE, [])}
    for node in nodes:
        if node.registration.traits.writes_input:
            variable = node.inputs[0].node
            names = _names(node)
            if names & _GRADIENTS or (names & _CHANGES and variable.name in trainable):
                found[variable].append(node)
    return found


def _names(write: Node) -> set[str]:
    return {arg.name for arg in write.registration.op_def.input_arg}


def _whole(writes: dict[Node, list[Node]]) -> list[str]:
    """The assumptions about variables that assignments change, in words."""
    known = _GRADIENTS | {_INDICES}
    names = [variable.name for variable, found in writes.items() if not any(_names(write) & known for write in found)]
    return [f"assignments change '{name}': its gradient counts as large as the variable" for name in names]


def _changes(write: Node) -> list[Tensor]:
    args = write.registration.op_def.input_arg
    return [tensor for arg, tensor in zip(args, write.inputs, strict=True) if arg.name in _CHANGES]


def _sources(node: Node) -> list[Node]:
    return [tensor.node for tensor in node.inputs]


def _extent(variable: Node) -> tuple[int, int]:
    """The number of elements of a variable, and its bytes; at least 1 element."""
    elements = max(1, as_shape(variable.get_attr("shape")).num_elements)
    return elements, elements * as_dtype(variable.get_attr("dtype")).size


def _bytes(tensor: Tensor, variable: Node) -> int:
    """The size of a tensor; if it is unknown, that of the variable."""
    size = size_of(tensor)
    if size is None:
        size = size_of(variable.outputs[0])
    if size is None:
        raise InvalidArgumentError.at(variable, f"'{variable.name}' has no known shape: required one, for the size of its copies")
    return size


def _before(node: Node) -> list[Node]:
    return [*_sources(node), *node.control_inputs]


def _check_sizes(nodes: Iterable[Node], model: CostModel) -> None:
    for node in nodes:
        shape = node.outputs[0].shape if node.op in FEEDABLE else None
        if shape is not None and not shape.is_fully_defined and not model.has_measured:
            raise InvalidArgumentError.at(
                node, f"'{node.name}' has the shape {shape}: required known sizes, since times follow from them"
            ).advise(
                f"Give '{node.name}' the size of a batch, such as 32, in place of `None`; or give measured times of the nodes: "
                "`gc.predict_scaling(..., model=gc.CostModel(session.trace.node_seconds()))`.",
                required="a shape without `?`",
                came=str(shape),
            )


def _after(order: list[Node], updates: set[Node]) -> set[Node]:
    """The nodes that wait for updates."""
    later = set(updates)
    for node in order:
        if any(other in later for other in _before(node)):
            later.add(node)
    return later - updates
