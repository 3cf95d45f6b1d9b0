"""Shape functions of pooling, its gradients, and batch normalisation."""

from __future__ import annotations

from graphcore.errors import InvalidArgumentError
from graphcore.inference.context import InferenceContext
from graphcore.inference.handles import DimensionHandle, ShapeHandle
from graphcore.inference.shape_fns.convolution import sizes_with_rank
from graphcore.inference.shape_fns.windows import DataFormat, Window, data_format, explicit_paddings, sizes_attr, windowed_output_size


def avg_pool_shape(c: InferenceContext) -> None:
    """`value: [batch, rows, columns, depth]`: one mean for each position of the window."""
    layout = data_format(c, "NHWC")
    c.set_output(0, _pool(c, layout, *_window(c, layout, "AvgPool"), depth_too=False))


def max_pool_shape(c: InferenceContext) -> None:
    """`input: [batch, rows, columns, depth]`: one maximum for each position of the window.

    The window may extend along the depth.
    """
    layout = data_format(c, "NHWC")
    c.set_output(0, _pool(c, layout, *_window(c, layout, "MaxPool"), depth_too=True))


def max_pool_v2_shape(c: InferenceContext) -> None:
    """MaxPool with ksize and strides as the last two inputs."""
    layout = data_format(c, "NHWC")
    c.with_rank(c.input(0), layout.rank)
    last = len(c.inputs) - 1
    for i in (last - 1, last):
        c.with_value(c.dim(c.with_rank(c.input(i), 1), 0), layout.rank)
    ksize, strides = c.input_tensor(last - 1), c.input_tensor(last)
    if ksize is None or strides is None:
        c.set_output(0, c.unknown_shape())
        return
    if ksize.size != layout.rank or strides.size != layout.rank:
        raise InvalidArgumentError(f"MaxPool requires ksize and strides to contain {layout.rank} values each")
    c.set_output(0, _pool(c, layout, tuple(ksize.tolist()), tuple(strides.tolist()), depth_too=True))


def max_pool_with_argmax_shape(c: InferenceContext) -> None:
    """MaxPool and the positions of the maxima, both of one shape."""
    max_pool_shape(c)
    c.set_output(1, c.output(0))


def pool3d_shape(c: InferenceContext) -> None:
    """`input: [batch, planes, rows, columns, depth]`: one value for each position of the window.

    For AvgPool3D and MaxPool3D.
    """
    layout = data_format(c, "NDHWC")
    c.set_output(0, _pool(c, layout, *_window(c, layout, "Pool3D"), depth_too=False))


def max_pool_grad_shape(c: InferenceContext) -> None:
    """`orig_input  orig_output  grad`: shaped like the input that was pooled."""
    c.set_output(0, c.with_rank(c.input(0), 4))


def avg_pool_grad_shape(c: InferenceContext) -> None:
    """`orig_input_shape: [4]  grad`: the shape given by input 0."""
    sizes_with_rank(c, 0, 4)


def _window(c: InferenceContext, layout: DataFormat, name: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    strides = sizes_attr(c, "strides", layout.rank, what=f"{name} requires the stride")
    return sizes_attr(c, "ksize", layout.rank, what=f"{name} requires the ksize"), strides


def _pool(c: InferenceContext, layout: DataFormat, ksize: tuple[int, ...], strides: tuple[int, ...], *, depth_too: bool) -> ShapeHandle:
    in_shape = c.with_rank(c.input(0), layout.rank)
    padding, pairs = c.text_attr("padding"), explicit_paddings(c, layout)

    def places(at: int) -> DimensionHandle:
        if ksize[at] <= 0:
            raise InvalidArgumentError(f"Sliding window ksize must be > 0, but got {ksize[at]} for dimension {at}")
        return windowed_output_size(c, c.dim(in_shape, at), Window(DimensionHandle(ksize[at]), strides[at], 1, pairs[at]), padding)

    along_depth = depth_too and (ksize[layout.channel], strides[layout.channel]) != (1, 1)
    depth = places(layout.channel) if along_depth else c.dim(in_shape, layout.channel)
    return layout.assemble(c.dim(in_shape, 0), [places(at) for at in layout.spatial], depth)


def fused_batch_norm_shape(c: InferenceContext) -> None:
    """`x: [b, rows, cols, depth]  scale, offset, mean, variance: [depth] -> y like x, vectors [depth]`."""
    layout = data_format(c, "NHWC")
    x = c.with_rank(c.input(0), layout.rank)
    factor = c.attrs.get("exponential_avg_factor", 1.0)
    depth = c.dim(x, layout.channel)
    # In training with factor 1 the given mean and variance are not used and may be empty.
    for i in range(1, 3 if c.attr("is_training") and factor == 1.0 else 5):
        depth = c.merge_dim(depth, c.dim(c.with_rank(c.input(i), 1), 0))
    c.set_output(0, c.replace_dim(x, layout.channel, depth))
    vector = c.vector(depth)
    for i in range(1, c.num_outputs):
        c.set_output(i, vector if i < 5 else c.unknown_shape())


def fused_batch_norm_grad_shape(c: InferenceContext) -> None:
    """`y_backprop, x: [b, rows, cols, depth]  scale, ...: [depth] -> like x, and vectors [depth]`."""
    layout = data_format(c, "NHWC")
    gradient = c.merge(c.with_rank(c.input(0), layout.rank), c.with_rank(c.input(1), layout.rank))
    depth = c.dim(gradient, layout.channel)
    for i in range(2, 5):
        depth = c.merge_dim(depth, c.dim(c.with_rank(c.input(i), 1), 0))
    c.set_output(0, c.replace_dim(gradient, layout.channel, depth))
    c.set_output(1, c.vector(depth))
    c.set_output(2, c.vector(depth))
    for i in range(3, c.num_outputs):
        c.set_output(i, c.vector(0))
