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
from graphcore.placement.cost_model import CostModel
from graphcore.placement.device import Device
from graphcore.placement.step_prediction import predict_step
from graphcore.placement.step_sizes import StepSizes
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
        is_bound: True if sizes are unknown, so that the times are lower bounds.
    """

    parameters: tuple[Parameter, ...]
    seconds: float
    after: float
    notes: tuple[str, ...]
    is_bound: bool = False

    def stretched(self, factor: float) -> Replica:
        """The same with a computation that takes `factor` times as long."""
        parameters = [
            msgspec.structs.replace(parameter, needed=parameter.needed * factor, ready=parameter.ready * factor)
            for parameter in self.parameters
        ]
        return msgspec.structs.replace(self, parameters=tuple(parameters), seconds=self.seconds * factor)


def replicas_of(step: Node, model: CostModel, worker: Device, holders: Iterable[Device]) -> list[Replica]:
    """Divide a training step into the computation of gradients and the parameters, by holder of these.

    Args:
        step: the node of the training step.
        model: the times.
        worker: computes the gradients.
        holders: the devices that may hold the parameters.

    Raises:
        InvalidArgumentError: the step changes no variable by a gradient, or a variable has no known shape.
    """
    order = post_order([step], _before)
    writes = _writes(order)
    if not writes:
        raise InvalidArgumentError.at(
            step, f"'{step.name}' changes no variable by a gradient: required a training step, as `minimize` of an optimizer returns it"
        )
    computing = reachable(
        [tensor.node for variable_writes in writes.values() for write in variable_writes for tensor in _changes(write)], _before
    )
    reads: dict[Node, list[Node]] = {variable: [] for variable in writes}
    for node in order:
        if node in computing:
            for variable in {*_sources(node)} & reads.keys():
                reads[variable].append(node)
    held = {*writes, *[node for node_reads in reads.values() for node in node_reads]}
    worked = {node: worker for node in order if node in computing and node not in held}
    prediction = predict_step(worked, model)
    spans = {span.name: span for span in prediction.spans}
    needed: dict[Node, float] = {}
    for node in worked:
        for read in {*_sources(node)} & held:
            needed[read] = min(needed.get(read, spans[node.name].start), spans[node.name].start)
    updates = {node for variable_writes in writes.values() for node in variable_writes}
    sizes = StepSizes(order)
    is_measured = all(model.is_measured(node, worker) for node in worked)
    notes = (*(() if is_measured else prediction.notes), *_whole(writes), *_of_unknown_rows(writes, sizes))
    later = _after(order, updates)
    replicas = []
    for holder in holders:
        parameters = []
        for variable in sorted(writes, key=lambda variable: variable.id):  # as `replicate` gives them to servers
            variable_writes = writes[variable]
            elements, size = _extent(variable)
            changes = [tensor for write in variable_writes for tensor in _changes(write)]
            parameters.append(
                Parameter(
                    variable.name,
                    elements,
                    size,
                    sum([_bytes(read.outputs[0], variable, sizes) for read in reads[variable]]),
                    sum([_bytes(tensor, variable, sizes) for tensor in changes]),
                    min([needed[read] for read in reads[variable] if read in needed], default=0.0),
                    max([spans[tensor.node.name].end for tensor in changes if tensor.node.name in spans], default=0.0),
                    sum([model.seconds(node, holder, sizes.elements) for node in (variable, *reads[variable])]),
                    sum([model.seconds(node, holder, sizes.elements) for node in variable_writes]),
                    any(_INDICES in _names(write) for write in variable_writes),
                )
            )
        after = sum([model.seconds(node, holder, sizes.elements) for node in later])
        replicas.append(Replica(tuple(parameters), prediction.makespan, after, notes, is_bound=prediction.is_bound and not is_measured))
    return replicas


def _writes(nodes: list[Node]) -> dict[Node, list[Node]]:
    """The nodes that change each parameter, by the variable."""
    writes: dict[Node, list[Node]] = defaultdict(list)
    trainable = {variable.op.name for variable in nodes[0].graph.collections.get(_TRAINABLE, [])}
    for node in nodes:
        if node.registration.traits.writes_input:
            variable = node.inputs[0].node
            names = _names(node)
            if names & _GRADIENTS or (names & _CHANGES and variable.name in trainable):
                writes[variable].append(node)
    return writes


def _names(write: Node) -> set[str]:
    return {arg.name for arg in write.registration.op_def.input_arg}


def _whole(writes: dict[Node, list[Node]]) -> list[str]:
    """The assumptions about variables that assignments change, in words."""
    gradient_names = _GRADIENTS | {_INDICES}
    names = [
        variable.name
        for variable, variable_writes in writes.items()
        if not any(_names(write) & gradient_names for write in variable_writes)
    ]
    return [f"assignments change '{name}': its gradient counts as large as the variable" for name in names]


def _of_unknown_rows(writes: dict[Node, list[Node]], sizes: StepSizes) -> list[str]:
    """The assumptions about gradients of an unknown number of rows, in words."""
    unknown = {
        variable.name: None
        for variable, variable_writes in writes.items()
        for write in variable_writes
        if _INDICES in _names(write) and any(sizes.bytes_of(tensor) is None for tensor in _changes(write))
    }
    return [f"the rows of '{name}' in a step are unknown: they and their indices count as large as the variable each" for name in unknown]


def _changes(write: Node) -> list[Tensor]:
    args = write.registration.op_def.input_arg
    return [tensor for arg, tensor in zip(args, write.inputs, strict=True) if arg.name in _CHANGES]


def _sources(node: Node) -> list[Node]:
    return [tensor.node for tensor in node.inputs]


def _extent(variable: Node) -> tuple[int, int]:
    """The number of elements of a variable, and its bytes; at least 1 element."""
    elements = max(1, as_shape(variable.get_attr("shape")).num_elements)
    return elements, elements * as_dtype(variable.get_attr("dtype")).size


def _bytes(tensor: Tensor, variable: Node, sizes: StepSizes) -> int:
    """The size of a tensor; if it is unknown, that of the variable."""
    size = sizes.bytes_of(tensor)
    if size is None:
        size = sizes.bytes_of(variable.outputs[0])
    if size is None:
        raise InvalidArgumentError.at(variable, f"'{variable.name}' has no known shape: required one, for the size of its copies")
    return size


def _before(node: Node) -> list[Node]:
    return [*_sources(node), *node.control_inputs]


def _after(order: list[Node], updates: set[Node]) -> set[Node]:
    """The nodes that wait for updates."""
    later = set(updates)
    for node in order:
        if any(other in later for other in _before(node)):
            later.add(node)
    return later - updates
