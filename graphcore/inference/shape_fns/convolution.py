"""Shape functions of convolutions and their gradients."""

from __future__ import annotations

from graphcore.errors import InvalidArgumentError
from graphcore.inference.context import InferenceContext
from graphcore.inference.handles import DimensionHandle, ShapeHandle
from graphcore.inference.shape_fns.windows import DataFormat, Window, data_format, explicit_paddings, sizes_attr, windowed_output_size


def conv2d_shape(c: InferenceContext) -> None:
    """Conv2D: `input: [b, rows, cols, depth]  filter: [rows, cols, depth / groups, out]`.

    The output is `[b, rows, cols, out]`.
    """
    layout = data_format(c, "NHWC")
    c.set_output(0, _convolution(c, layout, f"Conv2D on data format {layout.name} requires the stride", "Conv2D requires the dilation"))


def conv3d_shape(c: InferenceContext) -> None:
    """Conv3D: `input: [b, planes, rows, cols, depth]  filter: [planes, rows, cols, depth / groups, out]`.

    The output is `[b, planes, rows, cols, out]`.
    """
    layout = data_format(c, "NDHWC")
    c.set_output(0, _convolution(c, layout, "Conv3D requires the stride", "Conv3D requires the dilation"))


def _convolution(c: InferenceContext, layout: DataFormat, strides_text: str, dilations_text: str) -> ShapeHandle:
    in_shape = c.with_rank(c.input(0), layout.rank)
    kernel = c.with_rank(c.input(1), layout.rank)
    dilations = sizes_attr(c, "dilations", layout.rank, what=dilations_text)
    strides = sizes_attr(c, "strides", layout.rank, what=strides_text)
    out_depth = c.dim(kernel, -1)
    _check_groups(c.dim(in_shape, layout.channel).value, c.dim(kernel, -2).value, out_depth.value)
    return _slide(c, layout, in_shape, kernel, strides, dilations, out_depth)


def _check_groups(depth: int, kernel_depth: int, out_depth: int) -> None:
    if kernel_depth == 0:
        raise InvalidArgumentError("Depth of filter must not be 0")
    if depth < 0 or kernel_depth < 0 or depth == kernel_depth:
        return
    if depth % kernel_depth:
        raise InvalidArgumentError(f"Depth of input ({depth}) is not a multiple of input depth of filter ({kernel_depth})")
    groups = depth // kernel_depth
    if groups == 0:
        raise InvalidArgumentError("Number of groups must not be 0")
    if out_depth >= 0 and out_depth % groups:
        raise InvalidArgumentError(f"Depth of output ({out_depth}) is not a multiple of the number of groups ({groups})")


def _slide(
    c: InferenceContext,
    layout: DataFormat,
    in_shape: ShapeHandle,
    kernel: ShapeHandle,
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    out_depth: DimensionHandle,
) -> ShapeHandle:
    padding, pairs = c.text_attr("padding"), explicit_paddings(c, layout)
    spatial = [
        windowed_output_size(c, c.dim(in_shape, at), Window(c.dim(kernel, i), strides[at], dilations[at], pairs[at]), padding)
        for i, at in enumerate(layout.spatial)
    ]
    return layout.assemble(c.dim(in_shape, 0), spatial, out_depth)


def depthwise_conv2d_native_shape(c: InferenceContext) -> None:
    """`input: [b, rows, cols, d]  filter: [rows, cols, d, times]  -> [b, rows, cols, d * times]`."""
    layout = data_format(c, "NHWC")
    in_shape = c.with_rank(c.input(0), 4)
    kernel = c.with_rank(c.input(1), 4)
    strides = sizes_attr(c, "strides", 4, what="DepthwiseConv2D requires the stride")
    dilations = sizes_attr(c, "dilations", 4, what="DepthwiseConv2D requires the dilations")
    depth = c.merge_dim(c.dim(in_shape, layout.channel), c.dim(kernel, 2))
    c.set_output(0, _slide(c, layout, in_shape, kernel, strides, dilations, c.multiply(depth, c.dim(kernel, 3))))


def conv2d_backprop_input_shape(c: InferenceContext) -> None:
    """`input_sizes: [4] or [2]  filter  out_backprop`: the sizes of the input.

    Two sizes are the spatial ones only.
    """
    layout = data_format(c, "NHWC")
    sizes = c.make_shape_from_shape_tensor(0)
    gradient, kernel = c.with_rank(c.input(2), 4), c.with_rank(c.input(1), 4)
    c.merge_dim(c.dim(gradient, layout.channel), c.dim(kernel, 3))
    if sizes.dims is None:
        sizes = c.unknown_shape_of_rank(4)
    if sizes.dims is None or len(sizes.dims) not in {2, 4}:
        raise InvalidArgumentError(f"Conv2DBackpropInput requires input_sizes to contain 4 values or 2 values, but got: {c.rank(sizes)}")
    if len(sizes.dims) == 2:
        c.set_output(0, layout.assemble(c.dim(gradient, 0), list(sizes.dims), c.dim(kernel, 2)))
        return
    c.set_output(0, c.replace_dim(sizes, 0, c.merge_dim(c.dim(gradient, 0), sizes.dims[0])))


def sizes_with_rank(c: InferenceContext, index: int, rank: int) -> None:
    """The shape given by the value of input `index`, which must have that rank."""
    c.set_output(0, c.with_rank(c.make_shape_from_shape_tensor(index), rank))


def conv2d_backprop_filter_shape(c: InferenceContext) -> None:
    """`input  filter_sizes: [4]  out_backprop`: the sizes of the filter."""
    sizes_with_rank(c, 1, 4)


def depthwise_conv2d_native_backprop_input_shape(c: InferenceContext) -> None:
    """`input_sizes: [4]  filter  out_backprop`: the sizes of the input."""
    sizes_with_rank(c, 0, 4)
