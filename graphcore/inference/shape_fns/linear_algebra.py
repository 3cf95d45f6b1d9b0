"""Shape functions of matrix products and bias additions."""

from __future__ import annotations

from graphcore.inference.context import InferenceContext
from graphcore.inference.handles import ShapeHandle
from graphcore.inference.shape_fns.broadcast import broadcast_shapes


def matmul_shape(c: InferenceContext) -> None:
    """`a: [m, k]  b: [k, n] -> [m, n]`, either transposed by attrs transpose_a, transpose_b."""
    a_dims = c.with_rank(c.inputs[0], 2).dims or ()
    b_dims = c.with_rank(c.inputs[1], 2).dims or ()
    rows, inner_a = reversed(a_dims) if c.attr("transpose_a") else a_dims
    inner_b, columns = reversed(b_dims) if c.attr("transpose_b") else b_dims
    c.merge_dim(inner_a, inner_b)
    c.outputs[0] = ShapeHandle((rows, columns))


def batch_matmul_shape(c: InferenceContext) -> None:
    """`x: [..., m, k]  y: [..., k, n] -> [..., m, n]` with equal leading dimensions."""
    c.set_output(0, _batch_matmul(c, broadcast=False))


def batch_matmul_v2_shape(c: InferenceContext) -> None:
    """`x: [..., m, k]  y: [..., k, n] -> [..., m, n]` with leading dimensions broadcast together."""
    c.set_output(0, _batch_matmul(c, broadcast=True))


def _batch_matmul(c: InferenceContext, *, broadcast: bool) -> ShapeHandle:
    x = c.with_rank_at_least(c.input(0), 2)
    y = c.with_rank_at_least(c.input(1), 2)
    adj_x, adj_y = c.attr("adj_x"), c.attr("adj_y")
    rows = c.dim(x, -1 if adj_x else -2)
    columns = c.dim(y, -2 if adj_y else -1)
    x_batch, y_batch = c.subshape(x, 0, -2), c.subshape(y, 0, -2)
    c.merge_dim(c.dim(x, -2 if adj_x else -1), c.dim(y, -1 if adj_y else -2))
    batch = broadcast_shapes(x_batch, y_batch) if broadcast else c.merge(x_batch, y_batch)
    return c.concatenate(batch, c.matrix(rows, columns))


def bias_add_shape(c: InferenceContext) -> None:
    """`value: [..., n]  bias: [n] -> [..., n]`; with data_format NCHW the bias is along dimension 1."""
    channels_first = c.text_attr("data_format", "NHWC") == "NCHW"
    value = c.with_rank_at_least(c.input(0), 3 if channels_first else 2)
    bias = c.with_rank(c.input(1), 1)
    if value.dims is None:
        c.set_output(0, c.unknown_shape())
        return
    position = 1 if channels_first else len(value.dims) - 1
    merged = c.merge_dim(value.dims[position], c.dim(bias, 0))
    c.set_output(0, c.replace_dim(value, position, merged))


def bias_add_grad_shape(c: InferenceContext) -> None:
    """`[..., n] -> [n]`; with data_format NCHW dimension 1 is kept."""
    channels_first = c.text_attr("data_format", "NHWC") == "NCHW"
    gradient = c.with_rank_at_least(c.input(0), 3 if channels_first else 2)
    c.set_output(0, c.vector(c.dim(gradient, 1 if channels_first else -1)))
