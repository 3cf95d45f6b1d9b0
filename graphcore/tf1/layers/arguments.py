"""Arguments of layers: activations and initializers by name, sizes, formats."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from graphcore.brief import brief
from graphcore.errors import InvalidArgumentError
from graphcore.shapes import Shape
from graphcore.tf1 import initializers
from graphcore.tf1.names.lookup import namespace


def as_activation(value: Any) -> Any:
    """A function, or None for none, from a function or a name such as "relu".

    Raises:
        InvalidArgumentError: there is no activation of this name.
    """
    if not isinstance(value, str):
        return value
    if value == "linear":
        return None
    activation = getattr(namespace("nn"), value, None)
    if activation is None:
        raise InvalidArgumentError(f"required an activation, such as gc.nn.relu, got {value!r}")
    return activation


def as_initializer(value: Any) -> Any:
    """An initializer, or None for the default one; a name such as "glorot_uniform" stands for one.

    Raises:
        InvalidArgumentError: there is no initializer of this name.
    """
    if not isinstance(value, str):
        return value
    initializer = vars(initializers).get(value) if value in initializers.__all__ else None
    if initializer is None:
        raise InvalidArgumentError(f"required an initializer, such as gc.zeros_initializer(), got {value!r}")
    return initializer()


def as_sizes(value: Any, count: int, name: str) -> tuple[int, ...]:
    """`count` ints, from one for all or from as many; a size or sizes of a shape serve, too.

    Raises:
        InvalidArgumentError: another number of them, or something else.
    """
    if isinstance(value, Shape):
        value = value.as_list()
    sizes = [value] * count if isinstance(value, int) else list(value) if isinstance(value, Sequence) and not isinstance(value, str) else []
    if len(sizes) != count or not all(isinstance(size, int) for size in sizes):
        raise InvalidArgumentError(f"The `{name}` argument must be {count} ints, got {brief(value)}")
    return tuple(sizes)


def as_padding(value: str, *, causal: bool = False) -> str:
    """The padding in lower case: "valid" or "same", or "causal" for sequences.

    Raises:
        InvalidArgumentError: something else.
    """
    padding = str(value).lower()
    allowed = ("valid", "same", "causal") if causal else ("valid", "same")
    if padding not in allowed:
        raise InvalidArgumentError(f"The `padding` argument must be one of {', '.join(allowed)}, got {value!r}")
    return padding


def is_channels_first(value: str) -> bool:
    """True for "channels_first", False for "channels_last".

    Raises:
        InvalidArgumentError: something else.
    """
    if value not in {"channels_first", "channels_last"}:
        raise InvalidArgumentError(f'The `data_format` argument must be "channels_first" or "channels_last", got {value!r}')
    return value == "channels_first"


def format_of(channels_first: bool, rank: int) -> str:
    """The data format of ops for images of `rank` dimensions besides batch and channels: NHWC, NCDHW, ..."""
    spatial = "DHW"[3 - rank :]
    return f"NC{spatial}" if channels_first else f"N{spatial}C"


def output_length(length: int | None, window: int, padding: str, stride: int, dilation: int = 1) -> int | None:
    """The length of the output of a convolution or pooling; None for an unknown one."""
    if length is None:
        return None
    reach = (window - 1) * dilation
    return -(-(length - (reach if padding == "valid" else 0)) // stride)


def snake_case(name: str) -> str:
    """The name of a class in lower case with underscores, as TensorFlow names layers: "max_pooling2d"."""
    parted = re.sub(r"(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", parted).lower()
