"""`tf.contrib.layers.separable_conv2d`."""

from __future__ import annotations

from typing import Any

from graphcore.tf1 import nn
from graphcore.tf1.contrib.arg_scopes import add_arg_scope
from graphcore.tf1.contrib.layers.base import XAVIER, ZEROS, channels, collect_variable, finished, model_scope
from graphcore.tf1.contrib.layers.utils import two_element_tuple
from graphcore.tf1.layers.convolution import SeparableConv2D
from graphcore.tf1.variable_scopes.getting import get_variable


@add_arg_scope
def separable_convolution2d(
    inputs: Any,
    num_outputs: int | None,
    kernel_size: Any,
    depth_multiplier: int = 1,
    stride: Any = 1,
    padding: str = "SAME",
    data_format: str = "NHWC",
    rate: Any = 1,
    activation_fn: Any = nn.relu,
    normalizer_fn: Any = None,
    normalizer_params: dict[str, Any] | None = None,
    weights_initializer: Any = XAVIER,
    pointwise_initializer: Any = None,
    weights_regularizer: Any = None,
    biases_initializer: Any = ZEROS,
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Any:
    """A convolution of each channel by itself, then one of all channels pixel by pixel. inputs: [b, h, w, c] -> y: [b, rows, columns, n].

    Args:
        inputs: images.
        num_outputs: the number of outputs of each pixel; None for the first convolution alone.
        kernel_size, stride, rate: see `convolution`.
        depth_multiplier: the number of outputs of each channel's convolution.
        padding, data_format, activation_fn, normalizer_fn, normalizer_params: see `convolution`.
        weights_initializer: the initializer of `depthwise_weights`, and of `pointwise_weights` unless that is given.
        pointwise_initializer: the initializer of `pointwise_weights`.
        weights_regularizer, biases_initializer, biases_regularizer, reuse, variables_collections, outputs_collections: see `fully_connected`.
        trainable: put the variables into the collection of trainable ones.
        scope: the variable scope, "SeparableConv2d" by default.
    """
    with model_scope(scope, "SeparableConv2d", reuse) as opened:
        if num_outputs is None:
            outputs = _depthwise(
                inputs, kernel_size, depth_multiplier, stride, padding, data_format, rate, weights_initializer, weights_regularizer,
                biases_initializer if normalizer_fn is None else None, biases_regularizer, variables_collections, trainable,
            )  # fmt: skip
        else:
            layer = SeparableConv2D(
                num_outputs,
                two_element_tuple(kernel_size),
                stride,
                padding,
                channels(data_format),
                two_element_tuple(rate),
                depth_multiplier,
                use_bias=normalizer_fn is None and biases_initializer is not None,
                depthwise_initializer=weights_initializer,
                pointwise_initializer=pointwise_initializer or weights_initializer,
                bias_initializer=biases_initializer,
                depthwise_regularizer=weights_regularizer,
                pointwise_regularizer=weights_regularizer,
                bias_regularizer=biases_regularizer,
                trainable=trainable,
                name=opened.name,
                _scope=opened,
                _reuse=reuse,
            )
            outputs = layer(inputs)
            collect_variable(layer.depthwise_kernel, variables_collections, "weights")
            collect_variable(layer.pointwise_kernel, variables_collections, "weights")
            collect_variable(layer.bias, variables_collections, "biases")
        return finished(outputs, opened.name, outputs_collections, activation_fn, normalizer_fn, normalizer_params)


separable_conv2d = separable_convolution2d


def _depthwise(
    inputs: Any,
    kernel_size: Any,
    depth_multiplier: int,
    stride: Any,
    padding: str,
    data_format: str,
    rate: Any,
    weights_initializer: Any,
    weights_regularizer: Any,
    biases_initializer: Any,
    biases_regularizer: Any,
    variables_collections: Any,
    trainable: bool,
) -> Any:
    first = channels(data_format) == "channels_first"
    size = inputs.shape.as_list()[1 if first else 3]
    dtype = inputs.dtype.base
    weights = get_variable(
        "depthwise_weights",
        [*two_element_tuple(kernel_size), size, depth_multiplier],
        dtype,
        weights_initializer,
        weights_regularizer,
        trainable=trainable,
    )
    collect_variable(weights, variables_collections, "weights")
    steps = [1, 1, *two_element_tuple(stride)] if first else [1, *two_element_tuple(stride), 1]
    outputs = nn.depthwise_conv2d(inputs, weights, steps, padding, rate=two_element_tuple(rate), data_format=data_format)
    if biases_initializer is None:
        return outputs
    biases = get_variable("biases", [size * depth_multiplier], dtype, biases_initializer, biases_regularizer, trainable=trainable)
    collect_variable(biases, variables_collections, "biases")
    return nn.bias_add(outputs, biases, data_format=data_format)
