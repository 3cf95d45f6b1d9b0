"""The building of a data-parallel training: replicas, gradients, their sums, and the step."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from graphcore.brief import brief
from graphcore.dtypes import int64
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Node, Tensor, get_default_graph
from graphcore.placement.device import Device
from graphcore.tf1.framework import control_dependencies, device, group, name_scope
from graphcore.tf1.math.elementwise import add, add_n, cast, subtract
from graphcore.tf1.train.global_steps import get_or_create_global_step
from graphcore.tf1.train.moving import SharedAverages
from graphcore.tf1.train.optimizers import Optimizer
from graphcore.tf1.train.replicas.asynchronous import checked_step, counted
from graphcore.tf1.train.replicas.collected import Collected
from graphcore.tf1.train.replicas.copies import inner_name, mirror, require_shared
from graphcore.tf1.train.replicas.places import ParameterPlaces
from graphcore.tf1.train.replicas.replicated import Replicated
from graphcore.tf1.train.replicas.shares import Shares, split_batch
from graphcore.tf1.train.replicas.sums import add_up, scope_of
from graphcore.tf1.train.replicas.ways import predicted_least_of_rings
from graphcore.tf1.variable_scopes import get_variable_scope, variable_scope
from graphcore.tf1.variable_scopes.getting import is_to_be_made
from graphcore.tf1.variables.choice import VariableChoice
from graphcore.tf1.variables.collections import TRAINABLE_VARIABLES, VARIABLES
from graphcore.tf1.variables.variables import Variable


class Builder:
    """Builds the nodes of a data-parallel training; the arguments are those of `replicate`.

    Attributes:
        outside: the trainable variables made before.
    """

    outside: VariableChoice

    def __init__(
        self,
        step: Callable[..., Any],
        devices: list[Device],
        optimizer: Optimizer,
        inputs: list[Tensor],
        mirrored: bool,
        parameters: list[Device],
        reduce: str,
        synchronous: bool,
        global_step: Variable | None,
    ) -> None:
        self.step = step
        self.devices = devices
        self.optimizer = optimizer
        self.inputs = inputs
        self.mirrored = mirrored
        self.parameters = parameters
        self.reduce = reduce
        self.synchronous = synchronous
        self.global_step = global_step

    def build(self) -> Replicated:
        """Add the nodes to the default graph."""
        graph = get_default_graph()
        replicated = Replicated()
        replicated.devices = [place.name for place in self.devices]
        replicated.synchronous = self.synchronous
        replicated.losses, replicated.outputs, replicated.copies, replicated.replica_gradients = [], [], [], []
        replicated.ways, replicated.seconds, replicated.staleness = {}, {}, []
        self.inputs = [graph.present(tensor) for tensor in self.inputs]
        replicated.global_step = self.global_step if self.synchronous else self._counter()
        whole = Shares([self.inputs] * len(self.devices), None, None)
        shares = split_batch(self.inputs, len(self.devices), self.devices[0].name) if self.synchronous else whole
        self._build_replicas(replicated, shares)
        weighted = self._differentiate(replicated, shares)
        with name_scope("loss"), device(self.devices[0].name):
            replicated.loss = add_n(weighted, name="loss")
        if self.synchronous:
            self._sum(replicated)
            applied = self.optimizer.apply_gradients(replicated.gradients, self.global_step)
            replicated.train_ops = [
                group(applied, *self._copied(replicated, applied), name="train_op") if self._is_applied_once else applied
            ]
        else:
            self._apply_alone(replicated)
        return replicated

    # ---- replicas ---------------------------------------------------------------------------------------------------

    def _build_replicas(self, replicated: Replicated, shares: Shares) -> None:
        graph = get_default_graph()
        outside = [variable for variable in self.outside.now() if not is_to_be_made(variable)]  # else the step makes it again
        places = ParameterPlaces(self.parameters)
        self.scopes: list[str] = []
        self.begun: list[Tensor] = []
        own_variables: list[list[Variable]] = []
        earlier = {id(variable) for variable in graph.get_collection(VARIABLES) if not is_to_be_made(variable)}
        averages = SharedAverages(lambda variable: self.synchronous and (not self.mirrored or id(variable) in earlier))
        collected = Collected(graph, mirrored=self.mirrored)
        for number, parts in enumerate(shares.parts):
            before = {id(variable) for variable in graph.get_collection(VARIABLES)}
            with (
                self._scope(number, places),
                self._after_read(replicated),
                collected.of_one_replica(),
                averages.of_one_replica(partial(shares.weight, number)),
            ):
                loss, others = self._called(parts, number)
            replicated.losses.append(loss)
            replicated.outputs.append(others)
            own_variables.append([variable for variable in graph.get_collection(VARIABLES) if id(variable) not in before])
        collected.put_together()
        if self.mirrored:
            mirror(own_variables)
        else:
            require_shared(own_variables)
        trainable = {id(variable) for variable in graph.get_collection(TRAINABLE_VARIABLES)}
        for own in own_variables if self.mirrored else own_variables[:1] * len(own_variables):
            replicated.copies.append([*outside, *[variable for variable in own if id(variable) in trainable]])

    @contextmanager
    def _scope(self, number: int, places: ParameterPlaces) -> Iterator[None]:
        """The scopes and the device of a replica."""
        place = self.devices[number]
        if self.mirrored:
            with variable_scope(f"replica_{number}"), device(place.name):
                self.scopes.append(get_default_graph().scopes.name)
                yield
            return
        places.worker = place.spec
        reuse, kind = True if number else None, None if self.synchronous else True
        again = variable_scope(get_variable_scope(), reuse=reuse, use_resource=kind, auxiliary_name_scope=False)
        with again, name_scope(f"replica_{number}") as scope:
            self.scopes.append(scope)
            with device(places):
                yield

    def _counter(self) -> Variable:
        """The variable that counts the steps of an asynchronous training."""
        if self.global_step is not None:
            return checked_step(self.global_step)
        with device(self.parameters[0].name):
            return checked_step(get_or_create_global_step())

    @contextmanager
    def _after_read(self, replicated: Replicated) -> Iterator[None]:
        """Read the number of steps before the variables, in an asynchronous training."""
        if self.synchronous or replicated.global_step is None:
            yield
            return
        with device(replicated.global_step.device or None):
            # A value of its own: what is read from a reference may change with it.
            self.begun.append(add(cast(replicated.global_step.read_value(), int64), 0, name="step"))
        with control_dependencies(self.begun[-1:]):
            yield

    def _called(self, parts: list[Tensor], number: int) -> tuple[Tensor, tuple[Any, ...]]:
        """The loss of one replica, and what the step returns beside it."""
        _check_call(self.step, len(parts))
        returned = self.step(*parts)
        loss, *others = returned if isinstance(returned, tuple | list) and returned else [returned]
        if not isinstance(loss, Tensor):
            raise InvalidArgumentError(
                f"step: required the loss, a scalar tensor, or a tuple that begins with it; for replica {number} it returned {brief(returned)}"
            ).advise("End the step with `return loss`.", required="a scalar tensor", came=brief(returned))
        if loss.shape.rank not in {0, None} or not loss.dtype.base.is_floating:
            raise InvalidArgumentError.at(
                loss.node, f"step: required a loss that is a scalar of floats, got '{loss.name}' {loss.dtype.text} {loss.shape}"
            ).advise(
                "Take the mean over the examples of the share, such as `gc.reduce_mean(...)`.",
                required="a scalar of floats",
                came=f"{loss.dtype.text} {loss.shape}",
            )
        return loss, tuple(others)

    # ---- gradients --------------------------------------------------------------------------------------------------

    def _differentiate(self, replicated: Replicated, shares: Shares) -> list[Tensor]:
        """Add the gradients of the weighted losses; returns these losses."""
        weighted = []
        for number, loss in enumerate(replicated.losses):
            with name_scope(self.scopes[number]), device(self.devices[number].name):
                weight = shares.weight(number, loss.dtype.base)
                weighted.append(loss * weight)
                pairs = self.optimizer.compute_gradients(loss, replicated.copies[number], grad_loss=weight if self.synchronous else None)
            replicated.replica_gradients.append([gradient for gradient, _ in pairs])
        used = [any(own[index] is not None for own in replicated.replica_gradients) for index in range(len(replicated.copies[0]))]
        for rows in (replicated.copies, replicated.replica_gradients):
            for row in rows:
                row[:] = [item for item, is_used in zip(row, used, strict=True) if is_used]
        replicated.variables = replicated.copies[0]
        if not replicated.variables:
            loss = replicated.losses[0]
            raise InvalidArgumentError.at(loss.node, f"step: the loss '{loss.name}' depends on no trainable variable").advise(
                "Make what is to be learned by `gc.get_variable` or a layer within the step.",
                required="a loss that depends on a trainable variable",
                came=f"'{loss.name}'",
            )
        return weighted

    @property
    def _is_applied_once(self) -> bool:
        """True if the first replica applies the sums for all.

        An optimizer of one's own may expect each variable once, such as for a norm of all gradients.
        """
        return self.mirrored and type(self.optimizer).apply_gradients is not Optimizer.apply_gradients

    def _copied(self, replicated: Replicated, applied: Node) -> Iterator[Node]:
        """Give the other replicas the variables that the first has changed."""
        for index, first in enumerate(replicated.variables):
            for copy in [own[index] for own in replicated.copies if own[index] is not first]:
                with name_scope(f"{copy.op.name}/"), control_dependencies([applied]):
                    with device(first.device or None):
                        value = first.read_value()
                    with device(copy.device or None):
                        yield copy.assign(value).op

    def _sum(self, replicated: Replicated) -> None:
        """Add up the gradients of each variable."""
        replicated.gradients = []
        devices_by_name = {place.name: place for place in (*self.devices, *self.parameters)}
        least = self._least_of_rings(replicated)
        for index, variable in enumerate(replicated.variables):
            name = inner_name(variable, 0) if self.mirrored else variable.op.name
            copies = list({id(own[index]): own[index] for own in replicated.copies}.values())  # a single one if it is shared
            pairs = [
                (own[index], place) for own, place in zip(replicated.replica_gradients, self.devices, strict=True) if own[index] is not None
            ]
            if self._is_applied_once:
                copies = copies[:1]
            targets = self.devices if len(copies) > 1 else [devices_by_name.get(variable.device) or Device(variable.device)]
            with scope_of(name):
                total = add_up([gradient for gradient, _ in pairs], [place for _, place in pairs], targets, least, variable.shape)
            replicated.gradients += zip(total.values, copies, strict=True)
            replicated.ways[variable.op.name], replicated.seconds[variable.op.name] = total.way, total.seconds

    def _least_of_rings(self, replicated: Replicated) -> float:
        """The bytes of the smallest gradients that go around a ring; infinite without rings."""
        if self.reduce != "auto":
            return {"tree": math.inf, "ring": 0.0}[self.reduce]
        gradients = [next(gradient for gradient in row if gradient is not None) for row in zip(*replicated.replica_gradients, strict=True)]
        return predicted_least_of_rings(replicated.variables, gradients, self.devices, self.parameters, mirrored=self.mirrored)

    def _apply_alone(self, replicated: Replicated) -> None:
        """Let each replica change the variables on its own, and count the steps of others meanwhile."""
        counter = replicated.global_step
        assert counter is not None
        replicated.gradients, replicated.train_ops = [], []
        for variable in replicated.variables:
            if not variable.is_resource:
                raise InvalidArgumentError.at(
                    variable.op,
                    f"synchronous=False: required resource variables, which each replica reads after the number of steps; '{variable.op.name}' is a "
                    "reference",
                ).advise(
                    "Make the variable in the step by `gc.get_variable`, or with `use_resource=True`.",
                    required="a resource variable",
                    came=f"'{variable.op.name}', a reference",
                )
        for number, gradients in enumerate(replicated.replica_gradients):
            pairs = list(zip(gradients, replicated.variables, strict=True))
            scope = self.scopes[number]
            applied = self.optimizer.apply_gradients(pairs, name=f"{scope}{self.optimizer.name}/")
            with name_scope(scope), control_dependencies([applied]), device(counter.device or None):
                staleness = subtract(cast(counted(counter), int64), self.begun[number], name="staleness")
                replicated.train_ops.append(group(staleness, name="train_op"))
            replicated.staleness.append(staleness)
            replicated.gradients += pairs


def _check_call(step: Callable[..., Any], count: int) -> None:
    """Require that a step takes as many arguments as there are inputs."""
    try:
        signature = inspect.signature(step)
    except (TypeError, ValueError):  # a built-in function without a signature
        return
    try:
        signature.bind(*range(count))
    except TypeError as error:
        text = f"step: required a function that takes {count} arguments, its part of each of the inputs; {brief(step)} does not: {error}"
        raise InvalidArgumentError(text) from None
