"""Kernels by themselves, on floats, against the NumPy call that does the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.benchmarks.work import Array, Budget, Row, Work, random_floats

SQUARE = (512, 512)
Shapes = Sequence[tuple[int, int]]


def operands(shapes: Shapes) -> list[Array]:
    """Matrices of these shapes."""
    return [random_floats(70 + i, *shape) for i, shape in enumerate(shapes)]


def ours(op: str, shapes: Shapes, constants: Sequence[Array] = ()) -> Callable[[], Work]:
    """The kernel of `op` for matrices of these shapes and what is constant after them."""

    def make() -> Work:
        import graphcore as gc
        from graphcore.kernel_context import KernelContext

        inputs = operands(shapes)
        with gc.Graph().as_default() as graph:
            node = graph.apply_op(op, [gc.constant(value) for value in (*inputs, *constants)])
        context = KernelContext(
            xp=np,
            attrs=node.node_def.attr,
            input_types=node.input_types,
            output_types=node.output_types,
            constants=(*[None] * len(shapes), *constants),
        )
        factory = node.registration.kernel
        assert factory is not None
        kernel, arguments = factory(context), (*inputs, *constants)
        return Work(run=lambda: kernel(*arguments), outcome=lambda: [kernel(*arguments)])

    return make


def numpy(function: Callable[..., Any], shapes: Shapes) -> Callable[[], Work]:
    """NumPy's function of the same matrices."""

    def make() -> Work:
        inputs = operands(shapes)
        return Work(run=lambda: function(*inputs), outcome=lambda: [np.asarray(function(*inputs))])

    return make


def _row(order: float, title: str, op: str, shapes: Shapes, function: Callable[..., Any], constants: Sequence[Array] = ()) -> Row:
    return Row(
        order=order,
        title=f"{title} kernel, {' by '.join(f'{rows}x{columns}' for rows, columns in dict.fromkeys(shapes))}",
        unit="us",
        budgets=(Budget(1.05, "numpy"),),
        ours=ours(op, shapes, constants),
        numpy=numpy(function, shapes),
    )


ADD = _row(16.0, "AddV2", "AddV2", [SQUARE, SQUARE], np.add)
TANH = _row(16.1, "Tanh", "Tanh", [SQUARE], np.tanh)
SUM = _row(16.2, "Sum by rows", "Sum", [SQUARE], lambda x: np.sum(x, 1), (np.int32(1),))  # type: ignore[arg-type]  # a scalar is an array here
MAX = _row(16.3, "Max by columns", "Max", [SQUARE], lambda x: np.max(x, 0), (np.int32(0),))  # type: ignore[arg-type]  # a scalar is an array here
MATMUL = _row(16.4, "MatMul", "MatMul", [SQUARE, SQUARE], np.matmul)
MATMUL_SMALL = _row(16.41, "MatMul", "MatMul", [(128, 128)] * 2, np.matmul)
MATMUL_MIDDLING = _row(16.42, "MatMul", "MatMul", [(256, 256)] * 2, np.matmul)
MATMUL_LAYER = _row(16.43, "MatMul", "MatMul", [(128, 784), (784, 512)], np.matmul)
MATMUL_LARGE = _row(16.44, "MatMul", "MatMul", [(1024, 1024)] * 2, np.matmul)
