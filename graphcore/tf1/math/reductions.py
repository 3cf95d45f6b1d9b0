"""Reductions along axes, norms, running sums and places of extremes, under TensorFlow 1's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from graphcore.dtypes import as_dtype, float32, int32, int64
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor, get_default_graph
from graphcore.graph import convert_to_tensor as as_tensor
from graphcore.tf1.calls import apply_one, either, named
from graphcore.tf1.framework import constant, convert_to_tensor, name_scope
from graphcore.tf1.math.elementwise import cast, conj, real, where

Axis = int | Sequence[int] | Tensor | None


def reduction(
    op: str,
    x: Any,
    axis: Axis = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Axis = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """A reduction by `op`, with both of TF1's names for the axes and for keeping them."""
    axis = either("axis", axis, "reduction_indices", reduction_indices)
    keepdims = bool(either("keepdims", keepdims, "keep_dims", keep_dims))
    graph = get_default_graph()
    tensor = as_tensor(graph, x, None, f"input of {op}")

    def build() -> Tensor:
        present = graph.present(tensor)
        axes = as_tensor(graph, _reduction_axes(present, axis), int32, f"axis of {op}")
        return apply_one(op, [present, axes], name, {"keep_dims": keepdims})

    if axis is not None:
        return build()
    last_rank = [tensor.shape.rank]

    def rank() -> int | None:
        node = graph.find(tensor.node.name)
        current = node.outputs[tensor.index].shape.rank if node is not None and tensor.index < len(node.outputs) else None
        if current is not None or graph.derivations.problem_of([(tensor.node.name, tensor.index)]) is None:
            last_rank[0] = current
        return last_rank[0]  # an input with an error has no known dtype and does not run

    result: Tensor = graph.derivations.derive(f"{op} over all axes", build, fingerprint=rank)
    return result


def _reduction_axes(x: Tensor, axis: Axis) -> Any:
    if axis is not None:
        return axis
    rank = x.shape.rank
    if rank is not None:
        return list(range(rank))
    graph = get_default_graph()
    rank_tensor = graph.apply_op("Rank", [x], None, "Rank").outputs[0]
    return graph.apply_op("Range", [0, rank_tensor, 1], None, "range").outputs[0]


if TYPE_CHECKING:

    class _Reduction(Protocol):
        """A reduction of a tensor along axes."""

        def __call__(
            self,
            input_tensor: Any,
            axis: Axis = None,
            keepdims: bool | None = None,
            name: str | None = None,
            reduction_indices: Axis = None,
            keep_dims: bool | None = None,
        ) -> Tensor:
            """A node of the reduction's op."""


def _reduce(function: str, op: str, result: str) -> _Reduction:
    def call(
        input_tensor: Any,
        axis: Axis = None,
        keepdims: bool | None = None,
        name: str | None = None,
        reduction_indices: Axis = None,
        keep_dims: bool | None = None,
    ) -> Tensor:
        return reduction(op, input_tensor, axis, keepdims, name, reduction_indices, keep_dims)

    return named(call, function, f"{result} over `axis` or `reduction_indices` (all axes if None).")


reduce_sum = _reduce("reduce_sum", "Sum", "The sum")
reduce_mean = _reduce("reduce_mean", "Mean", "The mean")
reduce_prod = _reduce("reduce_prod", "Prod", "The product")
reduce_max = _reduce("reduce_max", "Max", "The largest element")
reduce_min = _reduce("reduce_min", "Min", "The smallest element")
reduce_all = _reduce("reduce_all", "All", "True iff all elements are true,")
reduce_any = _reduce("reduce_any", "Any", "True iff any element is true,")


