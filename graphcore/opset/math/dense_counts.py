"""Counts of numbers in the rows of a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphcore.inference import InferenceContext
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, KernelContext, op
from graphcore.opset.framework.kernels import invalid, one_int
from graphcore.opset.framework.type_sets import INDEX

_NONE = np.zeros(0, np.float32)


@op
class DenseBincount:
    """The count of each number below `size` in a vector or each row of a matrix, or its weight.

    input: numbers >= 0; others from `size` on are ignored, [n] or [rows, n]
    size: a scalar
    weights: like the input, or empty for counting
    output: [size] or [rows, size]
    binary_output: 1 for each number that occurs.
    """

    signature = f"DenseBincount[Tidx:{INDEX}, T:{{int32, int64, float, double}}, binary_output:bool = false](input:Tidx, size:Tidx, weights:T) -> (output:T)"
    gradient = NO_GRADIENT
    examples = (
        Example([[1, 1, 5, 3], 4, _NONE], outputs=[[0.0, 2.0, 0.0, 1.0]]),
        Example([[[1, 1], [2, 0]], 3, [[0.5, 1.0], [2.0, 4.0]]], outputs=[[[0.0, 1.5, 0.0], [4.0, 0.0, 2.0]]]),
        Example([[[1, 1], [2, 0]], 3, _NONE], {"binary_output": True}, outputs=[[[0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]]),
    )
    failures = (Example([[-1, 2], 4, _NONE]),)

    def shape(c: InferenceContext) -> None:
        in_shape = c.with_rank_at_most(c.input(0), 2)
        c.with_rank(c.input(1), 0)
        size = c.input_tensor(1)
        if in_shape.dims is None:
            c.set_output(0, in_shape)
            return
        count = c.unknown_dim() if size is None else c.make_dim(int(size))
        c.set_output(0, c.concatenate(c.subshape(in_shape, 0, -1) if c.rank(in_shape) else c.scalar(), c.vector(count)))

    def kernel(k: KernelContext) -> Kernel:
        xp, dtype, binary = k.xp, k.dtype("T"), k.attr("binary_output") is True

        def count(numbers: Any, size: Any, weights: Any) -> Any:
            bins = one_int(k, size)
            if not 1 <= numbers.ndim <= 2:
                raise invalid(k, f"Shape must be at most rank 2 but is rank {numbers.ndim}")
            if bins < 0 or (numbers.size and numbers.min() < 0):
                raise invalid(k, "Input must be non-negative")
            if weights.size and weights.shape != numbers.shape:
                raise invalid(k, f"weights must be like the input {list(numbers.shape)} or empty, got shape {list(weights.shape)}")
            rows = numbers.reshape(-1, numbers.shape[-1])
            inside = rows < bins
            places = (rows + xp.arange(len(rows))[:, None] * bins)[inside]
            factors = weights.reshape(rows.shape)[inside] if weights.size and not binary else None
            counts = xp.bincount(places, factors, minlength=len(rows) * bins)[: len(rows) * bins].reshape(*numbers.shape[:-1], bins)
            return (counts > 0 if binary else counts).astype(dtype)

        return count
