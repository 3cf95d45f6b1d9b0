"""Pooling over two spatial dimensions: means or maxima of windows, and their gradients."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from graphcore.attrs import Attrs
from graphcore.inference import InferenceContext
from graphcore.inference.shape_fns.common_shape_fns import (
    avg_pool_grad_shape,
    avg_pool_shape,
    max_pool_grad_shape,
    max_pool_shape,
    max_pool_v2_shape,
    max_pool_with_argmax_shape,
)
from graphcore.opset.framework.block import Example, Kernel, KernelContext, op
from graphcore.opset.framework.families import Total
from graphcore.opset.framework.kernels import ints
from graphcore.opset.framework.type_sets import INDEX, REAL
from graphcore.opset.numerics.pooling_windows import (
    Pooling,
    avg_pool,
    avg_pool_grad,
    lowest,
    max_grad,
    max_grad_grad,
    max_pool,
    pooling_of,
)

_WINDOW: Final = "ksize:list(int) >= 4, strides:list(int) >= 4"
_EXPLICIT: Final = "padding:{'SAME', 'VALID', 'EXPLICIT'}, explicit_paddings:list(int) = []"
_PLAIN: Final = "padding:{'SAME', 'VALID'}"
_FORMAT: Final = "data_format:{'NHWC', 'NCHW'} = 'NHWC'"
_MAX_TYPES: Final = "{half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8}"
_MAX_FORMAT: Final = "data_format:{'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'"
_FLOATS: Final = "{half, bfloat16, float, double}"


def ramp(*sizes: int) -> Any:
    """Distinct numbers, unsorted."""
    count = math.prod(sizes)
    return ((np.arange(count) * 37 % 101 + np.arange(count) / 128) / 8 - 6).reshape(sizes).astype(np.float32)


_SAME: Final = {"ksize": [1, 2, 3, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}
_VALID: Final = {"ksize": [1, 2, 2, 1], "strides": [1, 1, 2, 1], "padding": "VALID"}
_EXAMPLES: Final = (Example([ramp(2, 5, 4, 2)], _SAME), Example([ramp(1, 4, 5, 3)], _VALID))


def _max_of(x: Any) -> Any:
    """The example's maximum, pooled by _VALID."""
    rows = np.maximum(x[:, :-1], x[:, 1:])
    return np.maximum(rows[:, :, :-1:2], rows[:, :, 1::2])


_X: Final = ramp(1, 4, 5, 3)
_Y: Final = _max_of(_X)


def _max_pool_grad_text(attrs: Attrs) -> str:
    """The gradient text of max pooling; explicit paddings are mentioned if used."""
    explicit = attrs.get("padding") == b"EXPLICIT"
    names = [
        "ksize",
        "strides",
        "padding",
        *(["explicit_paddings"] if explicit else []),
        *(["data_format"] if attrs.get("data_format") == b"NCHW" else []),
    ]
    options = ", ".join(["T=$T", *[f"{name}=${name}" for name in names]])
    kinds = {"padding": "string", "data_format": "string"}
    definitions = ", ".join(
        [
            "T:{float, half} = float",
            *[f"{name}:{kinds.get(name, 'list(int)' if name == 'explicit_paddings' else 'list(int) >= 4')}" for name in names],
        ]
    )
    return f"""[{definitions}](input:T, grad:T) -> (output:T) {{
      maxpool = MaxPool[{options}](input)
      output = MaxPoolGrad[{options}](input, maxpool, grad)
    }}"""


