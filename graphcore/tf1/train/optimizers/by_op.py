"""Optimizers whose updates are single ops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphcore.dtypes import DType
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Node, Tensor, get_default_graph
from graphcore.tf1.framework import constant
from graphcore.tf1.indexed_slices import IndexedSlices
from graphcore.tf1.math.elementwise import cast
from graphcore.tf1.train.optimizers.optimizer import Optimizer
from graphcore.tf1.variables.references import body_that_changes, handle_here
from graphcore.tf1.variables.variables import Variable


class OpOptimizer(Optimizer):
    """An optimizer whose update of one variable is one op.

    The op on references is `Apply` with `_rule`, that on some rows `SparseApply`; those on resources have the prefix `Resource`. Inputs
    go by their names in the OpDef.

    Args:
        use_locking: the attr of the ops; assignments are atomic in any case.
        name: the name scope of a step.
        numbers: the hyperparameters: numbers, scalar tensors, or functions that return them.
    """

    _rule: str

    def __init__(self, use_locking: bool, name: str, numbers: Mapping[str, Any]) -> None:
        super().__init__(use_locking, name)
        self._given = dict(numbers)
        self._scope = ""
        self._called: dict[str, Any] = {}
        self._made: dict[tuple[str, DType], Tensor] = {}

    def _prepare(self) -> None:
        self._scope = get_default_graph().scopes.name
        self._called.clear()
        self._made.clear()

    def _number(self, name: str, dtype: DType) -> Tensor:
        """A hyperparameter in the dtype of a variable.

        Raises:
            InvalidArgumentError: it is no scalar.
        """
        if (name, dtype) not in self._made:
            if name not in self._called:
                self._called[name] = self._call_if_callable(self._given[name])
            with get_default_graph().name_scope(self._scope):
                self._made[name, dtype] = self._converted(name, self._called[name], dtype)
        return self._made[name, dtype]

    def _converted(self, name: str, value: Any, dtype: DType) -> Tensor:
        if isinstance(value, Variable):
            value = value.as_tensor()
        tensor = cast(value, dtype) if isinstance(value, Tensor) else constant(value, dtype, name=name)
        if tensor.shape.rank not in {0, None}:
            raise InvalidArgumentError(f"{self!r}: required a scalar for {name}, got shape {tensor.shape}")
        return tensor

    def _op_inputs(self, var: Variable) -> dict[str, Any]:
        """The inputs of the op beside the variable, its gradient and indices, by their names in the OpDef."""
        raise self._undefined("_op_inputs", self, var)

    def _op_attrs(self) -> dict[str, Any]:
        """The attrs of the op beside `use_locking`."""
        return {}

    def _apply_op(self, prefix: str, var: Variable, grad: Tensor, indices: Tensor | None = None) -> Node:
        by_handle = var.is_resource or body_that_changes(var) is not None
        op = f"{'Resource' if by_handle else ''}{prefix}{self._rule}"
        graph = get_default_graph()
        values = {"var": handle_here(var), "grad": grad, "delta": grad, "indices": indices, **self._op_inputs(var)}
        inputs = [values[arg.name] for arg in graph.look_up(op).op_def.input_arg]
        return graph.apply_op(op, inputs, {"use_locking": self._use_locking, **self._op_attrs()}, None)

    def _slot_handle(self, var: Variable, name: str) -> Tensor:
        return handle_here(self._slots[name, var.op])

    def _apply_dense(self, grad: Tensor, var: Variable) -> Any:
        return self._apply_op("Apply", var, grad)

    def _resource_apply_dense(self, grad: Tensor, handle: Variable) -> Any:
        return self._apply_op("Apply", handle, grad)

    def _apply_sparse(self, grad: IndexedSlices, var: Variable) -> Any:
        return self._apply_op("SparseApply", var, grad.values, grad.indices)

    def _resource_apply_sparse(self, grad: Tensor, handle: Variable, indices: Tensor) -> Any:
        return self._apply_op("SparseApply", handle, grad, indices)
