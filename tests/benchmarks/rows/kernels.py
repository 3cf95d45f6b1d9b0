"""Single kernels on floats, against the NumPy call that does the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tests.benchmarks.work import Array, Budget, Row, Work, random_floats

SQUARE = (512, 512)
PICTURES = (8, 56, 56, 32)
FILTER = (3, 3, 32, 1)
SAME = {"strides": [1, 1, 1, 1], "padding": "SAME"}
Shapes = Sequence[tuple[int, ...]]
Constants = Mapping[int, Any]
Attrs = Mapping[str, object]


def operands(shapes: Shapes) -> list[Array]:
    """Arrays of these shapes."""
    return [random_floats(70 + i, *shape) for i, shape in enumerate(shapes)]


def ours(op: str, shapes: Shapes, constants: Constants, attrs: Attrs) -> Callable[[], Work]:
    """The kernel of `op` for arrays of these shapes and constants, by input."""

    def make() -> Work:
        import graphcore as gc
        from graphcore.kernel_context import KernelContext

        inputs = operands(shapes)
        for place, value in sorted(constants.items()):
            inputs.insert(place, value)
        with gc.Graph().as_default() as graph:
            node = graph.apply_op(op, [gc.constant(value) for value in inputs], attrs)
        context = KernelContext(
            xp=np,
            attrs=node.node_def.attr,
            input_types=node.input_types,
            output_types=node.output_types,
            constants=tuple([constants.get(place) for place in range(len(inputs))]),
        )
        factory = node.registration.kernel
        assert factory is not None
        kernel = factory(context)
        return Work(run=lambda: kernel(*inputs), outcome=lambda: [kernel(*inputs)])

    return make


def numpy(function: Callable[..., Any], shapes: Shapes) -> Callable[[], Work]:
    """NumPy's function on the same matrices."""

    def make() -> Work:
        inputs = operands(shapes)
        return Work(run=lambda: function(*inputs), outcome=lambda: [np.asarray(function(*inputs))])

    return make


def _row(order: float, title: str, op: str, shapes: Shapes, function: Callable[..., Any], constants: Constants | None = None) -> Row:
    return Row(
        order=order,
        title=f"{title} kernel, {' by '.join('x'.join(map(str, shape)) for shape in dict.fromkeys(shapes))}",
        unit="us",
        budgets=(Budget(1.05, "numpy"),),
        ours=ours(op, shapes, constants or {}, {}),
        numpy=numpy(function, shapes),
    )


def _padded(x: Array) -> Array:
    return np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))


def depthwise(x: Array, w: Array) -> Array:
    """A depthwise convolution in plain NumPy: a product for each element of the filter."""
    seen, y = _padded(x), np.zeros_like(x)
    for i, j in np.ndindex(3, 3):
        y += seen[:, i : i + x.shape[1], j : j + x.shape[2]] * w[i, j, :, 0]
    return y


def depthwise_input_gradient(w: Array, dy: Array) -> Array:
    """Its gradient to the input."""
    dx = np.zeros_like(_padded(dy))
    for i, j in np.ndindex(3, 3):
        dx[:, i : i + dy.shape[1], j : j + dy.shape[2]] += dy * w[i, j, :, 0]
    return dx[:, 1:-1, 1:-1]


def depthwise_filter_gradient(x: Array, dy: Array) -> Array:
    """Its gradient to the filter."""
    seen, dw = _padded(x), np.empty(FILTER, x.dtype)
    for i, j in np.ndindex(3, 3):
        dw[i, j, :, 0] = (seen[:, i : i + dy.shape[1], j : j + dy.shape[2]] * dy).sum((0, 1, 2))
    return dw


def _depthwise_row(
    order: float, title: str, op: str, shapes: Shapes, function: Callable[..., Any], constants: Constants | None = None
) -> Row:
    return Row(
        order=order,
        title=f"{title} kernel, {'x'.join(map(str, PICTURES))}, {'x'.join(map(str, FILTER[:2]))} filter",
        unit="us",
        budgets=(Budget(1.2, "numpy"),),
        ours=ours(f"DepthwiseConv2dNative{op}", shapes, constants or {}, SAME),
        numpy=numpy(function, shapes),
    )


ADD = _row(16.0, "AddV2", "AddV2", [SQUARE, SQUARE], np.add)
TANH = _row(16.1, "Tanh", "Tanh", [SQUARE], np.tanh)
SUM = _row(16.2, "Sum by rows", "Sum", [SQUARE], lambda x: np.sum(x, 1), {1: np.int32(1)})
MAX = _row(16.3, "Max by columns", "Max", [SQUARE], lambda x: np.max(x, 0), {1: np.int32(0)})
MATMUL = _row(16.4, "MatMul", "MatMul", [SQUARE, SQUARE], np.matmul)
MATMUL_SMALL = _row(16.41, "MatMul", "MatMul", [(128, 128)] * 2, np.matmul)
MATMUL_MIDDLING = _row(16.42, "MatMul", "MatMul", [(256, 256)] * 2, np.matmul)
MATMUL_LAYER = _row(16.43, "MatMul", "MatMul", [(128, 784), (784, 512)], np.matmul)
MATMUL_LARGE = _row(16.44, "MatMul", "MatMul", [(1024, 1024)] * 2, np.matmul)
DEPTHWISE = _depthwise_row(16.5, "Depthwise convolution", "", [PICTURES, FILTER], depthwise)
DEPTHWISE_INPUT = _depthwise_row(
    16.51,
    "Depthwise convolution, input gradient",
    "BackpropInput",
    [FILTER, PICTURES],
    depthwise_input_gradient,
    {0: np.array(PICTURES, np.int32)},
)
DEPTHWISE_FILTER = _depthwise_row(
    16.52,
    "Depthwise convolution, filter gradient",
    "BackpropFilter",
    [PICTURES, PICTURES],
    depthwise_filter_gradient,
    {1: np.array(FILTER, np.int32)},
)
