"""Depthwise convolution, with separate filters for every channel."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.inference.shape_fns.common_shape_fns import (
    conv2d_backprop_filter_shape,
    depthwise_conv2d_native_backprop_input_shape,
    depthwise_conv2d_native_shape,
)
from graphcore.opset.framework.block import Example, Kernel, KernelContext, op
from graphcore.opset.framework.kernels import constant_ints, ints, invalid
from graphcore.opset.nn.convolution import SAME, gradient_of_filter_gradient, gradient_of_forward, gradient_of_input_gradient
from graphcore.opset.numerics.convolving import Convolution
from graphcore.opset.numerics.convolving_depthwise import depthwise, depthwise_filter_gradient, depthwise_input_gradient
from graphcore.opset.numerics.windows import Geometry
from graphcore.traits import FailsOn

_TYPES: Final = "{half, bfloat16, float, double}"
_ATTRS: Final = (
    "strides:list(int), padding:{'SAME', 'VALID', 'EXPLICIT'}, explicit_paddings:list(int) = [], data_format:{'NHWC', 'NCHW'} = 'NHWC', "
    "dilations:list(int) = [1, 1, 1, 1]"
)
_OPS: Final = ("DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter")
_VALID: Final = {"strides": [1, 2, 2, 1], "padding": "VALID"}


def _ramp(*sizes: int) -> Any:
    count = int(np.prod(sizes))
    return (((np.arange(count) * 5 + 2) % 17 - 8.25) / 8).reshape(sizes).astype(np.float32)


def _with_repeated_channels(k: KernelContext, x: Any, w_shape: tuple[int, ...]) -> Any:
    """The input with channels repeated, so that each has a single filter.

    Raises:
        InvalidArgumentError: the filter is for another number of channels.
    """
    if x.shape[-1] != w_shape[2]:
        raise invalid(k, f"input and filter must have the same depth: {x.shape[-1]} vs {w_shape[2]}")
    return x if w_shape[3] == 1 else k.xp.repeat(x, w_shape[3], -1)


def _one_for_each_channel(w: Any) -> Any:
    """The filters of an input with repeated channels: [rows, columns, channels * times]."""
    return w.reshape((*w.shape[:2], w.shape[2] * w.shape[3]))


def _check_gradient(conv: Convolution, dy: Any, g: Geometry, w_shape: tuple[int, ...]) -> None:
    """Refuse a gradient of the output that is not as large as the output."""
    conv.check_places(dy, g)
    if dy.shape[-1] != w_shape[2] * w_shape[3]:
        text = f"the gradient of the output must have {w_shape[2]} * {w_shape[3]} channels, got {dy.shape[-1]}"
        raise invalid(conv.k, text)


@op
class DepthwiseConv2dNative:
    """A two-dimensional convolution of each channel with its own filters.

    Output channel c * times + m is channel c convolved with filter m.

    input: [batch, rows, columns, channels], or in data_format's order
    filter: [rows, columns, channels, times]
    output: [batch, rows, columns, channels * times]
    """

    signature = f"DepthwiseConv2dNative[T:{_TYPES}, {_ATTRS}](input:T, filter:T) -> (output:T)"
    layer = "depthwise convolution"
    shape = depthwise_conv2d_native_shape
    cost = "convolution"
    can_fail = FailsOn(empty=True)
    gradient = gradient_of_forward(*_OPS)
    examples = (
        Example([_ramp(2, 4, 5, 3), _ramp(3, 2, 3, 1)], SAME),
        Example([_ramp(1, 5, 6, 2), _ramp(3, 3, 2, 2)], _VALID),
    )
    failures = (Example([_ramp(2, 4, 5, 3), np.zeros((3, 2, 3, 0), np.float32)], SAME),)

    def kernel(k: KernelContext) -> Kernel:
        conv = Convolution(k)

        def convolve(x: Any, w: Any) -> Any:
            x, w = conv.channels_last_array(x), conv.filter_array(w)
            conv.check_filter(w)
            x = _with_repeated_channels(k, x, w.shape)
            return conv.result(depthwise(k.xp, x, _one_for_each_channel(w), conv.geometry(x.shape[1:-1], w.shape[:2])))

        return convolve


@op
class DepthwiseConv2dNativeBackpropInput:
    """The gradient of DepthwiseConv2dNative with respect to its input.

    input_sizes: the shape of the input of the convolution
    filter: as of the convolution
    out_backprop: the gradient of its output
    """

    signature = f"DepthwiseConv2dNativeBackpropInput[T:{_TYPES}, {_ATTRS}](input_sizes:int32, filter:T, out_backprop:T) -> (output:T)"
    shape = depthwise_conv2d_native_backprop_input_shape
    cost = "convolution"
    gradient = gradient_of_input_gradient(*_OPS)
    examples = (
        Example([[2, 4, 5, 3], _ramp(3, 2, 3, 1), _ramp(2, 4, 5, 3)], SAME),
        Example([[1, 5, 6, 2], _ramp(3, 3, 2, 2), _ramp(1, 2, 2, 4)], _VALID),
    )
    failures = (Example([[-1, -1, -1, -1], _ramp(3, 2, 3, 1), _ramp(2, 4, 5, 3)], SAME),)

    def kernel(k: KernelContext) -> Kernel:
        conv, constant_sizes = Convolution(k), constant_ints(k, 0)

        def gradient(sizes: Any, w: Any, dy: Any) -> Any:
            whole = conv.channels_last_sizes(ints(sizes) if constant_sizes is None else constant_sizes)
            dy, w = conv.channels_last_array(dy), conv.filter_array(w)
            g = conv.geometry(whole[1:-1], w.shape[:2])
            _check_gradient(conv, dy, g, w.shape)
            dx = depthwise_input_gradient(k.xp, _one_for_each_channel(w), dy, g, whole[1:-1])
            return conv.result(dx if w.shape[3] == 1 else dx.reshape((*dx.shape[:-1], *w.shape[2:])).sum(-1))

        return gradient


@op
class DepthwiseConv2dNativeBackpropFilter:
    """The gradient of DepthwiseConv2dNative with respect to its filter.

    input: as of the convolution
    filter_sizes: the shape of its filter
    out_backprop: the gradient of its output
    """

    signature = f"DepthwiseConv2dNativeBackpropFilter[T:{_TYPES}, {_ATTRS}](input:T, filter_sizes:int32, out_backprop:T) -> (output:T)"
    shape = conv2d_backprop_filter_shape
    cost = "convolution"
    gradient = gradient_of_filter_gradient(*_OPS)
    examples = (
        Example([_ramp(2, 4, 5, 3), [3, 2, 3, 1], _ramp(2, 4, 5, 3)], SAME),
        Example([_ramp(1, 5, 6, 2), [3, 3, 2, 2], _ramp(1, 2, 2, 4)], _VALID),
    )
    failures = (Example([_ramp(2, 4, 5, 3), [-1, -1, -1, -1], _ramp(2, 4, 5, 3)], SAME),)

    def kernel(k: KernelContext) -> Kernel:
        conv, constant_sizes = Convolution(k), constant_ints(k, 1)

        def gradient(x: Any, sizes: Any, dy: Any) -> Any:
            whole = ints(sizes) if constant_sizes is None else constant_sizes
            x, dy = conv.channels_last_array(x), conv.channels_last_array(dy)
            g = conv.geometry(x.shape[1:-1], whole[:2])
            _check_gradient(conv, dy, g, whole)
            dw = depthwise_filter_gradient(k.xp, _with_repeated_channels(k, x, whole), dy, g).reshape(whole)
            return dw.astype(conv.dtype, copy=False)

        return gradient