def reduce_logsumexp(
    input_tensor: Any,
    axis: Axis = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Axis = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """`log(sum(exp(x)))` over `axis` or `reduction_indices` (all axes if None), without overflow."""
    axis = either("axis", axis, "reduction_indices", reduction_indices)
    keep = bool(either("keepdims", keepdims, "keep_dims", keep_dims))
    with name_scope(name or "ReduceLogSumExp"):
        raw = reduction("Max", input_tensor, axis, True)
        most = apply_one("StopGradient", [where(apply_one("IsFinite", [raw], None), raw, apply_one("ZerosLike", [raw], None))], None)
        result = apply_one("Log", [reduction("Sum", apply_one("Exp", [convert_to_tensor(input_tensor) - most], None), axis, keep)], None)
        if not keep:
            most = apply_one("Reshape", [most, apply_one("Shape", [result], None)], None)
        return apply_one("AddV2", [result, most], "Add")


def reduce_variance(input_tensor: Any, axis: Axis = None, keepdims: bool | None = False, name: str | None = None) -> Tensor:
    """The mean squared magnitude of the differences from the mean, over `axis` (all axes if None).

    Raises:
        InvalidArgumentError: integers, whose mean is rounded.
    """
    with name_scope(name or "reduce_variance"):
        tensor = convert_to_tensor(input_tensor)
        if not (tensor.dtype.is_floating or tensor.dtype.is_complex):
            raise InvalidArgumentError(
                f"reduce_variance: required a floating or complex dtype, got '{tensor.name}' {tensor.dtype.text}; convert with gc.cast"
            )
        differences = tensor - reduction("Mean", tensor, axis, True)
        squares = real(differences * conj(differences)) if tensor.dtype.is_complex else apply_one("Square", [differences], None)
        return reduction("Mean", squares, axis, keepdims)


def reduce_std(input_tensor: Any, axis: Axis = None, keepdims: bool | None = False, name: str | None = None) -> Tensor:
    """The root of the variance over `axis` (all axes if None)."""
    with name_scope(name or "reduce_std"):
        return apply_one("Sqrt", [reduce_variance(input_tensor, axis, keepdims)], None)


def reduce_euclidean_norm(input_tensor: Any, axis: Axis = None, keepdims: bool | None = False, name: str | None = None) -> Tensor:
    """The root of the sum of squared magnitudes over `axis` (all axes if None)."""
    return reduction("EuclideanNorm", input_tensor, axis, keepdims, name)


def norm(
    tensor: Any,
    ord: Any = "euclidean",
    axis: Axis = None,
    keepdims: bool | None = None,
    name: str | None = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The norm of vectors: `ord` is "euclidean", 1, 2, another positive number or infinity.

    Args:
        tensor: the vectors; all elements are one vector without `axis`.
        ord: the kind of the norm; "fro" and "euclidean" are also those of matrices.
        axis: the dimension of the vectors, or both of the matrices.
        keepdims, keep_dims: keep these dimensions, with size 1.
        name: the name scope.
    """
    keep = bool(either("keepdims", keepdims, "keep_dims", keep_dims))
    if isinstance(axis, list | tuple) and ord not in ("euclidean", "fro"):
        raise InvalidArgumentError(f"norm: required 'euclidean' or 'fro' for matrices, got {ord!r}")
    with name_scope(name or "norm"):
        x = convert_to_tensor(tensor)
        if ord in ("euclidean", "fro", 2, 2.0):
            return apply_one("Sqrt", [reduction("Sum", x * conj(x), axis, keep)], None)
        size = get_default_graph().builder.absolute(x)
        if ord == np.inf:
            return reduction("Max", size, axis, keep)
        if ord in (1, 1.0):
            return reduction("Sum", size, axis, keep)
        return apply_one("Pow", [reduction("Sum", apply_one("Pow", [size, ord], None), axis, keep), 1.0 / ord], None)


def count_nonzero(
    input_tensor: Any = None,
    axis: Axis = None,
    keepdims: bool | None = None,
    dtype: object = int64,
    name: str | None = None,
    reduction_indices: Axis = None,
    keep_dims: bool | None = None,
    input: Any = None,
) -> Tensor:
    """The number of elements other than 0, over `axis` or `reduction_indices` (all axes if None)."""
    axis = either("axis", axis, "reduction_indices", reduction_indices)
    keep = either("keepdims", keepdims, "keep_dims", keep_dims)
    with name_scope(name or "count_nonzero"):
        tensor = convert_to_tensor(either("input", input, "input_tensor", input_tensor))
        zero = constant(np.zeros([], tensor.dtype.as_numpy), tensor.dtype.base)
        counted = reduction("Sum", cast(apply_one("NotEqual", [tensor, zero], None), int64), axis, keep)
        return cast(counted, dtype)


def zero_fraction(value: Any, name: str | None = None) -> Tensor:
    """The part of the elements that are 0, float32."""
    with name_scope(name or "zero_fraction"):
        tensor = convert_to_tensor(value)
        zero = constant(np.zeros([], tensor.dtype.as_numpy), tensor.dtype.base)
        return reduction("Mean", cast(apply_one("Equal", [tensor, zero], None), float32))


def trace(x: Any, name: str | None = None) -> Tensor:
    """The sum of the main diagonal of each matrix. x: [..., m, n] -> y: [...]."""
    with name_scope(name or "Trace"):
        return reduction("Sum", apply_one("MatrixDiagPart", [x], None), [-1])


def lbeta(x: Any, name: str | None = None) -> Tensor:
    """The logarithm of the absolute value of the beta function of the last dimension. x: [..., n] -> y: [...]."""
    with name_scope(name or "lbeta"):
        tensor = convert_to_tensor(x)
        gammas = reduction("Sum", apply_one("Lgamma", [tensor], None), [-1])
        return gammas - apply_one("Lgamma", [reduction("Sum", tensor, [-1])], None)


def is_non_decreasing(x: Any, name: str | None = None) -> Tensor:
    """True iff no element is less than the one before it."""
    with name_scope(name or "is_non_decreasing"):
        flat = apply_one("Reshape", [x, [-1]], None)
        return reduction("All", apply_one("LessEqual", [flat[:-1], flat[1:]], None))


def is_strictly_increasing(x: Any, name: str | None = None) -> Tensor:
    """True iff each element is greater than the one before it."""
    with name_scope(name or "is_strictly_increasing"):
        flat = apply_one("Reshape", [x, [-1]], None)
        return reduction("All", apply_one("Less", [flat[:-1], flat[1:]], None))


def argmax(input: Any, axis: Any = None, name: str | None = None, dimension: Any = None, output_type: object = int64) -> Tensor:
    """The index of the largest element along `axis` (0 by default, or `dimension`)."""
    return _arg("ArgMax", input, axis, name, dimension, output_type)


def argmin(input: Any, axis: Any = None, name: str | None = None, dimension: Any = None, output_type: object = int64) -> Tensor:
    """The index of the smallest element along `axis` (0 by default, or `dimension`)."""
    return _arg("ArgMin", input, axis, name, dimension, output_type)


def _arg(op: str, x: Any, axis: Any, name: str | None, dimension: Any, output_type: object) -> Tensor:
    along = either("axis", axis, "dimension", dimension)
    wanted = as_dtype(output_type)
    return apply_one(op, [x, 0 if along is None else along], name, None if wanted is int64 else {"output_type": wanted})


def cumsum(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Tensor:
    """The running sums along `axis`, without the element itself if `exclusive`, backwards if `reverse`."""
    return apply_one("Cumsum", [x, axis], name, {"exclusive": exclusive, "reverse": reverse})


def cumprod(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Tensor:
    """The running products along `axis`, as those of `cumsum`."""
    return apply_one("Cumprod", [x, axis], name, {"exclusive": exclusive, "reverse": reverse})
