"""Pooling over three spatial dimensions."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.inference import InferenceContext
from graphcore.inference.shape_fns.common_shape_fns import pool3d_shape
from graphcore.opset.framework.block import Example, Kernel, KernelContext, op
from graphcore.opset.framework.families import Total
from graphcore.opset.framework.kernels import invalid
from graphcore.opset.nn.pooling import ramp
from graphcore.opset.numerics.pooling_windows import avg_pool, avg_pool_grad, max_grad, max_grad_grad, max_pool, pooling_of

_WINDOW: Final = "ksize:list(int) >= 5, strides:list(int) >= 5, padding:{'SAME', 'VALID'}, data_format:{'NDHWC', 'NCDHW'} = 'NDHWC'"
_ATTRS: Final = "ksize:list(int) >= 5, strides:list(int) >= 5, padding:string, data_format:string"
_GIVEN: Final = "ksize=$ksize, strides=$strides, padding=$padding, data_format=$data_format"
_SAME: Final = {"ksize": [1, 2, 1, 2, 1], "strides": [1, 2, 1, 1, 1], "padding": "SAME"}
_PAIRS: Final = {"ksize": [1, 1, 1, 2, 1], "strides": [1, 1, 1, 2, 1], "padding": "VALID"}
_X: Final = ramp(1, 3, 2, 4, 2)
_Y: Final = np.maximum(_X[:, :, :, ::2], _X[:, :, :, 1::2])


@op
class AvgPool3D(Total):
    """The mean of each window; padding does not count.

    input: [batch, planes, rows, columns, channels], or in data_format's order
    ksize: the size of the window in each dimension of the input.
    strides: its step in each dimension.
    """

    signature = f"AvgPool3D[{_WINDOW}, T:{{half, bfloat16, float, double}}](input:T) -> (output:T)"
    layer = "pooling"
    shape = pool3d_shape
    cost = "pairs"
    kernel = avg_pool
    gradient = f"""[T:{{half, float, double}}, {_ATTRS}](input:T, grad:T) -> (output:T) {{
      i_shape = Shape[T=$T](input)
      output = AvgPool3DGrad[T=$T, {_GIVEN}](i_shape, grad)
    }}"""
    examples = (Example([_X], _SAME), Example([_X], _PAIRS))


@op
class AvgPool3DGrad:
    """The gradient of AvgPool3D: the gradient of each window goes to its elements in equal parts.

    orig_input_shape: the shape of the pooled tensor, [5]
    grad: the gradient of the result
    """

    signature = f"AvgPool3DGrad[{_WINDOW}, T:{{half, bfloat16, float, double}}](orig_input_shape:int32, grad:T) -> (output:T)"
    cost = "pairs"
    kernel = avg_pool_grad
    gradient = f"""[T:{{half, float, double}}, {_ATTRS}](shape:int32, grad:T, dz:T) -> (dshape:int32, dgrad:T) {{
      dshape = ZerosLike[T=int32](shape)
      dgrad = AvgPool3D[T=$T, {_GIVEN}](dz)
    }}"""
    examples = (Example([[1, 3, 2, 4, 2], ramp(1, 2, 2, 4, 2)], _SAME),)
    failures = (Example([[-1, -1, -1, -1, -1], ramp(1, 2, 2, 4, 2)], _SAME),)

    def shape(c: InferenceContext) -> None:
        c.set_output(0, c.with_rank(c.make_shape_from_shape_tensor(0), 5))


@op
class MaxPool3D(Total):
    """The largest element of each window; padding counts as smaller than anything.

    input: [batch, planes, rows, columns, channels], or in data_format's order
    ksize: the size of the window in each dimension of the input.
    strides: its step in each dimension.
    """

    signature = f"MaxPool3D[{_WINDOW}, T:{{half, bfloat16, float}}](input:T) -> (output:T)"
    layer = "pooling"
    shape = pool3d_shape
    cost = "pairs"
    kernel = max_pool
    gradient = f"""[T:{{half, float}}, {_ATTRS}](input:T, grad:T) -> (output:T) {{
      maxpool = MaxPool3D[T=$T, {_GIVEN}](input)
      output = MaxPool3DGrad[T=$T, TInput=$T, {_GIVEN}](input, maxpool, grad)
    }}"""
    examples = (Example([_X], _SAME), Example([_X], _PAIRS, outputs=[_Y]))


@op
class MaxPool3DGrad:
    """The gradient of MaxPool3D: the gradient of each window goes to its first largest element.

    orig_input: the pooled tensor
    orig_output: the result
    grad: its gradient
    """

    signature = (
        f"MaxPool3DGrad[{_WINDOW}, T:{{half, bfloat16, float}} = float, TInput:{{half, bfloat16, float}} = float]"
        "(orig_input:TInput, orig_output:TInput, grad:T) -> (output:T)"
    )
    cost = "pairs"
    gradient = f"""[T:{{half, float}}, TInput:type, {_ATTRS}](input:TInput, maxpool:TInput, grad:T, dz:T) -> (dinput:TInput, dmaxpool:TInput, dgrad:T) {{
      dinput = ZerosLike[T=$TInput](input)
      dmaxpool = ZerosLike[T=$TInput](maxpool)
      dgrad = MaxPool3DGradGrad[T=$T, {_GIVEN}](input, maxpool, dz)
    }}"""
    examples = (Example([_X, _Y, ramp(1, 3, 2, 2, 2)], _PAIRS, differentiable=False),)
    failures = (
        Example(
            [np.zeros((1, 3, 0, 4, 0), np.float32), np.zeros((1, 3, 0, 0, 0), np.float32), np.zeros((1, 3, 0, 0, 0), np.float32)], _PAIRS
        ),
    )

    def shape(c: InferenceContext) -> None:
        c.set_output(0, c.with_rank(c.input(0), 5))

    def kernel(k: KernelContext) -> Kernel:
        pooling = pooling_of(k)

        def gradient(x: Any, y: Any, dy: Any) -> Any:
            places = pooling.places(x.shape)
            for name, actual in (("orig_output", y.shape), ("grad", dy.shape)):
                if actual != places:
                    raise invalid(k, f"Expected {name} shape to be {list(places)}, but got {list(actual)}")
            return max_grad(pooling, x, y, dy)

        return gradient


@op
class MaxPool3DGradGrad(Total):
    """The gradient of MaxPool3DGrad with respect to its last input.

    It is `grad` at the first maximum of each window.

    orig_input: the pooled tensor
    orig_output: the result
    grad: a tensor like the input
    """

    signature = (
        f"MaxPool3DGradGrad[{_WINDOW}, T:{{float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}}]"
        "(orig_input:T, orig_output:T, grad:T) -> (output:T)"
    )
    cost = "pairs"
    gradient = f"""[T:{{half, float}}, {_ATTRS}](input:T, maxpool:T, grad:T, dz:T) -> (dinput:T, dmaxpool:T, dgrad:T) {{
      dinput = ZerosLike[T=$T](input)
      dmaxpool = ZerosLike[T=$T](maxpool)
      dgrad = MaxPool3DGrad[T=$T, TInput=$T, {_GIVEN}](input, maxpool, dz)
    }}"""
    examples = (Example([_X, _Y, ramp(1, 3, 2, 4, 2)], _PAIRS, differentiable=False),)

    def shape(c: InferenceContext) -> None:
        pool3d_shape(c)
        c.merge(c.input(0), c.input(2))
        c.set_output(0, c.merge(c.input(1), c.output(0)))

    def kernel(k: KernelContext) -> Kernel:
        pooling = pooling_of(k)

        def gradient(x: Any, y: Any, grad: Any) -> Any:
            return max_grad_grad(pooling, x, y, grad)

        return gradient
