"""Adam."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.dtypes import DType
from graphcore.graph import Node, Tensor, get_default_graph
from graphcore.tf1.framework import group
from graphcore.tf1.indexed_slices import IndexedSlices
from graphcore.tf1.math.elementwise import cast, sqrt
from graphcore.tf1.train.optimizers.by_op import OpOptimizer
from graphcore.tf1.variables.variables import Variable

_BETAS: Final = ("beta1", "beta2")


class AdamOptimizer(OpOptimizer):
    """Adam (Kingma and Ba, 2014): steps by the mean gradient over the root of its mean square.

    Where a gradient is slices, the means of the other rows fade, and their variables step along them, as with a gradient of zero.

    Args:
        learning_rate, beta1, beta2, epsilon: numbers, scalar tensors, or functions that return them.
        use_locking: the attr of the ops; assignments are atomic in any case.
        name: the name scope of a step.
    """

    _rule = "Adam"

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adam",
    ) -> None:
        super().__init__(use_locking, name, {"learning_rate": learning_rate, "beta1": beta1, "beta2": beta2, "epsilon": epsilon})

    def _create_slots(self, var_list: list[Variable]) -> None:
        first = min(var_list, key=lambda var: var.name)
        for name in _BETAS:
            self._create_non_slot_variable(self._first_power(name, first.dtype), f"{name}_power", first)
        for var in var_list:
            self._zeros_slot(var, "m", self._name)
            self._zeros_slot(var, "v", self._name)

    def _first_power(self, name: str, dtype: DType) -> Any:
        """The initial value of a power of a beta."""
        beta = self._call_if_callable(self._given[name])
        if isinstance(beta, Variable):
            beta = beta.initialized_value()
        return cast(beta, dtype) if isinstance(beta, Tensor) else np.asarray(beta, dtype.as_numpy)

    def _power(self, name: str, var: Variable) -> Variable:
        return self._others[f"{name}_power", var.graph]

    def _op_inputs(self, var: Variable) -> dict[str, Any]:
        return {
            "m": self._slot_handle(var, "m"),
            "v": self._slot_handle(var, "v"),
            **{f"{name}_power": self._converted(name, self._power(name, var), var.dtype) for name in _BETAS},
            "lr": self._number("learning_rate", var.dtype),
            **{name: self._number(name, var.dtype) for name in (*_BETAS, "epsilon")},
        }

    def _apply_sparse(self, grad: IndexedSlices, var: Variable) -> Any:
        return self._resource_apply_sparse(grad.values, var, grad.indices)

    def _resource_apply_sparse(self, grad: Tensor, handle: Variable, indices: Tensor) -> Any:
        inputs = self._op_inputs(handle)
        rate = inputs["lr"] * sqrt(1.0 - inputs["beta2_power"]) / (1.0 - inputs["beta1_power"])
        mean = self._faded(handle, "m", inputs["beta1"], grad, indices)
        square = self._faded(handle, "v", inputs["beta2"], grad * grad, indices)
        return group(handle.change("assign_sub", rate * mean / (sqrt(square) + inputs["epsilon"])), mean, square)

    def _faded(self, var: Variable, slot: str, beta: Tensor, grad: Tensor, indices: Tensor) -> Tensor:
        """The new value of a running mean, to which some rows are added."""
        mean = self._slots[slot, var.op]
        faded = mean.change("assign", mean * beta)
        with get_default_graph().control_dependencies([faded]):
            return mean.scatter_add(indices, grad * (1.0 - beta))

    def _finish(self, update_ops: list[Any], name_scope: str) -> Node:
        graph = get_default_graph()
        after: list[Node] = []
        powers = [(name, power) for name in _BETAS if (power := self._get_non_slot_variable(f"{name}_power")) is not None]
        with graph.control_dependencies(update_ops):
            after = [power.change("assign", power * self._number(name, power.dtype)) for name, power in powers]
        return group(*update_ops, *after, name=name_scope)
