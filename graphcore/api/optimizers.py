"""Optimizers, which add the nodes of a training step to the graph."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

from graphcore.api.framework import constant, group, zeros
from graphcore.api.gradients.gradients import gradients
from graphcore.api.math import cast
from graphcore.api.variables.collections import TRAINABLE_VARIABLES, VariableChoice
from graphcore.api.variables.variables import Variable, listed_variables
from graphcore.brief import brief
from graphcore.dtypes import DType
from graphcore.errors import FailedPreconditionError, InvalidArgumentError
from graphcore.graph import Graph, Node, Tensor
from graphcore.support.critical_section import critical_contextmanager

GradientsAndVariables = Sequence[tuple[Tensor | None, Variable]]


class Optimizer(ABC):
    """The base of all optimizers: gradients of a loss, updates of variables, and slots.

    Slots are the optimizer's own variables, several for each trained variable.

    Args:
        name: the name scope of the nodes of a step, and part of the names of slots.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._slots: dict[tuple[str, Node], Variable] = {}
        self._numbers: dict[tuple[str, DType], Tensor] = {}

    def __repr__(self) -> str:
        return f"<gc.{type(self).__name__} '{self.name}'>"

    def minimize(
        self,
        loss: Tensor,
        global_step: Variable | None = None,
        var_list: Sequence[Variable] | Variable | None = None,
        name: str | None = None,
        grad_loss: Tensor | None = None,
    ) -> Node:
        """Add a node that takes one step towards a smaller `loss`.

        Args:
            loss: the tensor to minimise.
            global_step: a variable that counts the steps.
            var_list: the variables to change; all trainable ones of the graph if None.
            name: the name of the node.
            grad_loss: the incoming gradient at `loss`, of its shape; ones if None.

        Raises:
            InvalidArgumentError: `loss` depends on none of the variables.
        """
        graph = _checked_loss(loss).graph
        chosen = _chosen(loss, var_list)

        def build() -> Node:
            with self._whole(graph):
                return self.apply_gradients(self.compute_gradients(loss, chosen.now(), grad_loss), global_step, name)

        return self._derived(graph, build, chosen)

    def compute_gradients(
        self, loss: Tensor, var_list: Sequence[Variable] | Variable | None = None, grad_loss: Tensor | None = None
    ) -> list[tuple[Tensor | None, Variable]]:
        """Pairs of the gradient of `loss` and the variable; None for a variable it does not depend on.

        Args:
            loss: the tensor to differentiate.
            var_list: the variables; all trainable ones of the graph if None.
            grad_loss: the incoming gradient at `loss`; ones if None.

        Raises:
            InvalidArgumentError: there is no variable.
        """
        graph = _checked_loss(loss).graph
        chosen = _chosen(loss, var_list)
        variables = chosen.now()

        def build() -> list[Tensor | None]:
            if chosen.names() != [variable.op.name for variable in variables]:
                raise FailedPreconditionError(f"there are other trainable variables now: {', '.join(chosen.names())}")
            return gradients(loss, chosen.now(), None if grad_loss is None else [grad_loss])

        found: list[Tensor | None] = graph.derivations.derive(
            f"the gradients of '{loss.name}'", build, fingerprint=chosen.names, keeps_result=True
        )
        return list(zip(found, variables, strict=True))

    def apply_gradients(self, grads_and_vars: GradientsAndVariables, global_step: Variable | None = None, name: str | None = None) -> Node:
        """Add a node that takes one step along given gradients.

        Args:
            grads_and_vars: the results of `compute_gradients`, possibly changed; a variable with gradient None is unchanged.
            global_step: a variable that counts the steps.
            name: the name of the node.

        Raises:
            InvalidArgumentError: there is no gradient at all.
        """
        if global_step is not None and not isinstance(global_step, Variable):
            raise InvalidArgumentError(f"global_step: required a variable, or None, got {brief(global_step)}")
        useful = [(gradient, variable) for gradient, variable in grads_and_vars if gradient is not None]
        if not useful:
            names = ", ".join(f"'{variable.op.name}'" for _, variable in grads_and_vars)
            raise InvalidArgumentError(f"No gradients provided for any variable: {names or 'none was given'}.")
        graph = useful[0][1].graph
        chosen = VariableChoice(graph, [variable for _, variable in useful])

        def build() -> Node:
            with self._whole(graph), graph.as_default():
                tensors = [graph.present(gradient) for gradient, _ in useful]
                return self._apply(graph, list(zip(tensors, chosen.now(), strict=True)), global_step, name)

        return self._derived(graph, build, chosen)

    def _apply(self, graph: Graph, grads_and_vars: list[tuple[Tensor, Variable]], global_step: Variable | None, name: str | None) -> Node:
        self._create_slots([variable for _, variable in grads_and_vars])
        with graph.name_scope(name or self.name) as scope:
            self._numbers.clear()
            updates = [self._update(graph, gradient, variable) for gradient, variable in grads_and_vars]
            steps = self._finish(updates)
            if global_step is None:
                return group(*steps, name=scope)
            with graph.control_dependencies(steps):
                return global_step.change("assign_add", 1, name=scope)

    def _derived(self, graph: Graph, build: Callable[[], Node], chosen: VariableChoice) -> Node:
        """Build the step; it is rebuilt when the variables, their shapes or dtypes change."""
        made: Node = graph.derivations.derive(f"the training step of {self!r}", build, fingerprint=chosen.kinds)
        return made

    @critical_contextmanager
    def _whole(self, graph: Graph) -> Iterator[None]:
        """Restore graph and slots if the block fails."""
        kept = [dict(each) for each in self._kept()]
        with nullcontext() if graph.outer is not None else graph.transaction():
            try:
                yield
            except BaseException:
                for each, before in zip(self._kept(), kept, strict=True):
                    each.clear()
                    each.update(before)
                raise

    def _kept(self) -> list[dict[Any, Variable]]:
        """The variables used by its steps."""
        return [self._slots]

    def get_slot(self, variable: Variable, name: str) -> Variable | None:
        """The slot `name` beside `variable`, None if there is none (yet)."""
        return self._slots.get((name, variable.op))

    def _update(self, graph: Graph, gradient: Tensor, variable: Variable) -> Node:
        with graph.device(variable.device or None):
            op, inputs, attrs = self._step(gradient, variable)
            whole = f"Resource{op}" if variable.is_resource else op
            return graph.apply_op(whole, inputs, attrs, f"update_{variable.op.name}/{whole}")

    def _slot_suffixes(self) -> dict[str, str]:
        """The slots of each variable, with the suffixes of their names."""
        return {}

    def _create_slots(self, variables: list[Variable]) -> None:
        """Make the variables that a step needs."""
        for variable in variables:
            for slot, suffix in self._slot_suffixes().items():
                self._zeros_slot(variable, slot, suffix)

    @abstractmethod
    def _step(self, gradient: Tensor, variable: Variable) -> tuple[str, list[Any], dict[str, Any]]:
        """Op, inputs and attrs of the update of one variable.

        The op is that on references; the one on resources has the prefix `Resource`.
        """

    def _finish(self, updates: list[Node]) -> list[Node]:
        """The nodes of a complete step: the updates, and further work after them."""
        return updates

    def _zeros_slot(self, variable: Variable, slot: str, suffix: str) -> None:
        known = self._slots.get((slot, variable.op))
        if _is_in_graph(known, variable.graph) and known is not None and (known.dtype, known.shape) == (variable.dtype, variable.shape):
            return
        sizes = [size for size in variable.shape.as_list() if size is not None]
        with variable.graph.name_scope(None), variable.graph.device(variable.device or None):
            made = Variable(
                lambda: zeros(sizes, variable.dtype),
                trainable=False,
                name=f"{variable.op.name}/{suffix}",
                use_resource=variable.is_resource,
            )
        self._slots[slot, variable.op] = made

    def _number(self, value: Any, variable: Variable, name: str) -> Tensor:
        """A number or scalar tensor in the dtype of `variable`."""
        dtype = variable.dtype
        if (name, dtype) not in self._numbers:
            is_tensor = isinstance(value, Tensor | Variable)
            tensor = value.as_tensor() if isinstance(value, Variable) else value
            self._numbers[name, dtype] = cast(tensor, dtype) if is_tensor else constant(value, dtype, name=name)
        return self._numbers[name, dtype]


