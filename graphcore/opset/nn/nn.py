"""Softmax, its losses, biases."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.attrs import Attrs
from graphcore.inference.shape_fns.common_shape_fns import (
    bias_add_grad_shape,
    bias_add_shape,
    scalar_shape,
    softmax_cross_entropy_shape,
    sparse_softmax_cross_entropy_shape,
    unchanged_shape_with_rank_at_least,
)
from graphcore.opset.framework.block import Example, InferenceContext, Kernel, KernelContext, op
from graphcore.opset.framework.families import Total
from graphcore.opset.framework.gradient_text import scalar, vector
from graphcore.opset.framework.kernels import invalid, narrow, reduction
from graphcore.opset.framework.type_sets import INDEX, NUMBER
from graphcore.shapes import Shape

_NN_FLOATS: Final = "{half, bfloat16, float, double}"
_X: Final = [[-3.0, -0.5, 0.25], [1.0, 2.0, 0.5]]
_LABELS: Final = [[0.25, 0.25, 0.5], [0.0, 1.0, 0.0]]


def _wide(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(np.float32) if narrow(dtype) else dtype


def _unchanged_with_classes(c: InferenceContext) -> None:
    unchanged_shape_with_rank_at_least(c, 1)


@op
class Softmax(Total):
    """`exp(x) / sum(exp(x))` along the last dimension.

    logits: [..., classes]
    softmax: the same shape; each row sums to 1
    """

    signature = "Softmax[T:{half, bfloat16, float, double}](logits:T) -> (softmax:T)"
    layer = "softmax"
    shape = _unchanged_with_classes
    cost = "transcendental"
    gradient = f"""SoftmaxGrad[T:{{float, double, bfloat16}}](x:T, grad_softmax:T) -> (grad_x:T) {{
      softmax = Softmax[T=$T](x)
      n0 = Mul[T=$T](grad_softmax, softmax)
      indices = {vector("int32", -1)}
      n1 = Sum[T=$T, keep_dims=true](n0, indices)
      n2 = Sub[T=$T](grad_softmax, n1)
      grad_x = Mul[T=$T](n2, softmax)
    }}"""
    examples = (Example([_X]), Example([[1000.0, 1000.0]], outputs=[[0.5, 0.5]]), Example([[_X, _X]]))

    def kernel(k: KernelContext) -> Kernel:
        xp, dtype = k.xp, k.dtype("T")
        highest, total, subtract, exp = reduction(xp, "maximum"), xp.add.reduce, xp.subtract, xp.exp

        def softmax(x: Any) -> Any:
            if not x.size:
                return x
            y = subtract(x, highest(x, -1, None, None, True))
            exp(y, y)
            y /= total(y, -1, None, None, True)
            return y

        return softmax if not narrow(dtype) else lambda x: softmax(x.astype(np.float32)).astype(dtype)


@op
class LogSoftmax(Total):
    """`log(softmax(x))` along the last dimension.

    logits: [..., classes]
    """

    signature = f"LogSoftmax[T:{_NN_FLOATS}](logits:T) -> (logsoftmax:T)"
    shape = _unchanged_with_classes
    cost = "transcendental"
    gradient = f"""LogSoftmaxGrad[T:{{float, double}}](x:T, grad_logsoftmax:T) -> (grad_x:T) {{
      softmax = Softmax[T=$T](x)
      indices = {vector("int32", -1)}
      n0 = Sum[T=$T, keep_dims=true](grad_logsoftmax, indices)
      n1 = Mul[T=$T](n0, softmax)
      grad_x = Sub[T=$T](grad_logsoftmax, n1)
    }}"""
    examples = (Example([_X]), Example([[_X, _X]]))

    def kernel(k: KernelContext) -> Kernel:
        log_softmax, dtype = _log_softmax(k), k.dtype("T")
        return log_softmax if not narrow(dtype) else lambda x: log_softmax(x.astype(np.float32)).astype(dtype)


def _log_softmax(k: KernelContext) -> Kernel:
    xp = k.xp
    highest, total, subtract, exp, log = reduction(xp, "maximum"), xp.add.reduce, xp.subtract, xp.exp, xp.log

    def log_softmax(x: Any) -> Any:
        if not x.size:
            return x
        y = subtract(x, highest(x, -1, None, None, True))
        y -= log(total(exp(y), -1, None, None, True))
        return y

    return log_softmax


def _broadcast(k: KernelContext, features: Any, labels: Any) -> Any:
    try:
        return k.xp.broadcast_arrays(features, labels)
    except ValueError:
        logits, label_shape = Shape(features.shape), Shape(labels.shape)
        rows = logits.rank == label_shape.rank == 2 and logits[1] == label_shape[1]
        raise invalid(k, f"logits and labels must be broadcastable: logits_size={logits} labels_size={label_shape}").advise(
            f"Feed as many rows of labels as of logits: here {label_shape[0]} and {logits[0]}."
            if rows
            else "Give each row of labels one number for each class, as `gc.one_hot(labels, classes)` makes them; for numbers of classes there is "
            "`gc.nn.sparse_softmax_cross_entropy_with_logits`.",
            required=f"labels of shape {logits}",
            came=f"labels of shape {label_shape}",
        ) from None


def _cross_entropy(k: KernelContext) -> Kernel:
    xp, dtype = k.xp, k.dtype("T")
    highest, total, subtract, exp, log = reduction(xp, "maximum"), xp.add.reduce, xp.subtract, xp.exp, xp.log
    wide = _wide(dtype)

    def cross_entropy(features: Any, labels: Any) -> Any:
        if features.shape != labels.shape:
            features, labels = _broadcast(k, features, labels)
        if not features.size:
            return xp.zeros(features.shape[:1], wide), xp.zeros(features.shape, wide)
        logits = subtract(features, highest(features, -1, None, None, True))
        backprop = exp(logits)
        sums = total(backprop, -1, None, None, True)
        backprop /= sums
        backprop -= labels
        sums = log(sums)
        logits -= sums
        logits *= labels
        return -total(logits, -1), backprop

    if wide is dtype:
        return cross_entropy
    return lambda features, labels: tuple([part.astype(dtype) for part in cross_entropy(features.astype(wide), labels.astype(wide))])


_SECOND_DERIVATIVE: Final = f"""softmax = Softmax[T=$T](features)
      classes = {vector("int32", -1)}
      weighted = Mul[T=$T](dcost_dbackprop, softmax)
      total = Sum[T=$T, keep_dims=true](weighted, classes)
      centred = Sub[T=$T](dcost_dbackprop, total)
      through_backprop = Mul[T=$T](centred, softmax)
      dcost_dfeatures = AddV2[T=$T](through_loss, through_backprop)"""


def _cross_entropy_grad(op: str) -> str:
    """Gradients through both outputs, to both inputs.

    The derivative of the loss is `softmax * sum(labels) - labels`; that the labels add up to 1 is left out for its value only.
    """
    return f"""[T:{{half, float, double}}](features:T, labels:T, dcost_dloss:T, dcost_dbackprop:T) -> (dcost_dfeatures:T, dcost_dlabels:T) {{
      donotcare_loss, dloss_dfeatures = {op}[T=$T](features, labels)
      neg1 = {scalar("int32", -1)}
      dcost_dloss_mat = ExpandDims[T=$T](dcost_dloss, neg1)
      through_loss = Mul[T=$T](dcost_dloss_mat, dloss_dfeatures)
      {_SECOND_DERIVATIVE}
      log_softmax = LogSoftmax[T=$T](features)
      weighted_log = Mul[T=$T](dcost_dloss_mat, log_softmax)
      neg_log = Neg[T=$T](weighted_log)
      dcost_dlabels = Sub[T=$T](neg_log, centred)
    }}"""


@op
class CrossEntropy(Total):
    """The cross entropy of softmax(features) against labels, and its gradient with respect to features.

    features: [batch, classes], before the softmax
    labels: [batch, classes], each row a distribution
    loss: [batch]
    backprop: [batch, classes]
    """

    signature = f"CrossEntropy[T:{_NN_FLOATS}](features:T, labels:T) -> (loss:T, backprop:T)"
    shape = softmax_cross_entropy_shape
    kernel = _cross_entropy
    gradient = f"""[T:{{float, double}}](features:T, labels:T, dcost_dloss:T, donotcare:T) -> (dcost_dfeatures:T, dcost_dlabels:T) {{
      donotcare_loss, dloss_dfeatures = CrossEntropy[T=$T](features, labels)
      neg1 = {scalar("int32", -1)}
      dcost_dloss_mat = ExpandDims[T=$T](dcost_dloss, neg1)
      dcost_dfeatures = Mul[T=$T](dcost_dloss_mat, dloss_dfeatures)
      dcost_dlabels = ZerosLike[T=$T](labels)
    }}"""
    # TensorFlow's gradient ignores labels and backprop. The complete variant, as for second derivatives:
    full_gradient = _cross_entropy_grad("CrossEntropy")
    examples = (Example([_X, _LABELS], differentiable=False),)  # the second output takes the sum of the labels for 1


@op
class SoftmaxCrossEntropyWithLogits(Total):
    """The cross entropy of softmax(features) against labels, and its gradient with respect to features.

    features: [batch, classes], before the softmax
    labels: [batch, classes], each row a distribution
    loss: [batch]
    backprop: [batch, classes]
    """

    signature = f"SoftmaxCrossEntropyWithLogits[T:{_NN_FLOATS}](features:T, labels:T) -> (loss:T, backprop:T)"
    shape = softmax_cross_entropy_shape
    kernel = _cross_entropy
    # As for CrossEntropy, including the labels and the second output.
    gradient = _cross_entropy_grad("SoftmaxCrossEntropyWithLogits")
    examples = (Example([_X, _LABELS], differentiable=False),)  # the second output takes the sum of the labels for 1


@op
class SparseSoftmaxCrossEntropyWithLogits:
    """The cross entropy of softmax(features) against one class for each row, with its gradient.

    features: [batch, classes], before the softmax
    labels: [batch], each in [0, classes)
    loss: [batch]
    backprop: [batch, classes]
    """

    signature = (
        f"SparseSoftmaxCrossEntropyWithLogits[T:{_NN_FLOATS}, Tlabels:{INDEX} = int64](features:T, labels:Tlabels) -> (loss:T, backprop:T)"
    )
    shape = sparse_softmax_cross_entropy_shape
    gradient = f"""[T:{{half, float, double}}, Tlabels:type](features:T, labels:Tlabels, dcost_dloss:T, dcost_dbackprop:T) -> (dcost_dfeatures:T, dlabels:Tlabels) {{
      donotcare_loss, dloss_dfeatures = SparseSoftmaxCrossEntropyWithLogits[T=$T, Tlabels=$Tlabels](features, labels)
      neg1 = {scalar("int32", -1)}
      dcost_dloss_mat = ExpandDims[T=$T](dcost_dloss, neg1)
      through_loss = Mul[T=$T](dcost_dloss_mat, dloss_dfeatures)
      {_SECOND_DERIVATIVE}
      dlabels = ZerosLike[T=$Tlabels](labels)
    }}"""
    examples = (Example([_X, np.array([2, 1])]),)
    failures = (Example([_X, np.full((2,), -1, np.int64)]),)

    def kernel(k: KernelContext) -> Kernel:
        xp, dtype, log_softmax = k.xp, k.dtype("T"), _log_softmax(k)
        wide = _wide(dtype)

        def sparse(features: Any, labels: Any) -> Any:
            log_probability = log_softmax(features.astype(wide, copy=False))
            classes = features.shape[1]
            if features.shape[:1] != labels.shape:
                raise invalid(
                    k,
                    f"logits and labels must have the same first dimension, got logits shape {Shape(features.shape)} and labels shape {Shape(labels.shape)}",
                ).advise(
                    f"Feed as many labels as rows of logits: here {labels.size} and {features.shape[0]}.",
                    required=f"labels of shape [{features.shape[0]}]",
                    came=f"labels of shape {Shape(labels.shape)}",
                )
            if labels.size and not (labels.min() >= 0 and labels.max() < classes):
                outside = labels[(labels < 0) | (labels >= classes)]
                raise invalid(
                    k,
                    f"Received a label value of {int(outside[0])} which is outside the valid range of [0, {classes}).  "
                    f"Label values: {' '.join(map(str, labels.tolist()))}",
                )
            rows = xp.arange(features.shape[0])
            backprop = xp.exp(log_probability)
            backprop[rows, labels] -= 1
            loss = -log_probability[rows, labels]
            return loss.astype(dtype, copy=False), backprop.astype(dtype, copy=False)

        return sparse


def _is_nchw(attrs: Attrs) -> bool:
    return attrs.get("data_format") == b"NCHW"


@op
class BiasAdd(Total):
    """Adds a vector to the channels of `value`.

    value: channels last, or second for NCHW
    bias: [channels]
    """

    pure = True
    signature = f"BiasAdd[T:{NUMBER}, data_format:{{'NHWC', 'NCHW'}} = 'NHWC'](value:T, bias:T) -> (output:T)"
    layer = "bias"
    reuses_input = True
    shape = bias_add_shape
    gradient = """[T:{half, float, double}, data_format:string](input:T, bias:T, grad:T) -> (grad:T, bias_grad:T) {
      bias_grad = BiasAddGrad[T=$T, data_format=$data_format](grad)
    }"""
    examples = (Example([_X, [1.0, 2.0, 3.0]]), Example([[[[1.0, 2.0]], [[3.0, 4.0]]][:1] * 2, [10.0]], {"data_format": "NCHW"}))

    def kernel(k: KernelContext) -> Kernel:
        add: Kernel = k.xp.add

        def channels_second(value: Any, bias: Any) -> Any:
            return add(value, bias.reshape((-1,) + (1,) * (value.ndim - 2)))

        def channels_last(value: Any, bias: Any) -> Any:
            if value.shape[-1] != bias.shape[0]:
                raise invalid(
                    k, f"Must provide as many biases as the last dimension of the input tensor: {list(bias.shape)} vs. {list(value.shape)}"
                )
            return add(value, bias)

        if _is_nchw(k.attrs):
            return channels_second
        return add if _agree(k) else channels_last


def _agree(k: KernelContext) -> bool:
    """True iff the static shapes have equal numbers of biases and channels."""
    if len(k.input_shapes) != 2:
        return False
    value, bias = k.input_shapes[0].dims, k.input_shapes[1].dims
    return bool(value) and bool(bias) and value is not None and bias is not None and bias[0] is not None and value[-1] == bias[0]


@op
class BiasAddGrad(Total):
    """The gradient of BiasAdd with respect to the bias: the sum over all dimensions but the channels.

    out_backprop: channels last, or second for NCHW
    output: [channels]
    """

    signature = f"BiasAddGrad[T:{NUMBER}, data_format:{{'NHWC', 'NCHW'}} = 'NHWC'](out_backprop:T) -> (output:T)"
    shape = bias_add_grad_shape
    examples = (Example([_X]), Example([[_X, _X]], {"data_format": "NCHW"}))

    def gradient(attrs: Attrs) -> str:
        """Broadcast the gradient of each channel to its elements."""
        place = scalar("int32", 1) if _is_nchw(attrs) else "Sub[T=int32](rank, one)"
        return f"""[T:{{half, float, double}}](x:T, dy:T) -> (dx:T) {{
          shape = Shape[T=$T](x)
          rank = Rank[T=$T](x)
          zero = {scalar("int32", 0)}
          one = {scalar("int32", 1)}
          channel = {place}
          dims = Range(zero, rank, one)
          is_channel = Equal[T=int32](dims, channel)
          ones = OnesLike[T=int32](shape)
          wide_shape = SelectV2[T=int32](is_channel, shape, ones)
          wide = Reshape[T=$T](dy, wide_shape)
          dx = BroadcastTo[T=$T](wide, shape)
        }}"""

    def kernel(k: KernelContext) -> Kernel:
        reduce, dtype = k.xp.add.reduce, k.dtype("T")
        wide = _wide(dtype)
        channel = 1 if _is_nchw(k.attrs) else -1

        def bias_grad(x: Any) -> Any:
            at = channel % x.ndim
            if at == x.ndim - 1 > 1:
                # In two steps, the first along long runs: several times faster for few channels.
                x = reduce(x, tuple(range(x.ndim - 2)), wide)
                at = 1
            return reduce(x, tuple([axis for axis in range(x.ndim) if axis != at]), wide).astype(dtype, copy=False)

        return bias_grad


@op
class L2Loss:
    """Half the sum of squares: `sum(t ** 2) / 2`, a scalar."""

    signature = f"L2Loss[T:{_NN_FLOATS}](t:T) -> (output:T)"
    shape = scalar_shape
    can_fail = False
    gradient = """[T:{half, float, double}](x:T, dy:T) -> (dx:T) {
      dx = Mul[T=$T](x, dy)
    }"""
    examples = (Example([_X]),)

    def kernel(k: KernelContext) -> Kernel:
        dot, dtype = k.xp.dot, k.dtype("T")
        wide = _wide(dtype)

        def half_square(x: Any) -> Any:
            flat = x.reshape(-1).astype(wide, copy=False)
            return (dot(flat, flat) / 2).astype(dtype, copy=False)

        return half_square
