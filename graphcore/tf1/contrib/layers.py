"""`tf.contrib.layers`: the functions that programs use most."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from graphcore.api.arrays import identity, one_hot
from graphcore.api.framework import add_to_collection, control_dependencies, name_scope
from graphcore.api.variables.collections import GraphKeys
from graphcore.errors import InvalidArgumentError, UnimplementedError
from graphcore.tf1 import nn
from graphcore.tf1.contrib.regularizers import (
    apply_regularization,
    l1_l2_regularizer,
    l1_regularizer,
    l2_regularizer,
    sum_regularizer,
    variance_scaling_initializer,
    xavier_initializer,
    xavier_initializer_conv2d,
)
from graphcore.tf1.initial_values import Ones, Zeros
from graphcore.tf1.layers.base import Layer
from graphcore.tf1.layers.convolution import Conv1D, Conv2D, Conv3D
from graphcore.tf1.layers.core import Dense, Dropout, Flatten
from graphcore.tf1.layers.normalization import BatchNormalization
from graphcore.tf1.layers.pooling import AveragePooling2D, MaxPooling2D
from graphcore.tf1.layers.transposed import Conv2DTranspose
from graphcore.tf1.rnn.normalized import LEAST_VARIANCE
from graphcore.tf1.variable_scopes.getting import get_variable
from graphcore.tf1.variable_scopes.opening import variable_scope
from graphcore.tf1.variables import add_to_collections

__all__ = [
    "apply_regularization",
    "avg_pool2d",
    "batch_norm",
    "conv2d",
    "conv2d_transpose",
    "convolution",
    "convolution2d",
    "convolution2d_transpose",
    "dropout",
    "flatten",
    "fully_connected",
    "l1_l2_regularizer",
    "l1_regularizer",
    "l2_regularizer",
    "layer_norm",
    "linear",
    "max_pool2d",
    "one_hot_encoding",
    "relu",
    "sum_regularizer",
    "variance_scaling_initializer",
    "xavier_initializer",
    "xavier_initializer_conv2d",
]

_RENAMED: Final = {"kernel": "weights", "bias": "biases"}
_XAVIER: Final = xavier_initializer()
_ZEROS: Final = Zeros()


def _model_variable(getter: Callable[..., Any], name: str, *args: Any, **kwargs: Any) -> Any:
    """A custom getter of variables of the model, called `weights` and `biases`."""
    start, slash, last = name.rpartition("/")
    wanted = [*(kwargs.pop("collections", None) or [GraphKeys.GLOBAL_VARIABLES]), GraphKeys.MODEL_VARIABLES]
    return getter(start + slash + _RENAMED.get(last, last), *args, collections=wanted, **kwargs)


def _scope(scope: Any, default: str, reuse: Any = None) -> variable_scope:
    return variable_scope(scope, default, reuse=reuse, custom_getter=_model_variable)


def _collect(variable: Any, collections: Any, kind: str) -> None:
    """Put a variable into collections, which may be given for each kind of variable."""
    chosen = collections.get(kind) if isinstance(collections, dict) else collections
    if variable is not None and chosen:
        add_to_collections(chosen, variable)


def _named(outputs: Any, collections: Any) -> Any:
    if collections:
        add_to_collections(collections, outputs)
    return outputs


def _weighted(
    layer: Layer,
    inputs: Any,
    activation_fn: Any,
    normalizer_fn: Any,
    normalizer_params: dict[str, Any] | None,
    variables_collections: Any,
    outputs_collections: Any,
) -> Any:
    """A layer with kernel and bias, then a normalizer and an activation."""
    outputs = layer(inputs)
    _collect(getattr(layer, "kernel", None), variables_collections, "weights")
    _collect(getattr(layer, "bias", None), variables_collections, "biases")
    if normalizer_fn is not None:
        outputs = normalizer_fn(outputs, **(normalizer_params or {}))
    if activation_fn is not None:
        outputs = activation_fn(outputs)
    return _named(outputs, outputs_collections)


def fully_connected(
    inputs: Any,
    num_outputs: int,
    activation_fn: Any = nn.relu,
    normalizer_fn: Any = None,
    normalizer_params: dict[str, Any] | None = None,
    weights_initializer: Any = _XAVIER,
    weights_regularizer: Any = None,
    biases_initializer: Any = _ZEROS,
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
    with _scope(scope, "fully_connected", reuse) as opened:
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
        return _weighted(layer, inputs, activation_fn, normalizer_fn, normalizer_params, variables_collections, outputs_collections)


linear = partial(fully_connected, activation_fn=None)
relu = partial(fully_connected, activation_fn=nn.relu)


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
    weights_initializer: Any = _XAVIER,
    weights_regularizer: Any = None,
    biases_initializer: Any = _ZEROS,
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
    with _scope(scope, "Conv", reuse) as opened:
        layer = kind(
            num_outputs,
            kernel_size,
            stride,
            padding,
            _channels(data_format),
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
        return _weighted(layer, inputs, activation_fn, normalizer_fn, normalizer_params, variables_collections, outputs_collections)


conv2d = convolution2d = partial(convolution, conv_dims=2)


def conv2d_transpose(
    inputs: Any,
    num_outputs: int,
    kernel_size: Any,
    stride: Any = 1,
    padding: str = "SAME",
    data_format: str = "NHWC",
    activation_fn: Any = nn.relu,
    normalizer_fn: Any = None,
    normalizer_params: dict[str, Any] | None = None,
    weights_initializer: Any = _XAVIER,
    weights_regularizer: Any = None,
    biases_initializer: Any = _ZEROS,
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Any:
    """A transposed convolution of images; the arguments are those of `convolution`."""
    with _scope(scope, "Conv2d_transpose", reuse) as opened:
        layer = Conv2DTranspose(
            num_outputs,
            kernel_size,
            stride,
            padding,
            _channels(data_format),
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
        return _weighted(layer, inputs, activation_fn, normalizer_fn, normalizer_params, variables_collections, outputs_collections)


convolution2d_transpose = conv2d_transpose


def _channels(data_format: str | None) -> str:
    return "channels_first" if data_format and data_format.startswith("NC") else "channels_last"


def _pooled(kind: Any, default: str) -> Callable[..., Any]:
    def pool(
        inputs: Any,
        kernel_size: Any,
        stride: Any = 2,
        padding: str = "VALID",
        data_format: str = "NHWC",
        outputs_collections: Any = None,
        scope: Any = None,
    ) -> Any:
        with name_scope(scope or default) as name:
            layer = kind(kernel_size, stride, padding, _channels(data_format), _scope=name)
            return _named(layer(inputs), outputs_collections)

    pool.__doc__ = f"Pooling of images; the name scope is {default} by default. inputs: [b, h, w, c] -> y: [b, rows, columns, c]."
    return pool


max_pool2d = _pooled(MaxPooling2D, "MaxPool2D")
avg_pool2d = _pooled(AveragePooling2D, "AvgPool2D")


def flatten(inputs: Any, outputs_collections: Any = None, scope: str | None = None) -> Any:
    """Flatten all dimensions but the first. inputs: [b, ...] -> y: [b, n]."""
    with name_scope(scope or "Flatten"):
        return _named(Flatten()(inputs), outputs_collections)


def dropout(
    inputs: Any,
    keep_prob: Any = 0.5,
    noise_shape: Any = None,
    is_training: Any = True,
    outputs_collections: Any = None,
    scope: Any = None,
    seed: int | None = None,
) -> Any:
    """Set a part of the elements to 0 at random while training, and scale the others.

    Args:
        inputs: the inputs.
        keep_prob: the probability that an element stays.
        noise_shape: the shape of the choices, which is broadcast to that of the inputs.
        is_training: a bool or a tensor.
        outputs_collections: collections for the outputs.
        scope: the variable scope, "Dropout" by default.
        seed: the seed of the choices.
    """
    with _scope(scope, "Dropout") as opened:
        layer = Dropout(1 - keep_prob, noise_shape, seed, name=opened.name, _scope=opened)
        return _named(layer(inputs, training=is_training), outputs_collections)


class _BatchNorm(BatchNormalization):
    """A batch normalization that puts its updates into given collections."""

    def __init__(self, collections: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._collections = [collections] if isinstance(collections, str) else list(collections or ())

    def _collect_update(self, update: Any) -> None:
        for collection in self._collections:
            add_to_collection(collection, update)


def batch_norm(
    inputs: Any,
    decay: float = 0.999,
    center: bool = True,
    scale: bool = False,
    epsilon: float = 0.001,
    activation_fn: Any = None,
    param_initializers: dict[str, Any] | None = None,
    param_regularizers: dict[str, Any] | None = None,
    updates_collections: Any = GraphKeys.UPDATE_OPS,
    is_training: Any = True,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    batch_weights: Any = None,
    fused: bool | None = None,
    data_format: str = "NHWC",
    zero_debias_moving_mean: bool = False,
    scope: Any = None,
    renorm: bool = False,
    renorm_clipping: Any = None,
    renorm_decay: float = 0.99,
    adjustment: Any = None,
) -> Any:
    """Batch normalization; see `gc.layers.BatchNormalization`.

    Args:
        inputs: [b, ..., c], or [b, c, ...] for a data format that begins with NC.
        decay: the weight of the former value in moving averages.
        center, scale: shift by a variable `beta`; scale by a variable `gamma`.
        epsilon: is added to variances.
        activation_fn: a function of the result; None for none.
        param_initializers, param_regularizers: initializers and regularizers by the names of the variables.
        updates_collections: the collections for the updates of moving averages; None to run them before the outputs.
        is_training: a bool or a tensor.
        reuse: True to take existing variables of the scope.
        variables_collections, outputs_collections: further collections.
        trainable: put `beta` and `gamma` into the collection of trainable variables.
        batch_weights, zero_debias_moving_mean, renorm, adjustment: None or False.
        fused: one op for images; None for that where it can be.
        data_format: NHWC or NCHW.
        scope: the variable scope, "BatchNorm" by default.
        renorm_clipping, renorm_decay: without effect without `renorm`.

    Raises:
        UnimplementedError: weights, bias correction, renorm or an adjustment are asked for.
    """
    if batch_weights is not None or zero_debias_moving_mean:
        raise UnimplementedError("batch_norm: batch_weights and zero_debias_moving_mean are not available here; required None and False")
    initial, regularizers = param_initializers or {}, param_regularizers or {}
    with _scope(scope, "BatchNorm", reuse) as opened:
        layer = _BatchNorm(
            updates_collections,
            axis=1 if data_format.startswith("NC") else -1,
            momentum=decay,
            epsilon=epsilon,
            center=center,
            scale=scale,
            beta_initializer=initial.get("beta", _ZEROS),
            gamma_initializer=initial.get("gamma", Ones()),
            moving_mean_initializer=initial.get("moving_mean", _ZEROS),
            moving_variance_initializer=initial.get("moving_variance", Ones()),
            beta_regularizer=regularizers.get("beta"),
            gamma_regularizer=regularizers.get("gamma"),
            trainable=trainable,
            renorm=renorm,
            renorm_clipping=renorm_clipping,
            renorm_momentum=renorm_decay,
            adjustment=adjustment,
            fused=fused,
            name=opened.name,
            _scope=opened,
            _reuse=reuse,
        )
        outputs = layer(inputs, training=is_training)
        for kind in ("beta", "gamma", "moving_mean", "moving_variance"):
            _collect(getattr(layer, kind), variables_collections, kind)
        if updates_collections is None and layer.updates:
            with control_dependencies(layer.updates):
                outputs = identity(outputs)
        if activation_fn is not None:
            outputs = activation_fn(outputs)
        return _named(outputs, outputs_collections)


def layer_norm(
    inputs: Any,
    center: bool = True,
    scale: bool = True,
    activation_fn: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    begin_norm_axis: int = 1,
    begin_params_axis: int = -1,
    scope: Any = None,
) -> Any:
    """Subtract the mean of each example and divide by its deviation, then scale and shift. inputs: [b, ...] -> y: [b, ...].

    Args:
        inputs: the inputs, with known sizes from `begin_params_axis` on.
        center, scale: shift by a variable `beta`; scale by a variable `gamma`.
        activation_fn: a function of the result; None for none.
        reuse: True to take existing variables of the scope.
        variables_collections, outputs_collections: further collections.
        trainable: put the variables into the collection of trainable ones.
        begin_norm_axis: mean and deviation are those of this dimension and all after it.
        begin_params_axis: the variables have the sizes of this dimension and all after it.
        scope: the variable scope, "LayerNorm" by default.
    """
    rank = inputs.shape.rank
    if rank is None:
        raise InvalidArgumentError(f"layer_norm: required inputs of known rank, got '{inputs.name}'", node=inputs.node.name)
    first = begin_norm_axis % rank
    sizes = inputs.shape.as_list()[begin_params_axis % rank :]
    with _scope(scope, "LayerNorm", reuse):

        def add(kind: str, initializer: Any) -> Any:
            made = get_variable(kind, sizes, inputs.dtype.base, initializer, trainable=trainable)
            _collect(made, variables_collections, kind)
            return made

        beta = add("beta", _ZEROS) if center else None
        gamma = add("gamma", Ones()) if scale else None
        mean, variance = nn.moments(inputs, list(range(first, rank)), keep_dims=True)
        outputs = nn.batch_normalization(inputs, mean, variance, beta, gamma, LEAST_VARIANCE)
        outputs.set_shape(inputs.shape)
        return _named(outputs if activation_fn is None else activation_fn(outputs), outputs_collections)


def one_hot_encoding(
    labels: Any,
    num_classes: int,
    on_value: Any = 1.0,
    off_value: Any = 0.0,
    outputs_collections: Sequence[str] | None = None,
    scope: str | None = None,
) -> Any:
    """Vectors with `on_value` at the number of a class. labels: [b], ints -> y: [b, num_classes]."""
    with name_scope(scope or "OneHotEncoding"):
        return _named(one_hot(labels, num_classes, on_value=on_value, off_value=off_value), outputs_collections)