def _chosen(loss: Tensor, var_list: Sequence[Variable] | Variable | None) -> VariableChoice:
    given = None if var_list is None else listed_variables("var_list", var_list)
    chosen = VariableChoice(loss.graph, given, TRAINABLE_VARIABLES)
    if not chosen.now():
        raise InvalidArgumentError.at(loss.node, "No variables to optimize.")
    return chosen


def _checked_loss(loss: Tensor) -> Tensor:
    if not isinstance(loss, Tensor | Variable):
        raise InvalidArgumentError(f"loss: required a tensor, got {brief(loss)}")
    return loss


def _is_in_graph(variable: Variable | None, graph: Graph) -> bool:
    """True iff a variable is in its graph permanently: not while the cell that made it runs again."""
    return variable is not None and variable.op in graph and not graph.cells.may_replace(variable.op)


class GradientDescentOptimizer(Optimizer):
    """`variable -= learning_rate * gradient`.

    Args:
        learning_rate: a number or a scalar tensor.
        use_locking: the attr of the ops; assignments are atomic in any case.
        name: the name scope of a step.
    """

    def __init__(self, learning_rate: Any, use_locking: bool = False, name: str = "GradientDescent") -> None:
        super().__init__(name)
        self._learning_rate = learning_rate
        self._attrs = {"use_locking": use_locking}

    def _step(self, gradient: Tensor, variable: Variable) -> tuple[str, list[Any], dict[str, Any]]:
        rate = self._number(self._learning_rate, variable, "learning_rate")
        return "ApplyGradientDescent", [variable.handle, rate, gradient], self._attrs


