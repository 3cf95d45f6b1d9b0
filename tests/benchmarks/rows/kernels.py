"""Kernels by themselves, on 512x512 floats, against the NumPy call that does the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.benchmarks.work import Array, Budget, Row, Work, random_floats

SIZE = 512


def operands(count: int) -> list[Array]:
    """Square matrices."""
    return [random_floats(70 + i, SIZE, SIZE) for i in range(count)]


def ours(op: str, count: int, constants: Sequence[Array] = ()) -> Callable[[], Work]:
    """The kernel of `op` for `count` matrices and what is constant after them."""

    def make() -> Work:
        import graphcore as gc
        from graphcore.kernel_context import KernelContext

        inputs = operands(count)
        with gc.Graph().as_default() as graph:
            node = graph.apply_op(op, [gc.constant(value) for value in (*inputs, *constants)])
        context = KernelContext(
            xp=np,
            attrs=node.node_def.attr,
            input_types=node.input_types,
            output_types=node.output_types,
            constants=(*[None] * count, *constants),
        )
        factory = node.registration.kernel
        assert factory is not None
        kernel, arguments = factory(context), (*inputs, *constants)
        return Work(run=lambda: kernel(*arguments), outcome=lambda: [kernel(*arguments)])

    return make


def numpy(function: Callable[..., Any], count: int) -> Callable[[], Work]:
    """NumPy's function of the same matrices."""

    def make() -> Work:
        inputs = operands(count)
        return Work(run=lambda: function(*inputs), outcome=lambda: [np.asarray(function(*inputs))])

    return make


def _row(order: float, title: str, op: str, count: int, function: Callable[..., Any], constants: Sequence[Array] = ()) -> Row:
    return Row(
        order=order,
        title=f"{title} kernel, 512x512",
        unit="us",
        budgets=(Budget(1.05, "numpy"),),
        ours=ours(op, count, constants),
        numpy=numpy(function, count),
    )


ADD = _row(16.0, "AddV2", "AddV2", 2, np.add)
TANH = _row(16.1, "Tanh", "Tanh", 1, np.tanh)
SUM = _row(16.2, "Sum by rows", "Sum", 1, lambda x: np.sum(x, 1), (np.int32(1),))  # type: ignore[arg-type]  # a scalar is an array here
MAX = _row(16.3, "Max by columns", "Max", 1, lambda x: np.max(x, 0), (np.int32(0),))  # type: ignore[arg-type]  # a scalar is an array here
MATMUL = _row(16.4, "MatMul", "MatMul", 2, np.matmul)
