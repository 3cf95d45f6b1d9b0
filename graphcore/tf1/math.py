"""Mathematics of the top level, with TensorFlow 1's signatures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphcore.api.apply_one import apply_one
from graphcore.api.arrays import expand_dims, reshape, stop_gradient
from graphcore.api.framework import constant, convert_to_tensor, name_scope
from graphcore.api.math import Axis, add_n, cast, either, maximum, reduction, where
from graphcore.dtypes import as_dtype, bfloat16, complex64, complex128, float32, float64, int32, int64
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor, get_default_graph

__all__ = [
    "accumulate_n",
    "angle",
    "bincount",
    "complex",
    "confusion_matrix",
    "conj",
    "count_nonzero",
    "cumprod",
    "cumsum",
    "div",
    "floormod",
    "histogram_fixed_width",
    "imag",
    "is_non_decreasing",
    "is_strictly_increasing",
    "lbeta",
    "log_sigmoid",
    "logical_xor",
    "mod",
    "norm",
    "real",
    "realdiv",
    "reduce_euclidean_norm",
    "reduce_logsumexp",
    "reduce_std",
    "reduce_variance",
    "round",
    "saturate_cast",
    "scalar_mul",
    "sparse_segment_mean",
    "sparse_segment_sqrt_n",
    "sparse_segment_sum",
    "to_bfloat16",
    "to_complex64",
    "to_complex128",
    "to_double",
    "to_float",
    "to_int32",
    "to_int64",
    "trace",
    "truediv",
    "truncatediv",
    "truncatemod",
    "unsorted_segment_mean",
    "unsorted_segment_sqrt_n",
    "zero_fraction",
]


def truediv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`x / y` with broadcasting; integers become floats."""
    divided = get_default_graph().builder.truediv(x, y)
    return divided if name is None else apply_one("Identity", [divided], name)


