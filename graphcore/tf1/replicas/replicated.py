"""The result of `gc.train.replicate`: the parts of a data-parallel training."""

from __future__ import annotations

from typing import Any

from graphcore.api.variables.variables import Variable
from graphcore.graph import Node, Tensor


class Replicated:
    """A model on several devices, with the nodes that train it.

    Attributes:
        devices: the names of the devices, one for each replica.
        loss: the loss of the whole batch: the mean of those of the replicas, weighted by their shares. A scalar.
        losses: the loss of each replica's share.
        outputs: what the step returned beside the loss, for each replica.
        variables: the trained variables; if they are mirrored, those of the first replica.
        copies: the trained variables as each replica uses them.
        replica_gradients: the gradients of each replica, in the order of `variables`; None for a variable that its loss does not depend on.
        gradients: pairs of a sum of gradients and the variable that it changes.
        ways: "tree", "ring" or "rows" for each trained variable, by its name.
        seconds: the predicted seconds of a tree and of a ring, by the name of the variable.
        train_op: the node that takes one step.
        global_step: the variable that counts the steps, or None.
    """

    devices: list[str]
    loss: Tensor
    losses: list[Tensor]
    outputs: list[tuple[Any, ...]]
    variables: list[Variable]
    copies: list[list[Variable]]
    replica_gradients: list[list[Any]]
    gradients: list[tuple[Any, Variable]]
    ways: dict[str, str]
    seconds: dict[str, dict[str, float]]
    train_op: Node
    global_step: Variable | None

    def __repr__(self) -> str:
        count = len(self.devices)
        lines = [
            f"<gc.train.Replicated: {count} replica{'s' if count > 1 else ''}, loss '{self.loss.name}', train_op '{self.train_op.name}'"
        ]
        lines += [f"  replica {number} on {short(place)}" for number, place in enumerate(self.devices)]
        for index, variable in enumerate(self.variables):
            is_mirrored = len({id(copy[index]) for copy in self.copies}) > 1
            places = "a copy on each device" if is_mirrored else f"on {short(variable.device) or 'any device'}"
            name = variable.op.name
            times = ", ".join(f"{way} {time * 1e6:,.0f} us" for way, time in self.seconds.get(name, {}).items())
            predicted = f" (predicted: {times})" if times and count > 1 else ""
            lines.append(f"  {name} {variable.dtype.name} {variable.shape}, {places}, summed as {self.ways[name]}{predicted}")
        return "\n".join(lines) + ">"


def short(device: str) -> str:
    """The name of a device as users write it, such as `/cpu:0` or `/job:worker/task:1/cpu:0`."""
    task, _, kind = device.rpartition("/device:")
    return f"{task.replace('/job:localhost/replica:0/task:0', '').replace('/replica:0', '')}/{kind.lower()}" if kind else device
