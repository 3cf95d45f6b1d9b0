"""`tf.nn`: convolutions and pooling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from graphcore.dtypes import as_dtype, int64
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor, get_default_graph
from graphcore.tf1.arrays.layout import expand_dims, squeeze
from graphcore.tf1.calls import apply_one, either
from graphcore.tf1.framework import convert_to_tensor, name_scope


def _four(value: Any, data_format: str, name: str) -> list[int]:
    """Numbers for all four dimensions, from one, two or four."""
    if value is None:
        return [1, 1, 1, 1]
    sizes = [value] if isinstance(value, int) else list(value)
    if len(sizes) == 1:
        sizes *= 2
    if len(sizes) == 2:
        return [1, 1, *sizes] if data_format == "NCHW" else [1, *sizes, 1]
    if len(sizes) != 4:
        raise InvalidArgumentError(f"{name}: required 1, 2 or 4 numbers, got {value}")
    return [int(number) for number in sizes]


def _padding(padding: Any, data_format: str = "NHWC") -> dict[str, Any]:
    """The attrs of a padding: its name, or widths before and after each dimension."""
    if isinstance(padding, str):
        return {"padding": padding.upper(), "data_format": data_format}
    if padding is None:
        raise InvalidArgumentError("padding: required SAME, VALID, or widths for each dimension, got None")
    return {"padding": "EXPLICIT", "explicit_paddings": [int(width) for pair in padding for width in pair], "data_format": data_format}


def conv2d(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
    filters: Any = None,
) -> Tensor:
    """A convolution of images. input: [b, h, w, c]  filter: [kh, kw, c, n] -> y: [b, rows, columns, n].

    Args:
        input: the images; [b, c, h, w] for a data format of NCHW.
        filter, filters: the kernels.
        strides: the step in each dimension of the input; one or two numbers are those of height and width.
        padding: "SAME", "VALID", or widths before and after each dimension.
        use_cudnn_on_gpu: without effect.
        data_format: "NHWC" or "NCHW".
        dilations: the distances of the elements of a kernel, in each dimension of the input.
        name: the name of the node.
    """
    attrs = {
        "strides": _four(strides, data_format, "strides"),
        "dilations": _four(dilations, data_format, "dilations"),
        "use_cudnn_on_gpu": use_cudnn_on_gpu,
        **_padding(padding, data_format),
    }
    return apply_one("Conv2D", [input, either("filters", filters, "filter", filter)], name, attrs)


def conv2d_backprop_input(
    input_sizes: Any,
    filter: Any = None,
    out_backprop: Any = None,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
    filters: Any = None,
) -> Tensor:
    """The gradient of a convolution by its input, whose sizes are `input_sizes`."""
    attrs = {
        "strides": _four(strides, data_format, "strides"),
        "dilations": _four(dilations, data_format, "dilations"),
        "use_cudnn_on_gpu": use_cudnn_on_gpu,
        **_padding(padding, data_format),
    }
    return apply_one("Conv2DBackpropInput", [input_sizes, either("filters", filters, "filter", filter), out_backprop], name, attrs)


def conv2d_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of a convolution by its kernels, whose sizes are `filter_sizes`."""
    attrs = {
        "strides": _four(strides, data_format, "strides"),
        "dilations": _four(dilations, data_format, "dilations"),
        "use_cudnn_on_gpu": use_cudnn_on_gpu,
        **_padding(padding, data_format),
    }
    return apply_one("Conv2DBackpropFilter", [input, filter_sizes, out_backprop], name, attrs)


