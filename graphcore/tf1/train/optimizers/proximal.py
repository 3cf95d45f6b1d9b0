"""Optimizers with regularization in the step itself."""

from __future__ import annotations

from typing import Any

from graphcore.errors import InvalidArgumentError
from graphcore.tf1.train.optimizers.adaptive import filled_slot, require_positive
from graphcore.tf1.train.optimizers.by_op import OpOptimizer
from graphcore.tf1.variables.variables import Variable


class ProximalGradientDescentOptimizer(OpOptimizer):
    """Gradient descent, then the proximal step of L1 and L2 regularization.

    Args:
        learning_rate: a number, a scalar tensor, or a function that returns one.
        l1_regularization_strength, l2_regularization_strength: the same, 0 or more.
        use_locking: the attr of the ops; assignments are atomic in any case.
        name: the name scope of a step.
    """

    _rule = "ProximalGradientDescent"

    def __init__(
        self,
        learning_rate: Any,
        l1_regularization_strength: Any = 0.0,
        l2_regularization_strength: Any = 0.0,
        use_locking: bool = False,
        name: str = "ProximalGradientDescent",
    ) -> None:
        numbers = {"learning_rate": learning_rate, "l1": l1_regularization_strength, "l2": l2_regularization_strength}
        super().__init__(use_locking, name, numbers)

    def _op_inputs(self, var: Variable) -> dict[str, Any]:
        return {"alpha": self._number("learning_rate", var.dtype), **{name: self._number(name, var.dtype) for name in ("l1", "l2")}}


class ProximalAdagradOptimizer(OpOptimizer):
    """Adagrad, then the proximal step of L1 and L2 regularization.

    Args:
        learning_rate: a number, a scalar tensor, or a function that returns one.
        initial_accumulator_value: the sum of squared gradients at the start, above 0.
        l1_regularization_strength, l2_regularization_strength: as `learning_rate`, 0 or more.
        use_locking: the attr of the ops; assignments are atomic in any case.
        name: the name scope of a step.

    Raises:
        InvalidArgumentError: an initial value of 0 or less.
    """

    _rule = "ProximalAdagrad"

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: Any = 0.0,
        l2_regularization_strength: Any = 0.0,
        use_locking: bool = False,
        name: str = "ProximalAdagrad",
    ) -> None:
        require_positive("initial_accumulator_value", initial_accumulator_value)
        numbers = {"learning_rate": learning_rate, "l1": l1_regularization_strength, "l2": l2_regularization_strength}
        super().__init__(use_locking, name, numbers)
        self._initial = initial_accumulator_value

    def _create_slots(self, var_list: list[Variable]) -> None:
        for var in var_list:
            filled_slot(self, var, self._initial, "accumulator", self._name)

    def _op_inputs(self, var: Variable) -> dict[str, Any]:
        return {
            "accum": self._slot_handle(var, "accumulator"),
            "lr": self._number("learning_rate", var.dtype),
            **{name: self._number(name, var.dtype) for name in ("l1", "l2")},
        }


class FtrlOptimizer(OpOptimizer):
    """FTRL (McMahan et al., 2013): the regularized leader of all linearized losses so far.

    Args:
        learning_rate: a number, a scalar tensor, or a function that returns one.
        learning_rate_power: the power of the sum of squared gradients by which rates fall, 0 or less.
        initial_accumulator_value: the sum of squared gradients at the start, 0 or more.
        l1_regularization_strength, l2_regularization_strength: numbers, 0 or more.
        use_locking: the attr of the ops; assignments are atomic in any case.
        name: the name scope of a step.
        accum_name, linear_name: parts of the names of its slots; `name` if None.
        l2_shrinkage_regularization_strength: a penalty on the size of the variable itself, 0 or more.

    Raises:
        InvalidArgumentError: a number outside of these ranges.
    """

    def __init__(
        self,
        learning_rate: Any,
        learning_rate_power: Any = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: Any = 0.0,
        l2_regularization_strength: Any = 0.0,
        use_locking: bool = False,
        name: str = "Ftrl",
        accum_name: str | None = None,
        linear_name: str | None = None,
        l2_shrinkage_regularization_strength: Any = 0.0,
    ) -> None:
        for what, value in (
            ("initial_accumulator_value", initial_accumulator_value),
            ("l1_regularization_strength", l1_regularization_strength),
            ("l2_regularization_strength", l2_regularization_strength),
            ("l2_shrinkage_regularization_strength", l2_shrinkage_regularization_strength),
        ):
            if value < 0.0:
                raise InvalidArgumentError(f"{what} {value} needs to be positive or zero")
        if learning_rate_power > 0.0:
            raise InvalidArgumentError(f"learning_rate_power {learning_rate_power} needs to be negative or zero")
        numbers = {
            "learning_rate": learning_rate,
            "l1": l1_regularization_strength,
            "l2": l2_regularization_strength,
            "l2_shrinkage": l2_shrinkage_regularization_strength,
            "lr_power": learning_rate_power,
        }
        super().__init__(use_locking, name, numbers)
        self._initial = initial_accumulator_value
        self._slot_names = {"accum": accum_name or name, "linear": linear_name or name}
        self._shrinks = l2_shrinkage_regularization_strength > 0.0
        self._rule = "FtrlV2" if self._shrinks else "Ftrl"

    def _create_slots(self, var_list: list[Variable]) -> None:
        for var in var_list:
            filled_slot(self, var, self._initial, "accum", self._slot_names["accum"])
            self._zeros_slot(var, "linear", self._slot_names["linear"])

    def _op_inputs(self, var: Variable) -> dict[str, Any]:
        names = ["l1", "l2", "lr_power", *(["l2_shrinkage"] if self._shrinks else [])]
        return {
            "accum": self._slot_handle(var, "accum"),
            "linear": self._slot_handle(var, "linear"),
            "lr": self._number("learning_rate", var.dtype),
            **{name: self._number(name, var.dtype) for name in names},
        }
