"""The result of `gc.train.replicate`: the parts of a data-parallel training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from graphcore.brief import brief
from graphcore.errors import FailedPreconditionError, InvalidArgumentError
from graphcore.graph import Node, Tensor
from graphcore.runtime import Session
from graphcore.tf1.train.replicas.asynchronous import AsyncRun, run_async
from graphcore.tf1.variables.variables import Variable


class Replicated:
    """A model on several devices, with the nodes that train it.

    Attributes:
        devices: the names of the devices, one for each replica.
        loss: the loss of the whole batch: the mean of the replicas' losses, weighted by their shares. A scalar.
        losses: the loss of each replica's share.
        outputs: what the step returned beside the loss, for each replica.
        variables: the trained variables; if they are mirrored, those of the first replica.
        copies: the trained variables as each replica uses them.
        replica_gradients: the gradients of each replica, in the order of `variables`; None for a variable that its loss does not depend on.
        gradients: pairs of a sum of gradients and the variable that it changes.
        ways: "tree", "ring" or "rows" for each trained variable, by its name; empty if the training is asynchronous.
        seconds: the predicted seconds of a tree and of a ring, by the name of the variable, if there were no other variables.
        train_ops: the nodes that take one step: one for all replicas, or one for each if the training is asynchronous.
        staleness: the number of steps of other replicas between the read of the variables by a replica and their change, for each
            replica of an asynchronous training. Scalars of int64.
        global_step: the variable that counts the steps, or None.
        synchronous: False if each replica takes its own steps.
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
    train_ops: list[Node]
    staleness: list[Tensor]
    global_step: Variable | None
    synchronous: bool

    @property
    def train_op(self) -> Node:
        """The node that takes one step with all replicas.

        Raises:
            AttributeError: the training is asynchronous.
        """
        if not self.synchronous:
            raise AttributeError("an asynchronous training has no train_op of all replicas: run train_ops[i] for replica i, or run_async")
        return self.train_ops[0]

    def run_async(
        self, session: Session, steps: int, feeds: Mapping[Any, Any] | Callable[[int, int], Mapping[Any, Any]] | None = None
    ) -> AsyncRun:
        """Take steps with all replicas at once, each in a thread of its own.

            run = model.run_async(session, 100, lambda replica, step: {x: images[replica], y: labels[replica]})

        Args:
            session: runs the steps.
            steps: the number of steps of each replica.
            feeds: what to feed, or a function that returns it for the number of a replica and of its step.

        Returns:
            Loss and staleness of each step, which it shows as text.

        Raises:
            InvalidArgumentError: `steps` is no number of steps.
            FailedPreconditionError: the training is synchronous.
            GraphError: a step has failed; the other replicas have ended after their current steps.
        """
        if self.synchronous:
            raise FailedPreconditionError("run_async: required an asynchronous training, from gc.train.replicate(..., synchronous=False)")
        if type(steps) is not int or steps < 0:
            raise InvalidArgumentError(f"steps: required a number of steps, got {brief(steps)}")
        return run_async(self.losses, self.staleness, self.train_ops, session, steps, feeds)

    def __repr__(self) -> str:
        count = len(self.devices)
        steps = f"train_op '{self.train_op.name}'" if self.synchronous else "asynchronous"
        lines = [f"<gc.train.Replicated: {count} replica{'s' if count > 1 else ''}, loss '{self.loss.name}', {steps}"]
        lines += [f"  replica {number} on {short(place)}" for number, place in enumerate(self.devices)]
        for index, variable in enumerate(self.variables):
            is_mirrored = len({id(copy[index]) for copy in self.copies}) > 1
            places = "a copy on each device" if is_mirrored else f"on {short(variable.device) or 'any device'}"
            name = variable.op.name
            times = ", ".join(f"{way} {time * 1e6:,.0f} us" for way, time in self.seconds.get(name, {}).items())
            predicted = f" (predicted alone: {times})" if times and count > 1 else ""
            way = f", summed as {self.ways[name]}{predicted}" if name in self.ways else ""
            lines.append(f"  {name} {variable.dtype.text} {variable.shape}, {places}{way}")
        return "\n".join(lines) + ">"


def short(device: str) -> str:
    """The name of a device as users write it, such as `/cpu:0` or `/job:worker/task:1/cpu:0`."""
    task, _, kind = device.rpartition("/device:")
    return f"{task.replace('/job:localhost/replica:0/task:0', '').replace('/replica:0', '')}/{kind.lower()}" if kind else device
