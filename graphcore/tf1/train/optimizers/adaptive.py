"""Optimizers with a rate of its own for each element, from its gradients so far."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphcore.dtypes import int64
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor
from graphcore.tf1.arrays.layout import identity, ones_like
from graphcore.tf1.framework import constant
from graphcore.tf1.math.elementwise import cast
from graphcore.tf1.train.optimizers.by_op import OpOptimizer
from graphcore.tf1.variables.variables import Variable


def filled_slot(optimizer: OpOptimizer, var: Variable, value: float, slot_name: str, op_name: str) -> Variable:
    """The slot of `var` with all elements `value` at the start."""

    def initial() -> Tensor:
        sizes = var.shape
        if sizes.is_fully_defined:
            numpy: Any = var.dtype.as_numpy
            return constant(np.full([size or 0 for size in sizes.as_list()], value, numpy), var.dtype)
        return ones_like(var.initialized_value()) * constant(value, var.dtype)

    return optimizer._get_or_make_slot(var, initial, slot_name, op_name)


class AdagradOptimizer(OpOptimizer):
    """Adagrad (Duchi et al., 2011): steps over the root of the sum of all squared gradients.

    Args:
        learning_rate: a number, a scalar tensor, or a function that returns one.
        initial_accumulator_value: the sum at the start, above 0.
        use_locking: the attr of the ops; assignments are atomic in any case.
        name: the name scope of a step.

    Raises:
        InvalidArgumentError: an initial value of 0 or less.
    """

    _rule = "Adagrad"

    def __init__(
        self, learning_rate: Any, initial_accumulator_value: float = 0.1, use_locking: bool = False, name: str = "Adagrad"
    ) -> None:
        require_positive("initial_accumulator_value", initial_accumulator_value)
        super().__init__(use_locking, name, {"learning_rate": learning_rate})
        self._initial = initial_accumulator_value

    def _create_slots(self, var_list: list[Variable]) -> None:
        for var in var_list:
            filled_slot(self, var, self._initial, "accumulator", self._name)

    def _op_inputs(self, var: Variable) -> dict[str, Any]:
        return {"accum": self._slot_handle(var, "accumulator"), "lr": self._number("learning_rate", var.dtype)}


class AdagradDAOptimizer(OpOptimizer):
    """Adagrad with dual averaging: all gradients so far, with regularization, give the variable anew.

    Args:
        learning_rate: a number, a scalar tensor, or a function that returns one.
        global_step: the variable that counts the steps.
        initial_gradient_squared_accumulator_value: the sum of squares at the start, above 0.
        l1_regularization_strength, l2_regularization_strength: numbers, scalar tensors, or functions that return them.
        use_locking: the attr of the ops; assignments are atomic in any case.
        name: the name scope of a step.

    Raises:
        InvalidArgumentError: an initial value of 0 or less, or a global step that is no variable.
    """

    _rule = "AdagradDA"

    def __init__(
        self,
        learning_rate: Any,
        global_step: Variable,
        initial_gradient_squared_accumulator_value: float = 0.1,
        l1_regularization_strength: Any = 0.0,
        l2_regularization_strength: Any = 0.0,
        use_locking: bool = False,
        name: str = "AdagradDA",
    ) -> None:
        require_positive("initial_gradient_squared_accumulator_value", initial_gradient_squared_accumulator_value)
        if not isinstance(global_step, Variable):
            raise InvalidArgumentError(f"global_step: required a variable, got {global_step!r}")
        numbers = {"learning_rate": learning_rate, "l1": l1_regularization_strength, "l2": l2_regularization_strength}
        super().__init__(use_locking, name, numbers)
        self._initial = initial_gradient_squared_accumulator_value
        self._global_step = global_step
        self._step: Tensor | None = None

    def _create_slots(self, var_list: list[Variable]) -> None:
        for var in var_list:
            filled_slot(self, var, 0.0, "gradient_accumulator", self._name)
            filled_slot(self, var, self._initial, "gradient_squared_accumulator", self._name)

    def _prepare(self) -> None:
        super()._prepare()
        self._step = cast(identity(self._global_step) + 1, int64)

    def _op_inputs(self, var: Variable) -> dict[str, Any]:
        return {
            "gradient_accumulator": self._slot_handle(var, "gradient_accumulator"),
            "gradient_squared_accumulator": self._slot_handle(var, "gradient_squared_accumulator"),
            "lr": self._number("learning_rate", var.dtype),
            "l1": self._number("l1", var.dtype),
            "l2": self._number("l2", var.dtype),
            "global_step": self._step,
        }


class AdadeltaOptimizer(OpOptimizer):
    """Adadelta (Zeiler, 2012): steps in proportion to the mean size of the steps before.

    Args:
        learning_rate, rho, epsilon: numbers, scalar tensors, or functions that return them.
        use_locking: the attr of the ops; assignments are atomic in any case.
        name: the name scope of a step.
    """

    _rule = "Adadelta"

    def __init__(
        self, learning_rate: Any = 0.001, rho: Any = 0.95, epsilon: Any = 1e-8, use_locking: bool = False, name: str = "Adadelta"
    ) -> None:
        super().__init__(use_locking, name, {"lr": learning_rate, "rho": rho, "epsilon": epsilon})

    def _create_slots(self, var_list: list[Variable]) -> None:
        for var in var_list:
            self._zeros_slot(var, "accum", self._name)
            self._zeros_slot(var, "accum_update", self._name)

    def _op_inputs(self, var: Variable) -> dict[str, Any]:
        slots = {name: self._slot_handle(var, name) for name in ("accum", "accum_update")}
        return slots | {name: self._number(name, var.dtype) for name in ("lr", "rho", "epsilon")}


class RMSPropOptimizer(OpOptimizer):
    """RMSProp: steps over the root of the mean squared gradient, with momentum.

    Args:
        learning_rate, decay, momentum, epsilon: numbers, scalar tensors, or functions that return them.
        use_locking: the attr of the ops; assignments are atomic in any case.
        centered: divide by the root of the variance of the gradient instead.
        name: the name scope of a step.
    """

    def __init__(
        self,
        learning_rate: Any,
        decay: Any = 0.9,
        momentum: Any = 0.0,
        epsilon: Any = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        name: str = "RMSProp",
    ) -> None:
        numbers = {"learning_rate": learning_rate, "decay": decay, "momentum": momentum, "epsilon": epsilon}
        super().__init__(use_locking, name, numbers)
        self._centered = centered
        self._rule = "CenteredRMSProp" if centered else "RMSProp"

    def _create_slots(self, var_list: list[Variable]) -> None:
        for var in var_list:
            filled_slot(self, var, 1.0, "rms", self._name)
            if self._centered:
                self._zeros_slot(var, "mg", self._name)
            self._zeros_slot(var, "momentum", self._name)

    def _op_inputs(self, var: Variable) -> dict[str, Any]:
        return {
            "ms": self._slot_handle(var, "rms"),
            "mom": self._slot_handle(var, "momentum"),
            "lr": self._number("learning_rate", var.dtype),
            "rho": self._number("decay", var.dtype),
            "momentum": self._number("momentum", var.dtype),
            "epsilon": self._number("epsilon", var.dtype),
            **({"mg": self._slot_handle(var, "mg")} if self._centered else {}),
        }


def require_positive(name: str, value: float) -> None:
    """Check that a number is above 0.

    Raises:
        InvalidArgumentError: it is not.
    """
    if value <= 0.0:
        raise InvalidArgumentError(f"{name} must be positive: {value}")
