"""`tf.ConditionalAccumulator` and `tf.SparseConditionalAccumulator`: gradients gathered over runs."""

from __future__ import annotations

from typing import Any, NamedTuple

from graphcore.dtypes import DType, as_dtype, int64
from graphcore.graph import Node, Tensor, get_default_graph
from graphcore.shapes import Shape, as_shape
from graphcore.tf1.framework import convert_to_tensor
from graphcore.tf1.indexed_slices import IndexedSlices
from graphcore.tf1.math.elementwise import cast

__all__ = ["ConditionalAccumulator", "ConditionalAccumulatorBase", "SparseConditionalAccumulator"]


class SparseGradient(NamedTuple):
    """The mean of the gradients of rows: the numbers of the rows, their values, and the whole shape."""

    indices: Tensor
    values: Tensor
    shape: Tensor


class ConditionalAccumulatorBase:
    """An accumulator of gradients; its subclasses make one.

    Args:
        dtype: the dtype of the gradients.
        shape: their shape; None for any.
        accumulator_ref: the tensor with its handle.
    """

    _prefix = "Resource"

    def __init__(self, dtype: Any, shape: Any, accumulator_ref: Tensor) -> None:
        self._dtype = as_dtype(dtype)
        self._shape = Shape(None) if shape is None else as_shape(shape)
        self._accumulator_ref = accumulator_ref
        self._name = accumulator_ref.node.name.rpartition("/")[2]

    def __repr__(self) -> str:
        return f"<gc.{type(self).__name__} '{self._name}' of {self._dtype.text} {self._shape}>"

    @property
    def accumulator_ref(self) -> Tensor:
        """The tensor with its handle."""
        return self._accumulator_ref

    @property
    def name(self) -> str:
        """The name of its node, without scopes."""
        return self._name

    @property
    def dtype(self) -> DType:
        """The dtype of the gradients."""
        return self._dtype

    def num_accumulated(self, name: str | None = None) -> Tensor:
        """The number of gradients in it. -> int32, a scalar."""
        return self._apply(f"{self._prefix}AccumulatorNumAccumulated", [], {}, name or f"{self._name}_NumAccumulated").outputs[0]

    def set_global_step(self, new_global_step: Any, name: str | None = None) -> Node:
        """A node that sets the step below which gradients are dropped."""
        step = _step(new_global_step)
        return self._apply(f"{self._prefix}AccumulatorSetGlobalStep", [step], {}, name)

    def _apply(self, op: str, inputs: list[Any], attrs: dict[str, Any], name: str | None) -> Node:
        return self._accumulator_ref.graph.building().apply_op(op, [self._accumulator_ref, *inputs], attrs, name)


class ConditionalAccumulator(ConditionalAccumulatorBase):
    """An accumulator of gradients of one shape, which gives their mean once there are enough.

    Args:
        dtype: the dtype of the gradients.
        shape: their shape; None for any.
        shared_name: accumulators with the same name are one.
        name: the name of the node.
        reduction_type: "MEAN" or "SUM".
    """

    def __init__(
        self,
        dtype: Any,
        shape: Any = None,
        shared_name: str | None = None,
        name: str = "conditional_accumulator",
        reduction_type: str = "MEAN",
    ) -> None:
        super().__init__(dtype, shape, _made("ResourceConditionalAccumulator", dtype, shape, shared_name, name, reduction_type))

    def apply_grad(self, grad: Any, local_step: Any = 0, name: str | None = None) -> Node:
        """A node that adds a gradient, unless `local_step` is before the step of the accumulator."""
        gradient = convert_to_tensor(grad, self._dtype)
        gradient.shape.assert_is_compatible_with(self._shape)
        return self._apply("ResourceAccumulatorApplyGradient", [_step(local_step), gradient], {}, name)

    def take_grad(self, num_required: Any, name: str | None = None) -> Tensor:
        """The mean of the gradients, once there are `num_required`. Then it begins anew, with the next step."""
        gradient = self._apply("ResourceAccumulatorTakeGradient", [num_required], {"dtype": self._dtype}, name).outputs[0]
        gradient.set_shape(self._shape)
        return gradient


class SparseConditionalAccumulator(ConditionalAccumulatorBase):
    """An accumulator of gradients of rows, which gives the mean of each row once there are enough.

    Args:
        dtype: the dtype of the gradients.
        shape: the shape of the whole; None for any.
        shared_name: accumulators with the same name are one.
        name: the name of the node.
        reduction_type: "MEAN" or "SUM".
    """

    _prefix = ""

    def __init__(
        self,
        dtype: Any,
        shape: Any = None,
        shared_name: str | None = None,
        name: str = "sparse_conditional_accumulator",
        reduction_type: str = "MEAN",
    ) -> None:
        super().__init__(dtype, shape, _made("SparseConditionalAccumulator", dtype, shape, shared_name, name, reduction_type))

    def apply_indexed_slices_grad(self, grad: IndexedSlices, local_step: Any = 0, name: str | None = None) -> Node:
        """A node that adds a gradient given as slices; see `apply_grad`."""
        return self.apply_grad(grad.indices, grad.values, grad.dense_shape, local_step, name)

    def apply_grad(self, grad_indices: Any, grad_values: Any, grad_shape: Any = None, local_step: Any = 0, name: str | None = None) -> Node:
        """A node that adds a gradient of rows, unless `local_step` is before the step of the accumulator.

        Args:
            grad_indices: [n], the numbers of the rows.
            grad_values: [n, ...], their values.
            grad_shape: the shape of the whole, if known.
            local_step: the step of the gradient.
            name: the name of the node.
        """
        values = convert_to_tensor(grad_values, self._dtype)
        shape = convert_to_tensor([], int64) if grad_shape is None else cast(grad_shape, int64)
        inputs = [_step(local_step), cast(grad_indices, int64), values, shape]
        return self._apply("SparseAccumulatorApplyGradient", inputs, {"has_known_shape": grad_shape is not None}, name)

    def take_grad(self, num_required: Any, name: str | None = None) -> SparseGradient:
        """The mean of the gradients of each row, once there are `num_required`. Then it begins anew, with the next step."""
        return SparseGradient(*self._apply("SparseAccumulatorTakeGradient", [num_required], {"dtype": self._dtype}, name).outputs)

    def take_indexed_slices_grad(self, num_required: Any, name: str | None = None) -> IndexedSlices:
        """The result of `take_grad` as `gc.IndexedSlices`."""
        slices = self.take_grad(num_required, name)
        return IndexedSlices(slices.values, slices.indices, slices.shape)


def _step(value: Any) -> Tensor:
    return cast(convert_to_tensor(value), int64)


def _made(op: str, dtype: Any, shape: Any, shared_name: str | None, name: str, reduction_type: str) -> Tensor:
    known_shape = Shape(None) if shape is None else as_shape(shape)
    attrs = {"dtype": as_dtype(dtype), "shape": known_shape, "shared_name": shared_name or "", "reduction_type": reduction_type}
    return get_default_graph().apply_op(op, [], attrs, name).outputs[0]
