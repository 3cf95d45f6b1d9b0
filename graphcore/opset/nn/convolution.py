"""Convolutions over two and three spatial dimensions, and their gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from graphcore.attrs import Attrs
from graphcore.inference import InferenceContext
from graphcore.inference.shape_fns.common_shape_fns import (
    conv2d_backprop_filter_shape,
    conv2d_backprop_input_shape,
    conv2d_shape,
    conv3d_shape,
)
from graphcore.opset.framework.block import Example, Kernel, KernelContext, op
from graphcore.opset.framework.kernels import constant_ints, ints, invalid
from graphcore.opset.numerics.convolving import Convolution, filter_gradient, forward, grouped, input_gradient
from graphcore.registry import KernelFactory
from graphcore.traits import FailsOn

_PADDING: Final = "padding:{'SAME', 'VALID', 'EXPLICIT'}, explicit_paddings:list(int) = []"
_ATTRS_2D: Final = f"strides:list(int), use_cudnn_on_gpu:bool = true, {_PADDING}, data_format:{{'NHWC', 'NCHW'}} = 'NHWC', dilations:list(int) = [1, 1, 1, 1]"
_ATTRS_3D: Final = (
    "strides:list(int) >= 5, padding:{'SAME', 'VALID'}, data_format:{'NDHWC', 'NCDHW'} = 'NDHWC', dilations:list(int) = [1, 1, 1, 1, 1]"
)
_TYPES_2D: Final = "{half, bfloat16, float, double, int32}"
_TYPES: Final = "{half, bfloat16, float, double}"


def _ramp(*sizes: int) -> Any:
    """Distinct small numbers other than 0."""
    count = int(np.prod(sizes))
    return (((np.arange(count) * 7 + 3) % 19 - 9.25) / 8).reshape(sizes).astype(np.float32)


SAME: Final = {"strides": [1, 1, 1, 1], "padding": "SAME"}
EXAMPLES_2D: Final = (
    ((2, 4, 5, 3), (3, 2, 3, 4), SAME),
    ((1, 6, 5, 2), (3, 3, 2, 3), {"strides": [1, 2, 3, 1], "padding": "VALID"}),
    ((1, 7, 6, 2), (3, 2, 2, 2), {"strides": [1, 2, 1, 1], "padding": "SAME", "dilations": [1, 1, 2, 1]}),
    ((1, 4, 4, 1), (2, 2, 1, 2), {"strides": [1, 1, 1, 1], "padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 0, 2, 1, 0, 0]}),
    ((2, 3, 3, 4), (1, 1, 4, 2), SAME),
)


def conv_gradients(forward_op: str, by_input: str, by_filter: str, attrs: Attrs) -> tuple[str, str, str, str]:
    """The parts of a convolution's gradient texts: attr definitions, and the three ops without inputs.

    Attrs that older bodies do not mention (dilations, explicit paddings) are mentioned if used.
    """
    names = ["strides", *(["use_cudnn_on_gpu"] if "use_cudnn_on_gpu" in attrs else []), "padding", "data_format"]
    kinds = {"strides": "list(int)", "use_cudnn_on_gpu": "bool = true", "padding": "string", "data_format": "string"}
    for name in ("explicit_paddings", "dilations"):
        value = attrs.get(name)
        if isinstance(value, tuple) and set(value) - {1}:
            names.append(name)
            kinds[name] = "list(int)"
    definitions = ", ".join(["T:{float, double}", *[f"{name}:{kinds[name]}" for name in names]])
    options = ", ".join(["T=$T", *[f"{name}=${name}" for name in names]])
    return definitions, f"{forward_op}[{options}]", f"{by_input}[{options}]", f"{by_filter}[{options}]"


def gradient_of_forward(*ops: str) -> Callable[[Attrs], str]:
    """The gradient of a convolution with `ops`: itself, its gradients by input and by filter."""

    def gradient(attrs: Attrs) -> str:
        definitions, _, by_input, by_filter = conv_gradients(ops[0], ops[1], ops[2], attrs)
        return f"""[{definitions}](input:T, filter:T, grad:T) -> (input_grad:T, filter_grad:T) {{
          i_shape = Shape[T=$T](input)
          input_grad = {by_input}(i_shape, filter, grad)
          f_shape = Shape[T=$T](filter)
          filter_grad = {by_filter}(input, f_shape, grad)
        }}"""

    return gradient


def gradient_of_input_gradient(*ops: str) -> Callable[[Attrs], str]:
    """The gradient of the gradient with respect to the input."""

    def gradient(attrs: Attrs) -> str:
        definitions, whole, _, by_filter = conv_gradients(ops[0], ops[1], ops[2], attrs)
        return f"""[{definitions}](sizes:int32, filter:T, dy:T, grad:T) -> (dsizes:int32, dfilter:T, ddy:T) {{
          dsizes = ZerosLike[T=int32](sizes)
          f_shape = Shape[T=$T](filter)
          dfilter = {by_filter}(grad, f_shape, dy)
          ddy = {whole}(grad, filter)
        }}"""

    return gradient


def gradient_of_filter_gradient(*ops: str) -> Callable[[Attrs], str]:
    """The gradient of the gradient with respect to the filter."""

    def gradient(attrs: Attrs) -> str:
        definitions, whole, by_input, _ = conv_gradients(ops[0], ops[1], ops[2], attrs)
        return f"""[{definitions}](input:T, sizes:int32, dy:T, grad:T) -> (dinput:T, dsizes:int32, ddy:T) {{
          i_shape = Shape[T=$T](input)
          dinput = {by_input}(i_shape, grad, dy)
          dsizes = ZerosLike[T=int32](sizes)
          ddy = {whole}(input, grad)
        }}"""

    return gradient


def _groups(convolution: Convolution, channels: int, filter_channels: int) -> int:
    groups, rest = divmod(channels, max(1, filter_channels))
    if rest or not groups:
        raise invalid(convolution.k, f"input depth must be evenly divisible by filter depth: {channels} vs {filter_channels}")
    return groups


def _forward(default_format: bytes) -> KernelFactory:
    def kernel(k: KernelContext) -> Kernel:
        conv = Convolution(k, default_format)

        def convolve(x: Any, w: Any) -> Any:
            x, w = conv.channels_last_array(x), conv.filter_array(w)
            conv.check_filter(w)
            g = conv.geometry(x.shape[1:-1], w.shape[:-2])
            groups = _groups(conv, x.shape[-1], w.shape[-2])
            return conv.result(grouped(k.xp, lambda x, w: forward(k.xp, x, w, g), groups, ((x, -1), (w, -1)), -1))

        return convolve

    return kernel


def _by_input(default_format: bytes) -> KernelFactory:
    def kernel(k: KernelContext) -> Kernel:
        conv = Convolution(k, default_format)
        constant_sizes = constant_ints(k, 0)

        def gradient(sizes: Any, w: Any, dy: Any) -> Any:
            listed_sizes = ints(sizes) if constant_sizes is None else constant_sizes
            dy, w = conv.channels_last_array(dy), conv.filter_array(w)
            spatial_only = len(listed_sizes) == dy.ndim - 2
            whole = (dy.shape[0], *listed_sizes, w.shape[-2]) if spatial_only else conv.channels_last_sizes(listed_sizes)
            g = conv.geometry(whole[1:-1], w.shape[:-2])
            conv.check_places(dy, g)
            groups = _groups(conv, whole[-1], w.shape[-2])
            dx = grouped(k.xp, lambda w, dy: input_gradient(k.xp, w, dy, g, whole[1:-1]), groups, ((w, -1), (dy, -1)), -1)
            return conv.result(dx)

        return gradient

    return kernel


def _by_filter(default_format: bytes) -> KernelFactory:
    def kernel(k: KernelContext) -> Kernel:
        conv = Convolution(k, default_format)
        constant_sizes = constant_ints(k, 1)

        def gradient(x: Any, sizes: Any, dy: Any) -> Any:
            whole = ints(sizes) if constant_sizes is None else constant_sizes
            x, dy = conv.channels_last_array(x), conv.channels_last_array(dy)
            g = conv.geometry(x.shape[1:-1], whole[:-2])
            conv.check_places(dy, g)
            groups = _groups(conv, x.shape[-1], whole[-2])
            dw = grouped(k.xp, lambda x, dy: filter_gradient(k.xp, x, dy, g), groups, ((x, -1), (dy, -1)), -1)
            return dw.astype(conv.dtype, copy=False)

        return gradient

    return kernel


_CONV2D: Final = ("Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter")


@op
class Conv2D:
    """A two-dimensional convolution: each output is the sum of an input window times the filter.

    explicit_paddings is empty unless padding is EXPLICIT. If the filter has fewer input channels than the input, they form groups.

    input: [batch, rows, columns, channels], or in data_format's order
    filter: [rows, columns, channels, output channels]
    output: [batch, rows, columns, output channels]
    strides: the step of the window, for each input dimension.
    dilations: the distance of elements of the window.
    """

    signature = f"Conv2D[T:{_TYPES_2D}, {_ATTRS_2D}](input:T, filter:T) -> (output:T)"
    layer = "convolution"
    shape = conv2d_shape
    cost = "convolution"
    can_fail = FailsOn(empty=True)
    kernel = _forward(b"NHWC")
    gradient = gradient_of_forward(*_CONV2D)
    examples = (
        *[Example([_ramp(*x), _ramp(*w)], attrs) for x, w, attrs in EXAMPLES_2D],
        Example([_ramp(1, 4, 4, 4), _ramp(2, 2, 2, 6)], SAME),
    )
    failures = (
        Example([np.zeros((0, 4, 5, 3), np.float32), np.zeros((3, 0, 3, 4), np.float32)], {"strides": [1, 1, 1, 1], "padding": "SAME"}),
    )


@op
class Conv2DBackpropInput:
    """The gradient of Conv2D with respect to its input.

    input_sizes: the shape of the input of the convolution
    filter: as of the convolution
    out_backprop: the gradient of its output
    """

    signature = f"Conv2DBackpropInput[T:{_TYPES_2D}, {_ATTRS_2D}](input_sizes:int32, filter:T, out_backprop:T) -> (output:T)"
    layer = "transposed convolution"
    shape = conv2d_backprop_input_shape
    cost = "convolution"
    kernel = _by_input(b"NHWC")
    gradient = gradient_of_input_gradient(*_CONV2D)
    examples = (
        Example([[2, 4, 5, 3], _ramp(3, 2, 3, 4), _ramp(2, 4, 5, 4)], SAME),
        Example([[1, 6, 5, 2], _ramp(3, 3, 2, 3), _ramp(1, 2, 1, 3)], {"strides": [1, 2, 3, 1], "padding": "VALID"}),
        Example([[1, 7, 6, 2], _ramp(3, 2, 2, 2), _ramp(1, 4, 6, 2)], {"strides": [1, 2, 1, 1], "padding": "SAME"}),
    )
    failures = (Example([[-1, -1, -1, -1], _ramp(3, 2, 3, 4), _ramp(2, 4, 5, 4)], SAME),)


@op
class Conv2DBackpropFilter:
    """The gradient of Conv2D with respect to its filter.

    input: as of the convolution
    filter_sizes: the shape of its filter
    out_backprop: the gradient of its output
    """

    signature = f"Conv2DBackpropFilter[T:{_TYPES}, {_ATTRS_2D}](input:T, filter_sizes:int32, out_backprop:T) -> (output:T)"
    shape = conv2d_backprop_filter_shape
    cost = "convolution"
    kernel = _by_filter(b"NHWC")
    gradient = gradient_of_filter_gradient(*_CONV2D)
    examples = (
        Example([_ramp(2, 4, 5, 3), [3, 2, 3, 4], _ramp(2, 4, 5, 4)], SAME),
        Example([_ramp(1, 6, 5, 2), [3, 3, 2, 3], _ramp(1, 2, 1, 3)], {"strides": [1, 2, 3, 1], "padding": "VALID"}),
    )
    failures = (Example([_ramp(2, 4, 5, 3), [-1, -1, -1, -1], _ramp(2, 4, 5, 4)], SAME),)


def _sizes_of_rank_5(index: int) -> Callable[[InferenceContext], None]:
    def shape(c: InferenceContext) -> None:
        c.set_output(0, c.with_rank(c.make_shape_from_shape_tensor(index), 5))

    return shape


_CONV3D: Final = ("Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2")
_SAME_3D: Final = {"strides": [1, 1, 1, 1, 1], "padding": "SAME"}
_VALID_3D: Final = {"strides": [1, 2, 1, 2, 1], "padding": "VALID"}


@op
class Conv3D:
    """A three-dimensional convolution: each output is the sum of an input window times the filter.

    input: [batch, planes, rows, columns, channels], or in data_format's order
    filter: [planes, rows, columns, channels, output channels]
    output: [batch, planes, rows, columns, output channels]
    """

    signature = f"Conv3D[T:{_TYPES}, {_ATTRS_3D}](input:T, filter:T) -> (output:T)"
    layer = "convolution"
    shape = conv3d_shape
    cost = "convolution"
    can_fail = FailsOn(empty=True)
    kernel = _forward(b"NDHWC")
    gradient = gradient_of_forward(*_CONV3D)
    examples = (
        Example([_ramp(1, 2, 3, 3, 2), _ramp(2, 2, 1, 2, 3)], _SAME_3D),
        Example([_ramp(1, 3, 3, 4, 1), _ramp(2, 2, 2, 1, 2)], _VALID_3D),
    )
    failures = (Example([np.zeros((0, 2, 3, 3, 2), np.float32), np.zeros((2, 2, 0, 2, 3), np.float32)], _SAME_3D),)


@op
class Conv3DBackpropInputV2:
    """The gradient of Conv3D with respect to its input.

    input_sizes: the shape of the input of the convolution
    filter: as of the convolution
    out_backprop: the gradient of its output
    """

    signature = f"Conv3DBackpropInputV2[T:{_TYPES}, {_ATTRS_3D}, Tshape:{{int32, int64}} = int32](input_sizes:Tshape, filter:T, out_backprop:T) -> (output:T)"
    layer = "transposed convolution"
    shape = _sizes_of_rank_5(0)
    cost = "convolution"
    kernel = _by_input(b"NDHWC")
    gradient = gradient_of_input_gradient(*_CONV3D)
    examples = (Example([[1, 3, 3, 4, 1], _ramp(2, 2, 2, 1, 2), _ramp(1, 1, 2, 2, 2)], _VALID_3D),)
    failures = (Example([[-1, -1, -1, -1, -1], _ramp(2, 2, 2, 1, 2), _ramp(1, 1, 2, 2, 2)], _VALID_3D),)


@op
class Conv3DBackpropFilterV2:
    """The gradient of Conv3D with respect to its filter.

    input: as of the convolution
    filter_sizes: the shape of its filter
    out_backprop: the gradient of its output
    """

    signature = f"Conv3DBackpropFilterV2[T:{_TYPES}, {_ATTRS_3D}](input:T, filter_sizes:int32, out_backprop:T) -> (output:T)"
    shape = _sizes_of_rank_5(1)
    cost = "convolution"
    kernel = _by_filter(b"NDHWC")
    gradient = gradient_of_filter_gradient(*_CONV3D)
    examples = (Example([_ramp(1, 3, 3, 4, 1), [2, 2, 2, 1, 2], _ramp(1, 1, 2, 2, 2)], _VALID_3D),)
    failures = (Example([_ramp(1, 3, 3, 4, 1), [-1, -1, -1, -1, -1], _ramp(1, 1, 2, 2, 2)], _VALID_3D),)
