"""Steps along the gradient, with or without momentum."""

from __future__ import annotations

from typing import Any

from graphcore.graph import Tensor
from graphcore.tf1.indexed_slices import IndexedSlices
from graphcore.tf1.train.optimizers.by_op import OpOptimizer
from graphcore.tf1.variables.variables import Variable


class GradientDescentOptimizer(OpOptimizer):
    """`variable -= learning_rate * gradient`.

    Args:
        learning_rate: a number, a scalar tensor, or a function that returns one.
        use_locking: the attr of the ops; assignments are atomic in any case.
        name: the name scope of a step.
    """

    _rule = "GradientDescent"

    def __init__(self, learning_rate: Any, use_locking: bool = False, name: str = "GradientDescent") -> None:
        super().__init__(use_locking, name, {"learning_rate": learning_rate})

    def _op_inputs(self, var: Variable) -> dict[str, Any]:
        return {"alpha": self._number("learning_rate", var.dtype)}

    def _apply_sparse_duplicate_indices(self, grad: IndexedSlices, var: Variable) -> Any:
        return self._resource_apply_sparse_duplicate_indices(grad.values, var, grad.indices)

    def _resource_apply_sparse_duplicate_indices(self, grad: Tensor, handle: Variable, indices: Tensor) -> Any:
        return handle.change("scatter_sub", indices, grad * self._number("learning_rate", handle.dtype))


class MomentumOptimizer(OpOptimizer):
    """`accumulation = momentum * accumulation + gradient; variable -= learning_rate * accumulation`.

    Where a gradient is slices, rows without one are unchanged, and so are their accumulations.

    Args:
        learning_rate, momentum: numbers, scalar tensors, or functions that return them.
        use_locking: the attr of the ops; assignments are atomic in any case.
        name: the name scope of a step.
        use_nesterov: step along `gradient + momentum * accumulation` instead.
    """

    _rule = "Momentum"

    def __init__(
        self, learning_rate: Any, momentum: Any, use_locking: bool = False, name: str = "Momentum", use_nesterov: bool = False
    ) -> None:
        super().__init__(use_locking, name, {"learning_rate": learning_rate, "momentum": momentum})
        self._use_nesterov = use_nesterov

    def _create_slots(self, var_list: list[Variable]) -> None:
        for var in var_list:
            self._zeros_slot(var, "momentum", self._name)

    def _op_attrs(self) -> dict[str, Any]:
        return {"use_nesterov": self._use_nesterov}

    def _op_inputs(self, var: Variable) -> dict[str, Any]:
        return {
            "accum": self._slot_handle(var, "momentum"),
            "lr": self._number("learning_rate", var.dtype),
            "momentum": self._number("momentum", var.dtype),
        }
