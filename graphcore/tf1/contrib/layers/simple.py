"""`tf.contrib.layers`: layers without a kernel, and layers in a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphcore.errors import InvalidArgumentError
from graphcore.tf1 import nn
from graphcore.tf1.arrays.layout import one_hot, reshape
from graphcore.tf1.arrays.layout import shape as shape_of
from graphcore.tf1.contrib.arg_scopes import add_arg_scope
from graphcore.tf1.contrib.layers.base import ZEROS, channels, collect_variable, finished, model_scope
from graphcore.tf1.contrib.layers.utils import collect_named_outputs, last_dimension
from graphcore.tf1.framework import convert_to_tensor, name_scope
from graphcore.tf1.layers.core import Dropout, Flatten
from graphcore.tf1.math.elementwise import sqrt, square
from graphcore.tf1.math.reductions import reduce_sum
from graphcore.tf1.variable_scopes.getting import get_variable
from graphcore.tf1.variable_scopes.opening import variable_scope


@add_arg_scope
def flatten(inputs: Any, outputs_collections: Any = None, scope: str | None = None) -> Any:
    """Flatten all dimensions but the first. inputs: [b, ...] -> y: [b, n]."""
    with name_scope(scope or "Flatten") as opened:
        return collect_named_outputs(outputs_collections, opened, Flatten()(inputs))


@add_arg_scope
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
    with model_scope(scope, "Dropout") as opened:
        layer = Dropout(1 - keep_prob, noise_shape, seed, name=opened.name, _scope=opened)
        return collect_named_outputs(outputs_collections, opened.name, layer(inputs, training=is_training))


@add_arg_scope
def one_hot_encoding(
    labels: Any,
    num_classes: int,
    on_value: Any = 1.0,
    off_value: Any = 0.0,
    outputs_collections: Sequence[str] | None = None,
    scope: str | None = None,
) -> Any:
    """Vectors with `on_value` at the number of a class. labels: [b], ints -> y: [b, num_classes]."""
    with name_scope(scope or "OneHotEncoding") as opened:
        return collect_named_outputs(outputs_collections, opened, one_hot(labels, num_classes, on_value=on_value, off_value=off_value))


@add_arg_scope
def bias_add(
    inputs: Any,
    activation_fn: Any = None,
    initializer: Any = ZEROS,
    regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    data_format: str = "NHWC",
    scope: Any = None,
) -> Any:
    """Add a variable `biases` to each channel, through an activation. inputs: [b, ..., c] -> y: same."""
    with model_scope(scope, "BiasAdd", reuse) as opened:
        size = inputs.shape.as_list()[1 if channels(data_format) == "channels_first" else -1]
        biases = get_variable("biases", [size], inputs.dtype.base, initializer, regularizer, trainable=trainable)
        collect_variable(biases, variables_collections, "biases")
        outputs = nn.bias_add(inputs, biases, data_format=data_format)
        return finished(outputs, opened.name, outputs_collections, activation_fn)


@add_arg_scope
def softmax(logits: Any, scope: Any = None) -> Any:
    """The softmax over the last dimension. logits: [..., classes] -> y: same."""
    with variable_scope(scope, "softmax"):
        logits = convert_to_tensor(logits)
        probabilities = reshape(nn.softmax(reshape(logits, [-1, last_dimension(logits.shape, 2)])), shape_of(logits))
        probabilities.set_shape(logits.shape)
        return probabilities


@add_arg_scope
def unit_norm(inputs: Any, dim: int, epsilon: float = 1e-7, scope: Any = None) -> Any:
    """Divide by the length of the vectors along dimension `dim`; `epsilon` is added to its square.

    Raises:
        InvalidArgumentError: there is no such dimension.
    """
    with variable_scope(scope, "UnitNorm"):
        inputs = convert_to_tensor(inputs)
        if inputs.shape.rank is None or not 0 <= dim < inputs.shape.rank:
            raise InvalidArgumentError(
                f"unit_norm: required dim from 0 to below a known rank, got {dim} for {inputs.shape}", node=inputs.node.name
            )
        return inputs / sqrt(reduce_sum(square(inputs), dim, True) + epsilon)


def repeat(inputs: Any, repetitions: int, layer: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A layer several times, each on the outputs of the one before.

    Args:
        inputs: the inputs of the first.
        repetitions: the number of times.
        layer: a function of inputs and other arguments.
        args, kwargs: the other arguments. With `scope="conv1"` the layers have the scopes conv1/conv1_1, conv1/conv1_2 and so on; without it
            the scope is "Repeat", and the name that of the function.
    """
    return _in_a_row(inputs, layer, [args] * repetitions, kwargs, "Repeat", "repeat")


def stack(inputs: Any, layer: Callable[..., Any], stack_args: Sequence[Any], **kwargs: Any) -> Any:
    """A layer several times with different arguments, each on the outputs of the one before.

    Args:
        inputs: the inputs of the first.
        layer: a function of inputs and other arguments.
        stack_args: the second argument of each layer, or a list of its arguments from there on.
        kwargs: arguments of all; see `repeat` for `scope`.

    Raises:
        InvalidArgumentError: `stack_args` is no list.
    """
    if not isinstance(stack_args, list | tuple):
        raise InvalidArgumentError(f"stack: required a list as stack_args, got {stack_args!r}")
    arguments = [tuple(args) if isinstance(args, list | tuple) else (args,) for args in stack_args]
    return _in_a_row(inputs, layer, arguments, kwargs, "Stack", "stack")


def _in_a_row(inputs: Any, layer: Any, args: Sequence[Any], kwargs: dict[str, Any], default_scope: str, default_name: str) -> Any:
    scope = kwargs.pop("scope", None)
    with variable_scope(scope, default_scope):
        outputs = convert_to_tensor(inputs)
        start = scope or getattr(layer, "__name__", None) or getattr(getattr(layer, "func", None), "__name__", default_name)
        for number, layer_args in enumerate(args, 1):
            outputs = layer(outputs, *layer_args, **kwargs, scope=f"{start}_{number}")
        return outputs