def div(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`x / y` as in Python 2: integers stay integers, rounded down."""
    x = convert_to_tensor(x)
    return apply_one("FloorDiv" if x.dtype.is_integer else "RealDiv", [x, y], name or "div")


def realdiv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`x / y` for floats."""
    return apply_one("RealDiv", [x, y], name)


def truncatediv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`x / y` for integers, rounded towards 0."""
    return apply_one("TruncateDiv", [x, y], name)


def floormod(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The remainder of a division that rounds down: it has the sign of `y`."""
    return apply_one("FloorMod", [x, y], name)


mod = floormod


def truncatemod(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The remainder of a division that rounds towards 0: it has the sign of `x`."""
    return apply_one("TruncateMod", [x, y], name)


def logical_xor(x: Any, y: Any, name: str = "LogicalXor") -> Tensor:
    """True where exactly one of both is."""
    return get_default_graph().builder.logical_xor(x, y, name)


def scalar_mul(scalar: Any, x: Any, name: str | None = None) -> Tensor:
    """A scalar times a tensor."""
    x = convert_to_tensor(x)
    return apply_one("Mul", [convert_to_tensor(scalar, x.dtype.base), x], name)


def accumulate_n(inputs: Sequence[Any], shape: object = None, tensor_dtype: object = None, name: str | None = None) -> Tensor:
    """The sum of tensors of one shape."""
    del tensor_dtype
    total = add_n(inputs, name)
    if shape is not None:
        total.set_shape(shape)
    return total


def complex(real: Any, imag: Any, name: str | None = None) -> Tensor:  # noqa: A001 - TF1's name
    """Complex numbers of their real and imaginary parts."""
    real = convert_to_tensor(real)
    return apply_one("Complex", [real, imag], name, {"Tout": complex128 if real.dtype.base is float64 else complex64})


def _part(op: str, tensor: Tensor, name: str | None) -> Tensor:
    return apply_one(op, [tensor], name, {"Tout": tensor.dtype.real_dtype})


def real(input: Any, name: str | None = None) -> Tensor:
    """The real part."""
    tensor = convert_to_tensor(input)
    return _part("Real", tensor, name) if tensor.dtype.is_complex else tensor


def imag(input: Any, name: str | None = None) -> Tensor:
    """The imaginary part."""
    tensor = convert_to_tensor(input)
    return _part("Imag", tensor, name) if tensor.dtype.is_complex else apply_one("ZerosLike", [tensor], name)


def angle(input: Any, name: str | None = None) -> Tensor:
    """The angle of complex numbers, in radians; of real ones 0 or pi."""
    tensor = convert_to_tensor(input)
    if tensor.dtype.is_complex:
        return _part("Angle", tensor, name)
    zeros = apply_one("ZerosLike", [tensor], None)
    return where(apply_one("Less", [tensor, 0], None), apply_one("AddV2", [zeros, np.pi], None), zeros, name)


def conj(x: Any, name: str | None = None) -> Tensor:
    """The complex conjugate; real numbers themselves."""
    tensor = convert_to_tensor(x)
    return apply_one("Conj", [tensor], name) if tensor.dtype.is_complex else tensor


def round(x: Any, name: str | None = None) -> Tensor:  # noqa: A001 - TF1's name
    """The nearest integer of each element, ties to the even one; integers themselves."""
    tensor = convert_to_tensor(x)
    return tensor if tensor.dtype.is_integer else apply_one("Round", [tensor], name)


def cumsum(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Tensor:
    """The running sums along `axis`, without the element itself if `exclusive`, backwards if `reverse`."""
    return apply_one("Cumsum", [x, axis], name, {"exclusive": exclusive, "reverse": reverse})


def cumprod(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Tensor:
    """The running products along `axis`, as those of `cumsum`."""
    return apply_one("Cumprod", [x, axis], name, {"exclusive": exclusive, "reverse": reverse})


def saturate_cast(value: Any, dtype: object, name: str | None = None) -> Tensor:
    """`value` with another dtype; what lies beyond its limits becomes the limit."""
    wanted = as_dtype(dtype)
    with name_scope(name or "saturate_cast") as scope:
        value = convert_to_tensor(value)
        if value.dtype.min < wanted.min:
            value = maximum(value, constant(np.asarray(wanted.min).astype(value.dtype.as_numpy), value.dtype.base))
        if value.dtype.max > wanted.max:
            value = apply_one("Minimum", [value, constant(np.asarray(wanted.max).astype(value.dtype.as_numpy), value.dtype.base)], None)
        return cast(value, wanted, scope)


def _cast_to(dtype: Any, x: Any, name: str) -> Tensor:
    return cast(x, dtype, name)


def to_float(x: Any, name: str = "ToFloat") -> Tensor:
    """`x` as float32."""
    return _cast_to(float32, x, name)


def to_double(x: Any, name: str = "ToDouble") -> Tensor:
    """`x` as float64."""
    return _cast_to(float64, x, name)


def to_int32(x: Any, name: str = "ToInt32") -> Tensor:
    """`x` as int32."""
    return _cast_to(int32, x, name)


def to_int64(x: Any, name: str = "ToInt64") -> Tensor:
    """`x` as int64."""
    return _cast_to(int64, x, name)


def to_bfloat16(x: Any, name: str = "ToBFloat16") -> Tensor:
    """`x` as bfloat16."""
    return _cast_to(bfloat16, x, name)


def to_complex64(x: Any, name: str = "ToComplex64") -> Tensor:
    """`x` as complex64."""
    return _cast_to(complex64, x, name)


def to_complex128(x: Any, name: str = "ToComplex128") -> Tensor:
    """`x` as complex128."""
    return _cast_to(complex128, x, name)


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
        most = stop_gradient(where(apply_one("IsFinite", [raw], None), raw, apply_one("ZerosLike", [raw], None)))
        result = apply_one("Log", [reduction("Sum", apply_one("Exp", [convert_to_tensor(input_tensor) - most], None), axis, keep)], None)
        if not keep:
            most = reshape(most, apply_one("Shape", [result], None))
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


def bincount(arr: Any, weights: Any = None, minlength: Any = None, maxlength: Any = None, dtype: object = int32) -> Tensor:
    """The number of times that each integer from 0 on occurs, or the sums of their weights."""
    arr = convert_to_tensor(arr, int32)
    is_empty = apply_one("Equal", [apply_one("Size", [arr], None), 0], None)
    longest = where(is_empty, constant(0), reduction("Max", arr) + 1)
    if minlength is not None:
        longest = maximum(convert_to_tensor(minlength, int32), longest)
    if maxlength is not None:
        longest = apply_one("Minimum", [convert_to_tensor(maxlength, int32), longest], None)
    counted = as_dtype(dtype)
    given = constant(np.zeros(0, counted.as_numpy), counted) if weights is None else convert_to_tensor(weights)
    return apply_one("Bincount", [arr, longest, given], None)


def confusion_matrix(
    labels: Any, predictions: Any, num_classes: Any = None, dtype: object = int32, name: str | None = None, weights: Any = None
) -> Tensor:
    """The number of times that each class was predicted for each label. labels, predictions: [n] -> y: [classes, classes]."""
    with name_scope(name or "confusion_matrix"):
        labels, predictions = (cast(convert_to_tensor(each), int64) for each in (labels, predictions))
        if num_classes is None:
            num_classes = maximum(reduction("Max", labels), reduction("Max", predictions)) + 1
        classes = cast(convert_to_tensor(num_classes), int64)
        wanted = as_dtype(dtype)
        values = apply_one("OnesLike", [cast(predictions, wanted)], None) if weights is None else cast(weights, wanted)
        places = apply_one("Pack", [[labels, predictions]], None, {"axis": 1})
        return apply_one("ScatterNd", [places, values, apply_one("Pack", [[classes, classes]], None)], None)


def lbeta(x: Any, name: str | None = None) -> Tensor:
    """The logarithm of the absolute value of the beta function of the last dimension. x: [..., n] -> y: [...]."""
    with name_scope(name or "lbeta"):
        tensor = convert_to_tensor(x)
        gammas = reduction("Sum", apply_one("Lgamma", [tensor], None), [-1])
        return gammas - apply_one("Lgamma", [reduction("Sum", tensor, [-1])], None)


def histogram_fixed_width(values: Any, value_range: Any, nbins: Any = 100, dtype: object = int32, name: str | None = None) -> Tensor:
    """The number of values in each of `nbins` equal parts of a range [2].

    Outliers count in the end parts.
    """
    tensor = convert_to_tensor(values)
    return apply_one(
        "HistogramFixedWidth", [tensor, convert_to_tensor(value_range, tensor.dtype.base), nbins], name, {"dtype": as_dtype(dtype)}
    )


def trace(x: Any, name: str | None = None) -> Tensor:
    """The sum of the main diagonal of each matrix. x: [..., m, n] -> y: [...]."""
    with name_scope(name or "Trace"):
        return reduction("Sum", apply_one("MatrixDiagPart", [x], None), [-1])


def log_sigmoid(x: Any, name: str | None = None) -> Tensor:
    """`-log(1 + exp(-x))`."""
    with name_scope(name or "LogSigmoid") as scope:
        return apply_one("Neg", [apply_one("Softplus", [-convert_to_tensor(x)], None)], scope)


def is_non_decreasing(x: Any, name: str | None = None) -> Tensor:
    """True iff no element is less than the one before it."""
    with name_scope(name or "is_non_decreasing"):
        flat = reshape(x, [-1])
        return reduction("All", apply_one("LessEqual", [flat[:-1], flat[1:]], None))


def is_strictly_increasing(x: Any, name: str | None = None) -> Tensor:
    """True iff each element is greater than the one before it."""
    with name_scope(name or "is_strictly_increasing"):
        flat = reshape(x, [-1])
        return reduction("All", apply_one("Less", [flat[:-1], flat[1:]], None))


# ---- segments --------------------------------------------------------------------------------------------------------


def unsorted_segment_mean(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
    """The means of the rows with the same id."""
    with name_scope(name or "UnsortedSegmentMean"):
        data, ids = convert_to_tensor(data), convert_to_tensor(segment_ids)
        return apply_one("UnsortedSegmentSum", [data, ids, num_segments], None) / _segment_sizes(data, ids, num_segments)


def _segment_sizes(data: Tensor, ids: Tensor, num_segments: Any) -> Tensor:
    """The number of rows of each id, at least 1, as numbers that divide the sums of the rows of `data`."""
    counts = apply_one("UnsortedSegmentSum", [apply_one("OnesLike", [ids], None), ids, num_segments], None)
    whole = maximum(cast(counts, data.dtype.base), 1)
    for _ in range((data.shape.rank or 1) - (ids.shape.rank or 1)):
        whole = expand_dims(whole, -1)
    return whole


def _sparse_segment(op: str, inputs: list[Any], num_segments: Any, name: str | None) -> Tensor:
    if num_segments is None:
        return apply_one(op, inputs, name)
    return apply_one(f"{op}WithNumSegments", [*inputs, num_segments], name)


def unsorted_segment_sqrt_n(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
    """The sums of the rows with the same id, divided by the roots of their numbers."""
    with name_scope(name or "UnsortedSegmentSqrtN"):
        data, ids = convert_to_tensor(data), convert_to_tensor(segment_ids)
        sizes = _segment_sizes(data, ids, num_segments)
        return apply_one("UnsortedSegmentSum", [data, ids, num_segments], None) / apply_one("Sqrt", [sizes], None)


def sparse_segment_sum(data: Any, indices: Any, segment_ids: Any, name: str | None = None, num_segments: Any = None) -> Tensor:
    """The sums of the rows `indices` with the same id."""
    return _sparse_segment("SparseSegmentSum", [data, indices, segment_ids], num_segments, name)


def sparse_segment_mean(data: Any, indices: Any, segment_ids: Any, name: str | None = None, num_segments: Any = None) -> Tensor:
    """The means of the rows `indices` with the same id."""
    return _sparse_segment("SparseSegmentMean", [data, indices, segment_ids], num_segments, name)


def sparse_segment_sqrt_n(data: Any, indices: Any, segment_ids: Any, name: str | None = None, num_segments: Any = None) -> Tensor:
    """The sums of the rows `indices` with the same id, divided by the roots of their numbers."""
    return _sparse_segment("SparseSegmentSqrtN", [data, indices, segment_ids], num_segments, name)
