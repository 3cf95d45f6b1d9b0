"""`tf.contrib.layers`: normalization of batches, examples and images."""

from __future__ import annotations

from typing import Any, Final

from graphcore.errors import InvalidArgumentError, UnimplementedError
from graphcore.graph import Tensor
from graphcore.tf1 import nn
from graphcore.tf1.arrays.layout import identity, reshape, shape
from graphcore.tf1.contrib.arg_scopes import add_arg_scope
from graphcore.tf1.contrib.layers.base import ZEROS, collect_variable, finished, model_scope
from graphcore.tf1.framework import add_to_collection, control_dependencies, convert_to_tensor
from graphcore.tf1.initializers import Ones
from graphcore.tf1.layers.normalization import BatchNormalization
from graphcore.tf1.nn.rnn.normalized import LEAST_VARIANCE
from graphcore.tf1.variable_scopes.getting import get_variable
from graphcore.tf1.variables.collections import GraphKeys

MATRIX: Final = 2
"""The rank of a matrix."""


class _BatchNorm(BatchNormalization):
    """A batch normalization that puts its updates into given collections.

    Args:
        collections: the collections.
        of_vectors: True if the inputs are rows of a matrix.
        kwargs: those of the layer.
    """

    def __init__(self, collections: Any, *, of_vectors: bool, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._of_vectors = of_vectors
        self._collections = [collections] if isinstance(collections, str) else list(collections or ())

    def _parameters(self) -> tuple[str, str]:
        """The order is that of `gc.layers.BatchNormalization` where TensorFlow uses that."""
        uses_layer = not self._of_vectors and self._collections == [GraphKeys.UPDATE_OPS]
        return ("gamma", "beta") if uses_layer else ("beta", "gamma")

    def _collect_update(self, update: Any) -> None:
        for collection in self._collections:
            add_to_collection(collection, update)


@add_arg_scope
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
        fused: one op for images and matrices, whose variance is that of a sample; None for that where it can be.
        data_format: NHWC or NCHW.
        scope: the variable scope, "BatchNorm" by default.
        renorm_clipping, renorm_decay: without effect without `renorm`.

    Raises:
        UnimplementedError: weights, bias correction, renorm or an adjustment are asked for.
    """
    if batch_weights is not None or zero_debias_moving_mean:
        raise UnimplementedError("batch_norm: batch_weights and zero_debias_moving_mean are not available here; required None and False")
    inputs = convert_to_tensor(inputs)
    initial, regularizers = param_initializers or {}, param_regularizers or {}
    with model_scope(scope, "BatchNorm", reuse) as opened:
        layer = _BatchNorm(
            updates_collections,
            of_vectors=inputs.shape.rank == MATRIX,
            axis=1 if data_format.startswith("NC") else -1,
            momentum=decay,
            epsilon=epsilon,
            center=center,
            scale=scale,
            beta_initializer=initial.get("beta", ZEROS),
            gamma_initializer=initial.get("gamma", Ones()),
            moving_mean_initializer=initial.get("moving_mean", ZEROS),
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
        outputs = layer(inputs if fused is False else _as_images(inputs, data_format), training=is_training)
        if outputs.shape.rank != inputs.shape.rank:
            outputs = reshape(outputs, shape(inputs))
            outputs.set_shape(inputs.shape)
        for kind in ("beta", "gamma", "moving_mean", "moving_variance"):
            collect_variable(getattr(layer, kind), variables_collections, kind)
        if updates_collections is None and layer.updates:
            with control_dependencies(layer.updates):
                outputs = identity(outputs)
        return finished(outputs, opened.name, outputs_collections, activation_fn)


def _as_images(inputs: Tensor, data_format: str) -> Tensor:
    """Matrices as images of one pixel, the form in which TensorFlow fuses them; other inputs as they are."""
    if inputs.shape.rank != MATRIX or inputs.shape.as_list()[1] is None:
        return inputs
    channels = inputs.shape.as_list()[1]
    return reshape(inputs, [-1, channels, 1, 1] if data_format.startswith("NC") else [-1, 1, 1, channels])


@add_arg_scope
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
    with model_scope(scope, "LayerNorm", reuse) as opened:

        def add(kind: str, initializer: Any) -> Any:
            variable = get_variable(kind, sizes, inputs.dtype.base, initializer, trainable=trainable)
            collect_variable(variable, variables_collections, kind)
            return variable

        beta = add("beta", ZEROS) if center else None
        gamma = add("gamma", Ones()) if scale else None
        mean, variance = nn.moments(inputs, list(range(first, rank)), keep_dims=True)
        outputs = nn.batch_normalization(inputs, mean, variance, beta, gamma, LEAST_VARIANCE)
        outputs.set_shape(inputs.shape)
        return finished(outputs, opened.name, outputs_collections, activation_fn)


@add_arg_scope
def instance_norm(
    inputs: Any,
    center: bool = True,
    scale: bool = True,
    epsilon: float = 1e-6,
    activation_fn: Any = None,
    param_initializers: dict[str, Any] | None = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    data_format: str = "NHWC",
    scope: Any = None,
) -> Any:
    """Subtract the mean of each channel of each image and divide by its deviation, then scale and shift. inputs: [b, ..., c] -> y: same.

    Args:
        inputs: the inputs, with a known number of channels.
        center, scale: shift by a variable `beta`; scale by a variable `gamma`.
        epsilon: is added to variances.
        activation_fn: a function of the result; None for none.
        param_initializers: initializers by the names of the variables.
        reuse, variables_collections, outputs_collections, trainable: see `layer_norm`.
        data_format: NHWC or NCHW.
        scope: the variable scope, "InstanceNorm" by default.

    Raises:
        InvalidArgumentError: the rank or the number of channels is unknown.
    """
    rank = inputs.shape.rank
    axis = 1 if data_format.startswith("NC") else -1
    if rank is None or inputs.shape.as_list()[axis] is None:
        raise InvalidArgumentError(
            f"instance_norm: required inputs of known rank and number of channels, got {inputs.shape}", node=inputs.node.name
        )
    axis %= rank
    size = inputs.shape.as_list()[axis]
    initial = param_initializers or {}
    places = [other for other in range(1, rank) if other != axis]
    with model_scope(scope, "InstanceNorm", reuse) as opened:

        def add(kind: str, initializer: Any) -> Any:
            variable = get_variable(kind, [size], inputs.dtype.base, initial.get(kind, initializer), trainable=trainable)
            collect_variable(variable, variables_collections, kind)
            return variable if axis == rank - 1 else reshape(variable, [size if position == axis else 1 for position in range(rank)])

        beta = add("beta", ZEROS) if center else None
        gamma = add("gamma", Ones()) if scale else None
        mean, variance = nn.moments(inputs, places, keep_dims=True)
        outputs = nn.batch_normalization(inputs, mean, variance, beta, gamma, epsilon)
        outputs.set_shape(inputs.shape)
        return finished(outputs, opened.name, outputs_collections, activation_fn)