def conv2d_transpose(
    value: Any = None,
    filter: Any = None,
    output_shape: Any = None,
    strides: Any = None,
    padding: Any = "SAME",
    data_format: str = "NHWC",
    name: str | None = None,
    input: Any = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """The transpose of a convolution. value: [b, h, w, c]  filter: [kh, kw, n, c] -> y: output_shape, [b, rows, columns, n]."""
    value = convert_to_tensor(either("input", input, "value", value))
    weights = convert_to_tensor(either("filters", filters, "filter", filter))
    with name_scope(name or "conv2d_transpose") as scope:
        return conv2d_backprop_input(
            output_shape, weights, value, strides, padding, data_format=data_format, dilations=dilations, name=scope
        )


def conv1d(
    value: Any = None,
    filters: Any = None,
    stride: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool | None = None,
    data_format: str | None = None,
    name: str | None = None,
    input: Any = None,
    dilations: Any = None,
) -> Tensor:
    """A convolution of sequences. value: [b, n, c]  filters: [k, c, m] -> y: [b, length, m]."""
    del use_cudnn_on_gpu
    value = either("input", input, "value", value)
    first = data_format in {"NCHW", "NCW"}
    step, distance = ([1 if number is None else number if isinstance(number, int) else number[0]][0] for number in (stride, dilations))
    with name_scope(name or "conv1d"):
        axis = 2 if first else 1
        images = expand_dims(value, axis)
        strides, rates = ([1, 1, 1, n] if first else [1, 1, n, 1] for n in (step, distance))
        result = conv2d(images, expand_dims(filters, 0), strides, padding, data_format="NCHW" if first else "NHWC", dilations=rates)
        return squeeze(result, [axis])


def conv3d(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    padding: Any = None,
    data_format: str = "NDHWC",
    dilations: Any = (1, 1, 1, 1, 1),
    name: str | None = None,
    filters: Any = None,
) -> Tensor:
    """A convolution of volumes. input: [b, d, h, w, c]  filter: [kd, kh, kw, c, n]."""
    attrs = {"strides": list(strides), "padding": padding, "data_format": data_format, "dilations": list(dilations)}
    return apply_one("Conv3D", [input, either("filters", filters, "filter", filter)], name, attrs)


def depthwise_conv2d(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """A convolution of each channel by itself. input: [b, h, w, c]  filter: [kh, kw, c, m] -> y: [b, rows, columns, c * m]."""
    form = data_format or "NHWC"
    attrs = {
        "strides": _four(strides, form, "strides"),
        "dilations": _four(either("dilations", dilations, "rate", rate), form, "dilations"),
        **_padding(padding, form),
    }
    return apply_one("DepthwiseConv2dNative", [input, filter], name or "depthwise", attrs)


def depthwise_conv2d_native(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """A convolution of each channel by itself. input: [b, h, w, c]  filter: [kh, kw, c, m] -> y: [b, rows, columns, c * m]."""
    return depthwise_conv2d(input, filter, strides, padding, None, name or "DepthwiseConv2dNative", data_format, dilations)


def separable_conv2d(
    input: Any,
    depthwise_filter: Any,
    pointwise_filter: Any,
    strides: Any,
    padding: Any,
    rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """A convolution of each channel by itself, then one of all channels at each place."""
    with name_scope(name or "separable_conv2d") as scope:
        depthwise = depthwise_conv2d(input, depthwise_filter, strides, padding, rate, "depthwise", data_format, dilations)
        return conv2d(depthwise, pointwise_filter, [1, 1, 1, 1], "VALID", data_format=data_format or "NHWC", name=scope)


def atrous_conv2d(value: Any, filters: Any, rate: int, padding: Any, name: str | None = None) -> Tensor:
    """A convolution whose kernels have gaps: their elements are `rate` apart."""
    return conv2d(value, filters, [1, 1, 1, 1], padding, dilations=[1, rate, rate, 1], name=name)


def convolution(
    input: Any,
    filter: Any,
    padding: Any,
    strides: Any = None,
    dilation_rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """A convolution over one, two or three dimensions, after the rank of the filter."""
    weights = convert_to_tensor(either("filters", filters, "filter", filter))
    rates = either("dilations", dilations, "dilation_rate", dilation_rate)
    rank = weights.shape.rank
    if rank == 3:
        return conv1d(input, weights, strides, padding, data_format=data_format, name=name, dilations=rates)
    if rank == 4:
        return conv2d(input, weights, strides, padding, data_format=data_format or "NHWC", dilations=rates, name=name or "convolution")
    if rank == 5:
        steps, gaps = ([1, *(setting or (1, 1, 1)), 1] for setting in (strides, rates))
        return conv3d(input, weights, steps, padding, data_format or "NDHWC", gaps, name)
    raise InvalidArgumentError(f"convolution: required a filter of rank 3, 4 or 5, got shape {weights.shape}")


# ---- pooling ---------------------------------------------------------------------------------------------------------


def max_pool(
    value: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NHWC", name: str | None = None, input: Any = None
) -> Tensor:
    """The largest value in each window. value: [b, h, w, c] -> y: [b, rows, columns, c].

    Args:
        value, input: the images; [b, c, h, w] for a data format of NCHW.
        ksize, strides: the size of the window and its steps, in each dimension; one or two numbers are those of height and width.
        padding: "SAME" or "VALID".
        data_format: "NHWC" or "NCHW".
        name: the name of the node.
    """
    return _pool("MaxPool", either("input", input, "value", value), ksize, strides, padding, data_format, name)


def avg_pool(
    value: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NHWC", name: str | None = None, input: Any = None
) -> Tensor:
    """The mean of each window. value: [b, h, w, c] -> y: [b, rows, columns, c]; see `max_pool`."""
    return _pool("AvgPool", either("input", input, "value", value), ksize, strides, padding, data_format, name)


def _pool(op: str, value: Any, ksize: Any, strides: Any, padding: Any, data_format: str, name: str | None) -> Tensor:
    attrs = {
        "ksize": _four(ksize, data_format, "ksize"),
        "strides": _four(strides, data_format, "strides"),
        **_padding(padding, data_format),
    }
    return apply_one(op, [value], name, attrs)


avg_pool2d = avg_pool


def max_pool2d(input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NHWC", name: str | None = None) -> Tensor:
    """The largest value in each window; see `max_pool`."""
    return _pool("MaxPool", input, ksize, strides, padding, data_format, name)


def _pool1d(op: str, input: Any, ksize: Any, strides: Any, padding: Any, data_format: str, name: str | None) -> Tensor:
    with name_scope(name or op):
        axis, form = (2, "NCHW") if data_format.startswith("NC") else (1, "NHWC")
        window, steps = (
            (
                1,
                setting
                if isinstance(setting, int)
                else list(setting)[-1 if len(setting) == 1 or axis == 2 else -2 if len(setting) == 3 else -1],
            )
            for setting in (ksize, strides)
        )
        return squeeze(_pool(op, expand_dims(input, axis), window, steps, padding, form, None), [axis])


def max_pool1d(input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NWC", name: str | None = None) -> Tensor:
    """The largest value in each window of sequences. input: [b, n, c] -> y: [b, length, c]."""
    return _pool1d("MaxPool", input, ksize, strides, padding, data_format, name)


def avg_pool1d(input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NWC", name: str | None = None) -> Tensor:
    """The mean of each window of sequences. input: [b, n, c] -> y: [b, length, c]."""
    return _pool1d("AvgPool", input, ksize, strides, padding, data_format, name)


class Largest(NamedTuple):
    """The largest values of windows, and their places."""

    output: Tensor
    argmax: Tensor


def max_pool_with_argmax(
    input: Any,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    data_format: str = "NHWC",
    Targmax: object = None,  # noqa: N803 - TF1's name
    name: str | None = None,
    output_dtype: object = None,
    include_batch_in_index: bool = False,
) -> Largest:
    """The largest value in each window, and its place as an index into the flattened image."""
    if data_format != "NHWC":
        raise InvalidArgumentError(f"max_pool_with_argmax: required the data format NHWC, got {data_format}")
    places = either("output_dtype", output_dtype, "Targmax", Targmax)
    attrs = {
        "ksize": list(ksize),
        "strides": list(strides),
        "padding": padding,
        "Targmax": int64 if places is None else as_dtype(places),
        "include_batch_in_index": include_batch_in_index,
    }
    outputs = get_default_graph().apply_op("MaxPoolWithArgmax", [input], attrs, name).outputs
    return Largest(outputs[0], outputs[1])


def pool(
    input: Any,
    window_shape: Sequence[int],
    pooling_type: str,
    padding: str,
    dilation_rate: Any = None,
    strides: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """Pooling with windows of `window_shape`, of the type "MAX" or "AVG"."""
    gaps = either("dilations", dilations, "dilation_rate", dilation_rate)
    if gaps is not None and any(gap != 1 for gap in gaps):
        raise InvalidArgumentError(f"pool: required windows without gaps, got dilations {list(gaps)}")
    if pooling_type not in {"MAX", "AVG"} or len(window_shape) != 2:
        raise InvalidArgumentError(f"pool: required MAX or AVG over two dimensions, got {pooling_type} over {len(window_shape)}")
    function = max_pool if pooling_type == "MAX" else avg_pool
    return function(input, list(window_shape), list(strides or [1, 1]), padding, data_format or "NHWC", name)