@op
class MaxPool:
    """The largest element of each window, NaN if there is one; padding counts as smaller than anything.

    input: [batch, rows, columns, channels], or in data_format's order
    ksize: the size of the window in each dimension of the input.
    strides: its step in each dimension.
    """

    signature = f"MaxPool[T:{_MAX_TYPES} = float, {_WINDOW}, {_EXPLICIT}, {_MAX_FORMAT}](input:T) -> (output:T)"
    layer = "pooling"
    shape = max_pool_shape
    cost = "pairs"
    kernel = max_pool
    gradient = _max_pool_grad_text
    examples = (
        *_EXAMPLES,
        Example([ramp(1, 3, 3, 1)], {**_VALID, "padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 0, 0, 1, 0, 0]}),
        Example([ramp(2, 2, 2, 4)], {"ksize": [1, 1, 1, 2], "strides": [1, 1, 1, 2], "padding": "VALID"}),
    )
    failures = (Example([np.full((2, 2, 2, 5), 0.0, np.float32)], {"ksize": [1, 1, 1, 2], "strides": [1, 1, 1, 2], "padding": "VALID"}),)


@op
class MaxPoolV2:
    """The largest element of each window, as MaxPool, with the window as an input.

    ksize: the size of the window in each dimension of the input, [4]
    strides: its step in each dimension, [4]
    """

    signature = f"MaxPoolV2[T:{_MAX_TYPES} = float, {_PLAIN}, {_MAX_FORMAT}](input:T, ksize:int32, strides:int32) -> (output:T)"
    layer = "pooling"
    shape = max_pool_v2_shape
    cost = "pairs"
    gradient = """[T:{float, half}, padding:string, data_format:string](input:T, ksize:int32, strides:int32, grad:T) -> (output:T, dksize:int32, dstrides:int32) {
      maxpool = MaxPoolV2[T=$T, padding=$padding, data_format=$data_format](input, ksize, strides)
      output = MaxPoolGradV2[T=$T, padding=$padding, data_format=$data_format](input, maxpool, grad, ksize, strides)
      dksize = ZerosLike[T=int32](ksize)
      dstrides = ZerosLike[T=int32](strides)
    }"""
    examples = (Example([ramp(2, 5, 4, 2), [1, 2, 3, 1], [1, 2, 2, 1]], {"padding": "SAME"}),)
    failures = (Example([ramp(2, 5, 4, 2), [-1, -1, -1, -1], [1, 2, 2, 1]], {"padding": "SAME"}),)

    def kernel(k: KernelContext) -> Kernel:
        maximum, fill = k.xp.maximum, lowest(k.dtype("T"))
        return lambda x, ksize, strides: Pooling(k, ints(ksize), ints(strides)).reduce(x, maximum, fill)


@op
class MaxPoolGrad:
    """The gradient of MaxPool: the gradient of each window goes to its first largest element.

    orig_input: the pooled tensor
    orig_output: the result
    grad: its gradient
    """

    signature = f"MaxPoolGrad[{_WINDOW}, {_EXPLICIT}, {_FORMAT}, T:{REAL} = float](orig_input:T, orig_output:T, grad:T) -> (output:T)"
    shape = max_pool_grad_shape
    cost = "pairs"
    gradient = f"""[T:{{float, half}} = float, {_WINDOW}, padding:string, data_format:string](input:T, maxpool_in:T, grad:T, dz:T) -> (dinput:T, dmaxpool:T, output:T) {{
      maxpool = MaxPool[T=$T, ksize=$ksize, strides=$strides, padding=$padding, data_format=$data_format](input)
      output = MaxPoolGradGrad[T=$T, ksize=$ksize, strides=$strides, padding=$padding, data_format=$data_format](input, maxpool, dz)
      dinput = ZerosLike[T=$T](input)
      dmaxpool = ZerosLike[T=$T](maxpool_in)
    }}"""
    # The maxima depend on the input, so finite differences show only the gradient with respect to the last input (see MaxPool's tests).
    examples = (Example([_X, _Y, ramp(1, 3, 2, 3)], _VALID, differentiable=False),)
    failures = (Example([_X, np.zeros((1, 3, 0, 3), np.float32), np.zeros((1, 3, 0, 3), np.float32)], _VALID),)

    def kernel(k: KernelContext) -> Kernel:
        pooling = pooling_of(k)
        return lambda x, y, dy: max_grad(pooling, x, y, dy)


def _by_third_input(op: str) -> str:
    """The gradient text of MaxPoolGradV2 or MaxPoolGradGradV2; `op` computes that of its third input."""
    return f"""[T:{{float, half}}, padding:string, data_format:string](input:T, maxpool:T, grad:T, ksize:int32, strides:int32, dz:T) -> (dinput:T, dmaxpool:T, dgrad:T, dksize:int32, dstrides:int32) {{
      dinput = ZerosLike[T=$T](input)
      dmaxpool = ZerosLike[T=$T](maxpool)
      dgrad = {op}[T=$T, padding=$padding, data_format=$data_format](input, maxpool, dz, ksize, strides)
      dksize = ZerosLike[T=int32](ksize)
      dstrides = ZerosLike[T=int32](strides)
    }}"""


@op
class MaxPoolGradV2:
    """The gradient of MaxPoolV2: the gradient of each window goes to its first largest element.

    orig_input: the pooled tensor
    orig_output: the result
    grad: its gradient
    ksize: the size of the window, [4]
    strides: its steps, [4]
    """

    signature = f"MaxPoolGradV2[{_PLAIN}, {_FORMAT}, T:{REAL} = float](orig_input:T, orig_output:T, grad:T, ksize:int32, strides:int32) -> (output:T)"
    shape = max_pool_grad_shape
    cost = "pairs"
    gradient = _by_third_input("MaxPoolGradGradV2")
    examples = (Example([_X, _Y, ramp(1, 3, 2, 3), [1, 2, 2, 1], [1, 1, 2, 1]], {"padding": "VALID"}, differentiable=False),)
    failures = (Example([_X, _Y, ramp(1, 3, 2, 3), [-1, -1, -1, -1], [1, 1, 2, 1]], {"padding": "VALID"}),)

    def kernel(k: KernelContext) -> Kernel:
        return lambda x, y, dy, ksize, strides: max_grad(Pooling(k, ints(ksize), ints(strides)), x, y, dy)


@op
class MaxPoolGradGrad(Total):
    """The gradient of MaxPoolGrad with respect to its last input.

    It is `grad` at the first maximum of each window.

    orig_input: the pooled tensor
    orig_output: the result
    grad: a tensor like the input
    """

    signature = f"MaxPoolGradGrad[{_WINDOW}, {_PLAIN}, {_FORMAT}, T:{REAL}](orig_input:T, orig_output:T, grad:T) -> (output:T)"
    cost = "pairs"
    gradient = f"""[T:{{float, half}}, {_WINDOW}, padding:string, data_format:string](input:T, maxpool:T, grad:T, dz:T) -> (dinput:T, dmaxpool:T, dgrad:T) {{
      dinput = ZerosLike[T=$T](input)
      dmaxpool = ZerosLike[T=$T](maxpool)
      dgrad = MaxPoolGrad[T=$T, ksize=$ksize, strides=$strides, padding=$padding, data_format=$data_format](input, maxpool, dz)
    }}"""
    examples = (Example([_X, _Y, ramp(1, 4, 5, 3)], _VALID, differentiable=False),)

    def shape(c: InferenceContext) -> None:
        max_pool_shape(c)
        c.merge(c.input(0), c.input(2))
        c.set_output(0, c.merge(c.input(1), c.output(0)))

    def kernel(k: KernelContext) -> Kernel:
        pooling = pooling_of(k)
        return lambda x, y, grad: max_grad_grad(pooling, x, y, grad)


@op
class MaxPoolGradGradV2:
    """The gradient of MaxPoolGradV2 with respect to its third input.

    It is `grad` at the first maximum of each window.

    orig_input: the pooled tensor
    orig_output: the result
    grad: a tensor like the input
    ksize: the size of the window, [4]
    strides: its steps, [4]
    """

    signature = (
        f"MaxPoolGradGradV2[{_PLAIN}, {_FORMAT}, T:{REAL}](orig_input:T, orig_output:T, grad:T, ksize:int32, strides:int32) -> (output:T)"
    )
    cost = "pairs"
    gradient = _by_third_input("MaxPoolGradV2")
    examples = (Example([_X, _Y, ramp(1, 4, 5, 3), [1, 2, 2, 1], [1, 1, 2, 1]], {"padding": "VALID"}, differentiable=False),)
    failures = (Example([_X, _Y, ramp(1, 4, 5, 3), [-1, -1, -1, -1], [1, 1, 2, 1]], {"padding": "VALID"}),)

    def shape(c: InferenceContext) -> None:
        max_pool_v2_shape(c)
        c.merge(c.input(0), c.input(2))
        c.set_output(0, c.merge(c.input(1), c.output(0)))

    def kernel(k: KernelContext) -> Kernel:
        return lambda x, y, grad, ksize, strides: max_grad_grad(Pooling(k, ints(ksize), ints(strides)), x, y, grad)


@op
class MaxPoolWithArgmax(Total):
    """The largest element of each window, with its index.

    input: [batch, rows, columns, channels]
    output: the largest elements
    argmax: the flat index (row * columns + column) * channels + channel of each
    include_batch_in_index: include the images before.
    """

    signature = (
        f"MaxPoolWithArgmax[{_WINDOW}, Targmax:{INDEX} = int64, {_PLAIN}, include_batch_in_index:bool = false, T:{REAL}]"
        "(input:T) -> (output:T, argmax:Targmax)"
    )
    layer = "pooling"
    shape = max_pool_with_argmax_shape
    cost = "pairs"
    gradient = f"""[T:{{float, half}}, Targmax:{{int32, int64}}, {_WINDOW}, padding:string](input:T, grad:T, dargmax:Targmax) -> (output:T) {{
      maxpool = MaxPool[T=$T, ksize=$ksize, strides=$strides, padding=$padding](input)
      output = MaxPoolGrad[T=$T, ksize=$ksize, strides=$strides, padding=$padding](input, maxpool, grad)
    }}"""
    examples = (Example([_X], _VALID), Example([ramp(2, 5, 4, 2)], {**_SAME, "include_batch_in_index": True}))

    def kernel(k: KernelContext) -> Kernel:
        pooling, dtype, batch_too = pooling_of(k), k.dtype("Targmax"), k.attr("include_batch_in_index")

        def max_pool_with_argmax(x: Any) -> Any:
            y = pooling.reduce(x, k.xp.maximum, lowest(x.dtype))
            positions = k.xp.arange(x.size, dtype=dtype).reshape(x.shape)
            if not batch_too:
                positions = positions % max(1, math.prod(x.shape[1:]))
            return y, max_grad_grad(pooling, x, y, positions)

        return max_pool_with_argmax


@op
class AvgPool(Total):
    """The mean of each window; padding does not count.

    value: [batch, rows, columns, channels], or in data_format's order
    ksize: the size of the window in each dimension of the input.
    strides: its step in each dimension.
    """

    signature = f"AvgPool[{_WINDOW}, {_PLAIN}, {_FORMAT}, T:{_FLOATS}](value:T) -> (output:T)"
    layer = "pooling"
    shape = avg_pool_shape
    cost = "pairs"
    kernel = avg_pool
    examples = _EXAMPLES

    def gradient(attrs: Attrs) -> str:
        nchw = attrs.get("data_format") == b"NCHW"
        names = ["ksize", "strides", "padding", *(["data_format"] if nchw else [])]
        options = ", ".join(["T=$T", *[f"{name}=${name}" for name in names]])
        return f"""[T:{{float, half}} = float, {_WINDOW}, padding:string{", data_format:string" if nchw else ""}](input:T, grad:T) -> (output:T) {{
          i_shape = Shape[T=$T](input)
          output = AvgPoolGrad[{options}](i_shape, grad)
        }}"""


@op
class AvgPoolGrad:
    """The gradient of AvgPool: the gradient of each window goes to its elements in equal parts.

    orig_input_shape: the shape of the pooled tensor, [4]
    grad: the gradient of the result
    """

    signature = f"AvgPoolGrad[{_WINDOW}, {_PLAIN}, {_FORMAT}, T:{_FLOATS}](orig_input_shape:int32, grad:T) -> (output:T)"
    shape = avg_pool_grad_shape
    cost = "pairs"
    kernel = avg_pool_grad
    gradient = f"""[T:{{float, half}}, {_WINDOW}, padding:string, data_format:string](shape:int32, grad:T, dz:T) -> (dshape:int32, dgrad:T) {{
      dshape = ZerosLike[T=int32](shape)
      dgrad = AvgPool[T=$T, data_format=$data_format, ksize=$ksize, padding=$padding, strides=$strides](dz)
    }}"""
    examples = (Example([[2, 5, 4, 2], ramp(2, 3, 2, 2)], _SAME), Example([[1, 4, 5, 3], ramp(1, 3, 2, 3)], _VALID))
    failures = (Example([[-1, -1, -1, -1], ramp(2, 3, 2, 2)], _SAME),)
