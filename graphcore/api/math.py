"""Math on tensors, under TF1's names.

All functions take tensors or values; values take the dtype of the tensors beside them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphcore.dtypes import as_dtype, int32
from graphcore.graph import Tensor, convert_to_tensor, get_default_graph

Axis = int | Sequence[int] | Tensor | None


def _apply(op: str, inputs: Sequence[Any], name: str | None, default: str, attrs: Mapping[str, Any] | None = None) -> Tensor:
    return get_default_graph().apply_op(op, inputs, attrs, name or default).outputs[0]


def add(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`x + y` with broadcasting."""
    return _apply("AddV2", [x, y], name, "add")


def subtract(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`x - y` with broadcasting."""
    return _apply("Sub", [x, y], name, "sub")


def multiply(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`x * y`, elementwise with broadcasting."""
    return _apply("Mul", [x, y], name, "mul")


def divide(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`x / y` with broadcasting."""
    return _apply("RealDiv", [x, y], name, "truediv")


def pow(x: Any, y: Any, name: str | None = None) -> Tensor:  # noqa: A001 - TF1's name
    """`x` to the power `y`."""
    return _apply("Pow", [x, y], name, "pow")


def maximum(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The larger of both, elementwise."""
    return _apply("Maximum", [x, y], name, "maximum")


def minimum(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The smaller of both, elementwise."""
    return _apply("Minimum", [x, y], name, "minimum")


def negative(x: Any, name: str | None = None) -> Tensor:
    """`-x`."""
    return _apply("Neg", [x], name, "neg")


def abs(x: Any, name: str | None = None) -> Tensor:  # noqa: A001 - TF1's name
    """The absolute value."""
    return _apply("Abs", [x], name, "abs")


def square(x: Any, name: str | None = None) -> Tensor:
    """`x * x`."""
    return _apply("Square", [x], name, "square")


def sqrt(x: Any, name: str | None = None) -> Tensor:
    """The square root."""
    return _apply("Sqrt", [x], name, "sqrt")


def exp(x: Any, name: str | None = None) -> Tensor:
    """E to the power `x`."""
    return _apply("Exp", [x], name, "exp")


def log(x: Any, name: str | None = None) -> Tensor:
    """The natural logarithm."""
    return _apply("Log", [x], name, "log")


def tanh(x: Any, name: str | None = None) -> Tensor:
    """The hyperbolic tangent."""
    return _apply("Tanh", [x], name, "tanh")


def sigmoid(x: Any, name: str | None = None) -> Tensor:
    """`1 / (1 + exp(-x))`."""
    return _apply("Sigmoid", [x], name, "sigmoid")


def matmul(a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False, name: str | None = None) -> Tensor:
    """The matrix product. a: [m, k]  b: [k, n] -> y: [m, n] (transposed first if requested)."""
    return _apply("MatMul", [a, b], name, "matmul", {"transpose_a": transpose_a, "transpose_b": transpose_b})


def cast(x: Any, dtype: object, name: str | None = None) -> Tensor:
    """`x` with another dtype."""
    tensor = convert_to_tensor(get_default_graph(), x, None, "input of cast")
    wanted = as_dtype(dtype)
    if tensor.dtype is wanted:
        return tensor
    return _apply("Cast", [tensor], name, "Cast", {"DstT": wanted})


def equal(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`x == y`, elementwise."""
    return _apply("Equal", [x, y], name, "equal")


def not_equal(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`x != y`, elementwise."""
    return _apply("NotEqual", [x, y], name, "not_equal")


def where(condition: Any, x: Any, y: Any, name: str | None = None) -> Tensor:
    """`x` where `condition` holds, else `y`."""
    return _apply("Select", [condition, x, y], name, "Select")


def argmax(x: Any, axis: int = 0, name: str | None = None) -> Tensor:
    """The index of the largest element along `axis`, int64."""
    return _apply("ArgMax", [x, axis], name, "ArgMax")


def argmin(x: Any, axis: int = 0, name: str | None = None) -> Tensor:
    """The index of the smallest element along `axis`, int64."""
    return _apply("ArgMin", [x, axis], name, "ArgMin")


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
        return _apply(op, [present, axes], name, op, {"keep_dims": keepdims})

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
    return _apply("AddN", [list(inputs)], name, "AddN")
