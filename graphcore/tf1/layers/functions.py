"""`tf.layers`: layers as functions, which make a layer and apply it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final

from graphcore.errors import InvalidArgumentError
from graphcore.tf1.layers.arguments import snake_case
from graphcore.tf1.layers.base import Layer
from graphcore.tf1.layers.convolution import Conv1D, Conv2D, Conv3D, SeparableConv1D, SeparableConv2D
from graphcore.tf1.layers.core import Dense, Dropout, Flatten
from graphcore.tf1.layers.normalization import BatchNormalization
from graphcore.tf1.layers.pooling import (
    AveragePooling1D,
    AveragePooling2D,
    AveragePooling3D,
    MaxPooling1D,
    MaxPooling2D,
    MaxPooling3D,
)
from graphcore.tf1.layers.transposed import Conv2DTranspose, Conv3DTranspose

_KEYWORD: Final = inspect.Parameter.POSITIONAL_OR_KEYWORD


def _function(kind: type[Layer], *order: str) -> Callable[..., Any]:
    """The function that makes a layer of this class and applies it.

    Args:
        kind: the class.
        order: its parameters after `inputs`; by default those of the class, then `reuse` if it has variables.
    """
    own = {name: parameter for name, parameter in inspect.signature(kind).parameters.items() if parameter.kind is _KEYWORD}
    extra = {"reuse": None, "training": False}
    parameters = own | {name: inspect.Parameter(name, _KEYWORD, default=default) for name, default in extra.items()}
    names = order or (*own, *(["reuse"] if "trainable" in own else []))
    signature = inspect.Signature([inspect.Parameter("inputs", _KEYWORD), *[parameters[name] for name in names]])
    label = snake_case(kind.__name__)

    def apply(*args: Any, **kwargs: Any) -> Any:
        try:
            arguments = dict(signature.bind(*args, **kwargs).arguments)
        except TypeError as error:
            raise InvalidArgumentError(f"{label}{signature}: {error}") from None
        inputs, name = arguments.pop("inputs"), arguments.get("name")
        to_call = {"training": arguments.pop("training")} if "training" in arguments else {}
        reuse = arguments.pop("reuse", None)
        return kind(**arguments, _scope=name, _reuse=reuse)(inputs, **to_call)

    vars(apply)["__signature__"] = signature
    apply.__name__ = apply.__qualname__ = label
    apply.__doc__ = f"Apply a new layer of the class `{kind.__name__}` to `inputs`.\n\n{kind.__doc__}"
    return apply


dense = _function(Dense)
dropout = _function(Dropout, "rate", "noise_shape", "seed", "training", "name")
flatten = _function(Flatten, "name", "data_format")
conv1d = _function(Conv1D)
conv2d = _function(Conv2D)
conv3d = _function(Conv3D)
separable_conv1d = _function(SeparableConv1D)
separable_conv2d = _function(SeparableConv2D)
conv2d_transpose = _function(Conv2DTranspose)
conv3d_transpose = _function(Conv3DTranspose)
max_pooling1d = _function(MaxPooling1D)
max_pooling2d = _function(MaxPooling2D)
max_pooling3d = _function(MaxPooling3D)
average_pooling1d = _function(AveragePooling1D)
average_pooling2d = _function(AveragePooling2D)
average_pooling3d = _function(AveragePooling3D)
batch_normalization = _function(
    BatchNormalization,
    *("axis", "momentum", "epsilon", "center", "scale"),
    *("beta_initializer", "gamma_initializer", "moving_mean_initializer", "moving_variance_initializer"),
    *("beta_regularizer", "gamma_regularizer", "beta_constraint", "gamma_constraint"),
    *("training", "trainable", "name", "reuse", "renorm", "renorm_clipping", "renorm_momentum"),
    *("fused", "virtual_batch_size", "adjustment"),
)