class MomentumOptimizer(Optimizer):
    """`accumulation = momentum * accumulation + gradient; variable -= learning_rate * accumulation`.

    The gradient of a variable with gathered rows is dense, with zeros in the other rows; so these rows continue along their accumulations,
    whereas in TensorFlow they are unchanged.

    Args:
        learning_rate, momentum: numbers or scalar tensors.
        use_locking: the attr of the ops; assignments are atomic in any case.
        name: the name scope of a step.
        use_nesterov: step along `gradient + momentum * accumulation` instead.
    """

    def __init__(
        self, learning_rate: Any, momentum: Any, use_locking: bool = False, name: str = "Momentum", use_nesterov: bool = False
    ) -> None:
        super().__init__(name)
        self._learning_rate = learning_rate
        self._momentum = momentum
        self._attrs = {"use_locking": use_locking, "use_nesterov": use_nesterov}

    def _slot_suffixes(self) -> dict[str, str]:
        return {"momentum": self.name}

    def _step(self, gradient: Tensor, variable: Variable) -> tuple[str, list[Any], dict[str, Any]]:
        accumulation = self._slots["momentum", variable.op].handle
        rate = self._number(self._learning_rate, variable, "learning_rate")
        momentum = self._number(self._momentum, variable, "momentum")
        return "ApplyMomentum", [variable.handle, accumulation, rate, gradient, momentum], self._attrs


class AdamOptimizer(Optimizer):
    """Adam (Kingma and Ba, 2014): steps by the mean gradient over the root of its mean square.

    Args:
        learning_rate, beta1, beta2, epsilon: numbers or scalar tensors.
        use_locking: the attr of the ops; assignments are atomic in any case.
        name: the name scope of a step.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adam",
    ) -> None:
        super().__init__(name)
        self._learning_rate = learning_rate
        self._betas = {"beta1": beta1, "beta2": beta2}
        self._epsilon = epsilon
        self._attrs = {"use_locking": use_locking}
        self._powers: dict[tuple[str, Graph], Variable] = {}

    def _slot_suffixes(self) -> dict[str, str]:
        return {"m": self.name, "v": f"{self.name}_1"}

    def _create_slots(self, variables: list[Variable]) -> None:
        super()._create_slots(variables)
        first = min(variables, key=lambda variable: variable.name)
        for name, beta in self._betas.items():
            if not _is_in_graph(self._powers.get((name, first.graph)), first.graph):
                with first.graph.name_scope(None):
                    initial = cast(beta, first.dtype) if isinstance(beta, Tensor | Variable) else beta
                    self._powers[name, first.graph] = Variable(
                        initial, trainable=False, name=f"{name}_power", dtype=first.dtype, use_resource=first.is_resource
                    )

    def _kept(self) -> list[dict[Any, Variable]]:
        return [self._slots, self._powers]

    def _step(self, gradient: Tensor, variable: Variable) -> tuple[str, list[Any], dict[str, Any]]:
        slots = [self._slots[name, variable.op].handle for name in ("m", "v")]
        powers = [self._number(self._powers[name, variable.graph], variable, f"{name}_power") for name in self._betas]
        rate = self._number(self._learning_rate, variable, "learning_rate")
        betas = [self._number(beta, variable, name) for name, beta in self._betas.items()]
        epsilon = self._number(self._epsilon, variable, "epsilon")
        return "ApplyAdam", [variable.handle, *slots, *powers, rate, *betas, epsilon, gradient], self._attrs

    def _finish(self, updates: list[Node]) -> list[Node]:
        after: list[Node] = []
        with updates[0].graph.control_dependencies(updates):
            for name in self._betas:
                power = self._powers[name, updates[0].graph]
                after.append(power.change("assign", power * self._number(self._betas[name], power, name)))
        return [*updates, *after]
