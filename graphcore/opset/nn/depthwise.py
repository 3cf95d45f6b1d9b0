"""Depthwise convolution: every channel has filters of its own."""

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
from graphcore.opset.numerics.windows import Geometry, inside, padded, views
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


def _windows(k: KernelContext, x: Any, g: Geometry) -> Any:
    return views(k.xp, padded(k.xp, x, ((0, 0), *g.pads, (0, 0))), g.window, g.slides, g.places)


@op
class DepthwiseConv2dNative:
    """A two-dimensional convolution of each channel with filters of its own; output channel c * times + m is channel c times filter m.

    input: [batch, rows, columns, channels], or as data_format says
    filter: [rows, columns, channels, times]
    output: [batch, rows, columns, channels * times]
    """

    signature = f"DepthwiseConv2dNative[T:{_TYPES}, {_ATTRS}](input:T, filter:T) -> (output:T)"
    shape = depthwise_conv2d_native_shape
    can_fail = FailsOn(empty=True)
    gradient = gradient_of_forward(*_OPS)
    examples = (
        Example([_ramp(2, 4, 5, 3), _ramp(3, 2, 3, 1)], SAME),
        Example([_ramp(1, 5, 6, 2), _ramp(3, 3, 2, 2)], _VALID),
    )

    def kernel(k: KernelContext) -> Kernel:
        conv, einsum = Convolution(k), k.xp.einsum

        def convolve(x: Any, w: Any) -> Any:
            x, w = conv.channels_last_array(x), conv.filter_array(w)
            conv.check_filter(w)
            if x.shape[-1] != w.shape[2]:
                raise invalid(k, f"input and filter must have the same depth: {x.shape[-1]} vs {w.shape[2]}")
            g = conv.geometry(x.shape[1:-1], w.shape[:2])
            windows = _windows(k, x, g)
            if w.shape[3] == 1:
                return conv.result(einsum("nhwijc,ijc->nhwc", windows, w[..., 0]))
            y = einsum("nhwijc,ijcm->nhwcm", windows, w)
            return conv.result(y.reshape((*y.shape[:3], -1)))

        return convolve


@op
class DepthwiseConv2dNativeBackpropInput:
    """The gradient of DepthwiseConv2dNative by its input.

    input_sizes: the shape of the input of the convolution
    filter: as of the convolution
    out_backprop: the gradient of its output
    """

    signature = f"DepthwiseConv2dNativeBackpropInput[T:{_TYPES}, {_ATTRS}](input_sizes:int32, filter:T, out_backprop:T) -> (output:T)"
    shape = depthwise_conv2d_native_backprop_input_shape
    gradient = gradient_of_input_gradient(*_OPS)
    examples = (
        Example([[2, 4, 5, 3], _ramp(3, 2, 3, 1), _ramp(2, 4, 5, 3)], SAME),
        Example([[1, 5, 6, 2], _ramp(3, 3, 2, 2), _ramp(1, 2, 2, 4)], _VALID),
    )

    def kernel(k: KernelContext) -> Kernel:
        conv, known = Convolution(k), constant_ints(k, 0)

        def gradient(sizes: Any, w: Any, dy: Any) -> Any:
            whole = conv.channels_last_sizes(ints(sizes) if known is None else known)
            dy, w = conv.channels_last_array(dy), conv.filter_array(w)
            g = conv.geometry(whole[1:-1], w.shape[:2])
            pads = ((0, 0), *g.pads, (0, 0))
            dx = k.xp.zeros([before + size + after for size, (before, after) in zip(whole, pads, strict=True)], dy.dtype)
            parts = dy.reshape((*dy.shape[:3], w.shape[2], w.shape[3]))
            for i, j in np.ndindex(*g.window):
                rows, columns = (slide.tap(at, count) for slide, at, count in zip(g.slides, (i, j), g.places, strict=True))
                for m in range(w.shape[3]):
                    dx[:, rows, columns] += parts[..., m] * w[i, j, :, m]
            return conv.result(dx[inside(whole, pads)])

        return gradient


@op
class DepthwiseConv2dNativeBackpropFilter:
    """The gradient of DepthwiseConv2dNative by its filter.

    input: as of the convolution
    filter_sizes: the shape of its filter
    out_backprop: the gradient of its output
    """

    signature = f"DepthwiseConv2dNativeBackpropFilter[T:{_TYPES}, {_ATTRS}](input:T, filter_sizes:int32, out_backprop:T) -> (output:T)"
    shape = conv2d_backprop_filter_shape
    gradient = gradient_of_filter_gradient(*_OPS)
    examples = (
        Example([_ramp(2, 4, 5, 3), [3, 2, 3, 1], _ramp(2, 4, 5, 3)], SAME),
        Example([_ramp(1, 5, 6, 2), [3, 3, 2, 2], _ramp(1, 2, 2, 4)], _VALID),
    )

    def kernel(k: KernelContext) -> Kernel:
        conv, einsum, known = Convolution(k), k.xp.einsum, constant_ints(k, 1)

        def gradient(x: Any, sizes: Any, dy: Any) -> Any:
            whole = ints(sizes) if known is None else known
            x, dy = conv.channels_last_array(x), conv.channels_last_array(dy)
            g = conv.geometry(x.shape[1:-1], whole[:2])
            parts = dy.reshape((*dy.shape[:3], whole[2], whole[3]))
            dw = einsum("nhwijc,nhwcm->ijcm", _windows(k, x, g), parts)
            return dw.astype(conv.dtype, copy=False)

        return gradient
