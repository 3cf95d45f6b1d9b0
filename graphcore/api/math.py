"""Math on tensors, under TF1's names.

All functions take tensors or values; values take the dtype of the tensors beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphcore.api.apply_one import apply_one
from graphcore.dtypes import as_dtype, int32, int64
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor, convert_to_tensor, get_default_graph

Axis = int | Sequence[int] | Tensor | None


def add(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`x + y` with broadcasting; strings are joined."""
    return get_default_graph().builder.add(x, y, name or "Add")


def subtract(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`x - y` with broadcasting."""
    return apply_one("Sub", [x, y], name)


def multiply(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`x * y`, elementwise with broadcasting."""
    return apply_one("Mul", [x, y], name)


def divide(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`x / y` with broadcasting; integers become floats, as with the operator."""
    divided = get_default_graph().builder.truediv(x, y)
    return divided if name is None else apply_one("Identity", [divided], name)


def pow(x: Any, y: Any, name: str | None = None) -> Tensor:  # noqa: A001 - TF1's name
    """`x` to the power `y`."""
    return apply_one("Pow", [x, y], name)


def maximum(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The larger of both, elementwise."""
    return apply_one("Maximum", [x, y], name)


def minimum(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The smaller of both, elementwise."""
    return apply_one("Minimum", [x, y], name)


def negative(x: Any, name: str | None = None) -> Tensor:
    """`-x`."""
    return apply_one("Neg", [x], name)


def abs(x: Any, name: str | None = None) -> Tensor:  # noqa: A001 - TF1's name
    """The absolute value; real for complex numbers."""
    return get_default_graph().builder.absolute(x, name)


def square(x: Any, name: str | None = None) -> Tensor:
    """`x * x`."""
    return apply_one("Square", [x], name)


def sqrt(x: Any, name: str | None = None) -> Tensor:
    """The square root."""
    return apply_one("Sqrt", [x], name)


def exp(x: Any, name: str | None = None) -> Tensor:
    """E to the power `x`."""
    return apply_one("Exp", [x], name)


def log(x: Any, name: str | None = None) -> Tensor:
    """The natural logarithm."""
    return apply_one("Log", [x], name)


def tanh(x: Any, name: str | None = None) -> Tensor:
    """The hyperbolic tangent."""
    return apply_one("Tanh", [x], name)


def sigmoid(x: Any, name: str | None = None) -> Tensor:
    """`1 / (1 + exp(-x))`."""
    return apply_one("Sigmoid", [x], name)


def matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,  # noqa: ARG001 - TF1's hint
    b_is_sparse: bool = False,  # noqa: ARG001 - TF1's hint
    name: str | None = None,
) -> Tensor:
    """The matrix product. a: [..., m, k]  b: [..., k, n] -> y: [..., m, n] (transposed first if requested).

    Args:
        a, b: matrices, or stacks of matrices.
        transpose_a, transpose_b: transpose each matrix first.
        adjoint_a, adjoint_b: transpose and conjugate each matrix first.
        a_is_sparse, b_is_sparse: hints without effect.
        name: the name of the node.
    """
    builder = get_default_graph().builder
    return builder.matmul(a, b, name or "MatMul", (transpose_a, transpose_b), (adjoint_a, adjoint_b))


def cast(x: Any, dtype: object, name: str | None = None) -> Tensor:
    """`x` with another dtype; of a sparse tensor its values."""
    if hasattr(x, "with_values"):
        return x.with_values(cast(x.values, dtype, name))  # type: ignore[no-any-return]  # a sparse tensor stays one
    tensor = convert_to_tensor(get_default_graph(), x, None, "input of cast")
    wanted = as_dtype(dtype)
    if tensor.dtype is wanted:
        return tensor
    return apply_one("Cast", [tensor], name, {"DstT": wanted})


def equal(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`x == y`, elementwise."""
    return apply_one("Equal", [x, y], name)


def not_equal(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`x != y`, elementwise."""
    return apply_one("NotEqual", [x, y], name)


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """`x` where `condition` holds, else `y`; without both the places where it holds: [count, rank]."""
    if x is None and y is None:
        return apply_one("Where", [condition], name)
    return apply_one("Select", [condition, x, y], name)


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


def either(new_name: str, new: Any, old_name: str, old: Any) -> Any:
    """The one of two names of an argument that is given, None for neither.

    Raises:
        InvalidArgumentError: both are given.
    """
    if new is not None and old is not None:
        raise InvalidArgumentError(f"Cannot specify both '{old_name}' and '{new_name}'")
    return old if new is None else new


def _reduction_axes(x: Tensor, axis: Axis) -> Any:
    if axis is not None:
        return axis
    rank = x.shape.rank
    if rank is not None:
        return list(range(rank))
    graph = get_default_graph()
    rank_tensor = graph.apply_op("Rank", [x], None, "Rank").outputs[0]
    return graph.apply_op("Range", [0, rank_tensor, 1], None, "range").outputs[0]


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
    tensor = convert_to_tensor(graph, x, None, f"input of {op}")

    def build() -> Tensor:
        present = graph.present(tensor)
        axes = convert_to_tensor(graph, _reduction_axes(present, axis), int32, f"axis of {op}")
        return apply_one(op, [present, axes], name, {"keep_dims": keepdims})

    if axis is not None:
        return build()
    known = [tensor.shape.rank]

    def rank() -> int | None:
        node = graph.find(tensor.node.name)
        found = node.outputs[tensor.index].shape.rank if node is not None and tensor.index < len(node.outputs) else None
        if found is not None or graph.derivations.problem_of([(tensor.node.name, tensor.index)]) is None:
            known[0] = found
        return known[0]  # an input with an error has no known dtype and does not run

    made: Tensor = graph.derivations.derive(f"{op} over all axes", build, fingerprint=rank)
    return made


def reduce_sum(
    input_tensor: Any,
    axis: Axis = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Axis = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The sum over `axis` or `reduction_indices` (all axes if None)."""
    return reduction("Sum", input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


def reduce_mean(
    input_tensor: Any,
    axis: Axis = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Axis = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The mean over `axis` or `reduction_indices` (all axes if None)."""
    return reduction("Mean", input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


def reduce_prod(
    input_tensor: Any,
    axis: Axis = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Axis = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The product over `axis` or `reduction_indices` (all axes if None)."""
    return reduction("Prod", input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


def reduce_max(
    input_tensor: Any,
    axis: Axis = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Axis = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The largest element over `axis` or `reduction_indices` (all axes if None)."""
    return reduction("Max", input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


def reduce_min(
    input_tensor: Any,
    axis: Axis = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Axis = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The smallest element over `axis` or `reduction_indices` (all axes if None)."""
    return reduction("Min", input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


def reduce_all(
    input_tensor: Any,
    axis: Axis = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Axis = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """True iff all elements are true, over `axis` or `reduction_indices` (all axes if None)."""
    return reduction("All", input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


def reduce_any(
    input_tensor: Any,
    axis: Axis = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Axis = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """True iff any element is true, over `axis` or `reduction_indices` (all axes if None)."""
    return reduction("Any", input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


def add_n(inputs: Sequence[Any], name: str | None = None) -> Tensor:
    """The sum of tensors of one shape."""
    return apply_one("AddN", [list(inputs)], name)
