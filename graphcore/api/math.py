"""Math on tensors, under TF1's names.

All functions take tensors or values; values take the dtype of the tensors beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphcore.api.apply_one import apply_one
from graphcore.dtypes import as_dtype, int32
from graphcore.graph import Tensor, convert_to_tensor, get_default_graph

Axis = int | Sequence[int] | Tensor | None


def add(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`x + y` with broadcasting."""
    return apply_one("AddV2", [x, y], name or "Add")


def subtract(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`x - y` with broadcasting."""
    return apply_one("Sub", [x, y], name)


def multiply(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`x * y`, elementwise with broadcasting."""
    return apply_one("Mul", [x, y], name)


def divide(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`x / y` with broadcasting."""
    return apply_one("RealDiv", [x, y], name or "truediv")


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
    """The absolute value."""
    return apply_one("Abs", [x], name)


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


def matmul(a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False, name: str | None = None) -> Tensor:
    """The matrix product. a: [m, k]  b: [k, n] -> y: [m, n] (transposed first if requested)."""
    return apply_one("MatMul", [a, b], name, {"transpose_a": transpose_a, "transpose_b": transpose_b})


def cast(x: Any, dtype: object, name: str | None = None) -> Tensor:
    """`x` with another dtype."""
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


def where(condition: Any, x: Any, y: Any, name: str | None = None) -> Tensor:
    """`x` where `condition` holds, else `y`."""
    return apply_one("Select", [condition, x, y], name)


def argmax(x: Any, axis: int = 0, name: str | None = None) -> Tensor:
    """The index of the largest element along `axis`, int64."""
    return apply_one("ArgMax", [x, axis], name)


def argmin(x: Any, axis: int = 0, name: str | None = None) -> Tensor:
    """The index of the smallest element along `axis`, int64."""
    return apply_one("ArgMin", [x, axis], name)


def _reduction_axes(x: Tensor, axis: Axis) -> Any:
    if axis is not None:
        return axis
    rank = x.shape.rank
    if rank is not None:
        return list(range(rank))
    graph = get_default_graph()
    rank_tensor = graph.apply_op("Rank", [x], None, "Rank").outputs[0]
    return graph.apply_op("Range", [0, rank_tensor, 1], None, "range").outputs[0]


def _reduce(op: str, x: Any, axis: Axis, keepdims: bool, name: str | None) -> Tensor:
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


def reduce_sum(x: Any, axis: Axis = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """The sum over `axis` (all axes if None)."""
    return _reduce("Sum", x, axis, keepdims, name)


def reduce_mean(x: Any, axis: Axis = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """The mean over `axis` (all axes if None)."""
    return _reduce("Mean", x, axis, keepdims, name)


def reduce_prod(x: Any, axis: Axis = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """The product over `axis` (all axes if None)."""
    return _reduce("Prod", x, axis, keepdims, name)


def reduce_max(x: Any, axis: Axis = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """The largest element over `axis` (all axes if None)."""
    return _reduce("Max", x, axis, keepdims, name)


def reduce_min(x: Any, axis: Axis = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """The smallest element over `axis` (all axes if None)."""
    return _reduce("Min", x, axis, keepdims, name)


def add_n(inputs: Sequence[Any], name: str | None = None) -> Tensor:
    """The sum of tensors of one shape."""
    return apply_one("AddN", [list(inputs)], name)
