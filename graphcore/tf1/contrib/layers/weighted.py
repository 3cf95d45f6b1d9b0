"""`tf.contrib.layers`: layers with a kernel and a bias."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Final

from graphcore.api.ops import relu6 as relu_to_six
from graphcore.errors import InvalidArgumentError
from graphcore.tf1 import nn
from graphcore.tf1.contrib.arg_scopes import add_arg_scope
from graphcore.tf1.contrib.layers.base import XAVIER, ZEROS, channels, collect_variable, finished, model_scope
from graphcore.tf1.layers.base import Layer
from graphcore.tf1.layers.convolution import Conv1D, Conv2D, Conv3D
from graphcore.tf1.layers.core import Dense
from graphcore.tf1.layers.transposed import Conv2DTranspose


def _weighted(
    layer: Layer,
    inputs: Any,
    activation_fn: Any,
    normalizer_fn: Any,
    normalizer_params: dict[str, Any] | None,
    variables_collections: Any,
    outputs_collections: Any,
    scope_name: str,
) -> Any:
    """A layer with kernel and bias, then a normalizer and an activation."""
    outputs = layer(inputs)
    collect_variable(getattr(layer, "kernel", None), variables_collections, "weights")
    collect_variable(getattr(layer, "bias", None), variables_collections, "biases")
    return finished(outputs, scope_name, outputs_collections, activation_fn, normalizer_fn, normalizer_params)


@add_arg_scope
def fully_connected(
    inputs: Any,
    num_outputs: int,
    activation_fn: Any = nn.relu,
    normalizer_fn: Any = None,
    normalizer_params: dict[str, Any] | None = None,
    weights_initializer: Any = XAVIER,
    weights_regularizer: Any = None,
    biases_initializer: Any = ZEROS,
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Any:
    """A product with a matrix `weights`, plus `biases`, through an activation. inputs: [..., n] -> y: [..., num_outputs].

    Args:
        inputs: the inputs.
        num_outputs: the number of outputs.
        activation_fn: a function of the result; None for none.
        normalizer_fn, normalizer_params: a function before the activation, such as `batch_norm`, instead of a bias, and its arguments.
        weights_initializer, biases_initializer: initializers; None for no biases.
        weights_regularizer, biases_regularizer: functions to a loss, None for none.
        reuse: True to take existing variables of the scope.
        variables_collections: further collections for the variables, or a dict of these for "weights" and "biases".
        outputs_collections: collections for the outputs.
        trainable: put the variables into the collection of trainable ones.
        scope: the variable scope, "fully_connected" by default.
    """
    with model_scope(scope, "fully_connected", reuse) as opened:
        layer = Dense(
            num_outputs,
            use_bias=normalizer_fn is None and biases_initializer is not None,
            kernel_initializer=weights_initializer,
            bias_initializer=biases_initializer,
            kernel_regularizer=weights_regularizer,
            bias_regularizer=biases_regularizer,
            trainable=trainable,
            name=opened.name,
            _scope=opened,
            _reuse=reuse,
        )
        return _weighted(
            layer, inputs, activation_fn, normalizer_fn, normalizer_params, variables_collections, outputs_collections, opened.name
        )


linear = functools.partial(fully_connected, activation_fn=None)
relu = functools.partial(fully_connected, activation_fn=nn.relu)
relu6 = functools.partial(fully_connected, activation_fn=relu_to_six)


@add_arg_scope
def convolution(
    inputs: Any,
    num_outputs: int,
    kernel_size: Any,
    stride: Any = 1,
    padding: str = "SAME",
    data_format: str | None = None,
    rate: Any = 1,
    activation_fn: Any = nn.relu,
    normalizer_fn: Any = None,
    normalizer_params: dict[str, Any] | None = None,
    weights_initializer: Any = XAVIER,
    weights_regularizer: Any = None,
    biases_initializer: Any = ZEROS,
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
    conv_dims: int | None = None,
) -> Any:
    """A convolution with `weights`, plus `biases`, through an activation. inputs: [b, *size, c] -> y: [b, *output size, num_outputs].

    Args:
        inputs: sequences, images or volumes.
        num_outputs: the number of outputs of each pixel.
        kernel_size, stride, rate: the size of the kernel, its steps, and the distance of its elements: an int for each dimension, or one for all.
        padding: "SAME" or "VALID".
        data_format: None or one that ends in C for channels last, one that begins with NC for channels first.
        activation_fn, normalizer_fn, normalizer_params, weights_initializer, weights_regularizer: see `fully_connected`.
        biases_initializer, biases_regularizer, reuse, variables_collections, outputs_collections, trainable: see `fully_connected`.
        scope: the variable scope, "Conv" by default.
        conv_dims: the rank that the inputs must have, without batch and channels; None for any.

    Raises:
        InvalidArgumentError: the inputs have another rank.
    """
    rank = inputs.shape.rank
    kind = {3: Conv1D, 4: Conv2D, 5: Conv3D}.get(rank)
    if kind is None or (conv_dims is not None and conv_dims + 2 != rank):
        required = "3, 4 or 5" if conv_dims is None else conv_dims + 2
        raise InvalidArgumentError(f"Convolution expects input with rank {required}, got {rank}")
    with model_scope(scope, "Conv", reuse) as opened:
        layer = kind(
            num_outputs,
            kernel_size,
            stride,
            padding,
            channels(data_format),
            rate,
            use_bias=normalizer_fn is None and biases_initializer is not None,
            kernel_initializer=weights_initializer,
            bias_initializer=biases_initializer,
            kernel_regularizer=weights_regularizer,
            bias_regularizer=biases_regularizer,
            trainable=trainable,
            name=opened.name,
            _scope=opened,
            _reuse=reuse,
        )
        return _weighted(
            layer, inputs, activation_fn, normalizer_fn, normalizer_params, variables_collections, outputs_collections, opened.name
        )


def _of_rank(rank: int, name: str) -> Callable[..., Any]:
    """`convolution` of inputs of one rank, with default arguments of its own in an `arg_scope`."""
    whole = inspect.unwrap(convolution)

    @functools.wraps(whole)
    def layer(*args: Any, **kwargs: Any) -> Any:
        return whole(*args, **kwargs, conv_dims=rank)

    layer.__name__ = layer.__qualname__ = name
    layer.__doc__ = f"A convolution of {_KINDS[rank]}; the arguments are those of `convolution`."
    return add_arg_scope(layer)


_KINDS: Final = {1: "sequences", 2: "images", 3: "volumes"}
conv1d = convolution1d = _of_rank(1, "convolution1d")
conv2d = convolution2d = _of_rank(2, "convolution2d")
conv3d = convolution3d = _of_rank(3, "convolution3d")


@add_arg_scope
def convolution2d_transpose(
    inputs: Any,
    num_outputs: int,
    kernel_size: Any,
    stride: Any = 1,
    padding: str = "SAME",
    data_format: str = "NHWC",
    activation_fn: Any = nn.relu,
    normalizer_fn: Any = None,
    normalizer_params: dict[str, Any] | None = None,
    weights_initializer: Any = XAVIER,
    weights_regularizer: Any = None,
    biases_initializer: Any = ZEROS,
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Any:
    """A transposed convolution of images; the arguments are those of `convolution`."""
    with model_scope(scope, "Conv2d_transpose", reuse) as opened:
        layer = Conv2DTranspose(
            num_outputs,
            kernel_size,
            stride,
            padding,
            channels(data_format),
            use_bias=normalizer_fn is None and biases_initializer is not None,
            kernel_initializer=weights_initializer,
            bias_initializer=biases_initializer,
            kernel_regularizer=weights_regularizer,
            bias_regularizer=biases_regularizer,
            trainable=trainable,
            name=opened.name,
            _scope=opened,
            _reuse=reuse,
        )
        return _weighted(
            layer, inputs, activation_fn, normalizer_fn, normalizer_params, variables_collections, outputs_collections, opened.name
        )


conv2d_transpose = convolution2d_transpose
