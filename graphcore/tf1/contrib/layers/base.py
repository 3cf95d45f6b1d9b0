"""Shared parts of the layers of `tf.contrib.layers`: variables of the model, collections, formats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from graphcore.tf1.contrib.layers.utils import collect_named_outputs
from graphcore.tf1.contrib.regularizers import xavier_initializer
from graphcore.tf1.framework import add_to_collections
from graphcore.tf1.initializers import Zeros
from graphcore.tf1.variable_scopes.opening import variable_scope
from graphcore.tf1.variables.collections import GraphKeys

_RENAMED: Final = {"kernel": "weights", "bias": "biases", "depthwise_kernel": "depthwise_weights", "pointwise_kernel": "pointwise_weights"}
XAVIER: Final = xavier_initializer()
ZEROS: Final = Zeros()


def model_variable_getter(getter: Callable[..., Any], name: str, *args: Any, **kwargs: Any) -> Any:
    """A custom getter of variables of the model, called `weights` and `biases`."""
    start, slash, last = name.rpartition("/")
    wanted = [*(kwargs.pop("collections", None) or [GraphKeys.GLOBAL_VARIABLES]), GraphKeys.MODEL_VARIABLES]
    return getter(start + slash + _RENAMED.get(last, last), *args, collections=wanted, **kwargs)


def model_scope(scope: Any, default: str, reuse: Any = None) -> variable_scope:
    """The variable scope of a layer, whose variables become model variables."""
    return variable_scope(scope, default, reuse=reuse, custom_getter=model_variable_getter)


def collect_variable(variable: Any, collections: Any, kind: str) -> None:
    """Put a variable into collections, which may be given for each kind of variable."""
    chosen = collections.get(kind) if isinstance(collections, dict) else collections
    if variable is not None and chosen:
        add_to_collections(chosen, variable)


def finished(
    outputs: Any, name: str, collections: Any, activation_fn: Any, normalizer_fn: Any = None, normalizer_params: Any = None
) -> Any:
    """The outputs of a layer after its normalizer and its activation, in collections under its name."""
    if normalizer_fn is not None:
        outputs = normalizer_fn(outputs, **(normalizer_params or {}))
    return collect_named_outputs(collections, name, outputs if activation_fn is None else activation_fn(outputs))


def channels(data_format: str | None) -> str:
    """The place of the channels of a data format, as the layers of `gc.layers` take it."""
    return "channels_first" if data_format and data_format.startswith("NC") else "channels_last"
