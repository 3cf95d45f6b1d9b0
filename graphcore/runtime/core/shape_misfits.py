"""NumPy's messages on shapes that do not fit together, in the words of the field, with advice."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from graphcore.errors import GraphError
from graphcore.graph.model.node import Node
from graphcore.shapes import Shape

_RESHAPE: Final = re.compile(r"cannot reshape array of size (\d+) into shape \(([\d,]*?),?\)")
_BROADCAST: Final = re.compile(r"could not be broadcast|shape mismatch|not broadcastable")
_PRODUCT: Final = re.compile(r"not aligned|matmul: Input operand")
_JOINED: Final = re.compile(r"all (?:the )?input array")
_AT: Final = re.compile(r"array at index (\d+) has .* array at index (\d+) has ")

_PRODUCT_SAYS, _PAIR_SAYS, _JOINED_SAYS = "Matrix size-incompatible", "Incompatible shapes", "Shapes of all inputs must match"
IN_OUR_WORDS: Final = (_PRODUCT_SAYS, _PAIR_SAYS, _JOINED_SAYS)
"""The beginnings of messages that replace those of NumPy."""

Named = tuple[str, tuple[int, ...]]
"""An input: its name and its shape."""


def _shape_of(value: Any) -> tuple[int, ...]:
    """The shape of an array, also of one on a GPU, which is not copied for it."""
    return tuple(value.shape) if hasattr(value, "shape") else np.shape(value)


def in_our_words(
    text: str, node: Node, values: Sequence[Any], shown: Callable[[Any], str]
) -> tuple[str, Callable[[GraphError], GraphError]]:
    """Translate the message of an error that NumPy raised in a kernel.

    Args:
        text: NumPy's message.
        node: the node.
        values: the values of its inputs.
        shown: gives the name of an input tensor.

    Returns:
        The message, and a function that advises on the error.
    """
    misfit = _RESHAPE.search(text)
    if misfit is not None:
        return text, lambda error: _advise_on_reshape(error, misfit[1], misfit[2])
    inputs = [(shown(tensor), _shape_of(value)) for tensor, value in zip(node.inputs, values, strict=False)]
    if _PRODUCT.search(text) and len(inputs) == 2:
        return _of_two(_PRODUCT_SAYS, *inputs), lambda error: _advise_on_product(error, *inputs)
    pair = _pair(inputs, _fit) if _BROADCAST.search(text) else None
    if pair is not None:
        return _of_two(_PAIR_SAYS, *pair), lambda error: _advise_on_pair(error, *pair)
    joined = _joined(text, inputs)
    if joined is not None:
        return _of_two(_JOINED_SAYS, *joined), lambda error: _advise_on_joined(error, *joined)
    came = ", ".join([f"'{name}' of shape {Shape(shape)}" for name, shape in inputs])
    return text, lambda error: error.advise(
        "Compare the shapes that came with those that the op takes, and with what is fed.",
        required="inputs whose shapes fit together",
        came=came or "others",
    )


def _of_two(what: str, one: Named, other: Named) -> str:
    return f"{what}: {Shape(one[1])} vs. {Shape(other[1])}"


def _fit(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return all(a == b or 1 in (a, b) for a, b in zip(one[::-1], other[::-1], strict=False))


def _joined(text: str, inputs: Sequence[Named]) -> tuple[Named, Named] | None:
    """The two inputs that cannot be joined along an axis."""
    places = _AT.search(text)
    if places is not None and int(places[2]) < len(inputs):
        return inputs[int(places[1])], inputs[int(places[2])]
    return _pair(inputs, lambda one, other: one == other) if _JOINED.search(text) else None


def _pair(inputs: Sequence[Named], fit: Callable[[tuple[int, ...], tuple[int, ...]], bool]) -> tuple[Named, Named] | None:
    """The first two inputs with shapes that do not fit."""
    shaped = [tensor for tensor in inputs if tensor[1]]
    return next(((one, other) for place, one in enumerate(shaped) for other in shaped[place + 1 :] if not fit(one[1], other[1])), None)


def _advise_on_pair(error: GraphError, one: Named, other: Named) -> GraphError:
    (name, shape), (others, second) = one, other
    came = f"{Shape(shape)} and {Shape(second)}"
    if len(shape) == len(second) and shape[0] != second[0] and shape[1:] == second[1:]:
        return error.advise(_feed_rows(one, other), required=f"as many rows in '{name}' as in '{others}'", came=came)
    clash = next(((a, b) for a, b in zip(shape[::-1], second[::-1], strict=False) if a != b and 1 not in (a, b)), (shape[0], second[0]))
    return error.advise(
        f"Make {clash[0]} and {clash[1]} the same: sizes are compared from the last one on. Where a dimension is missing in between, "
        "`gc.expand_dims` adds one of size 1, which fits any size, and `keepdims=True` keeps one in a reduction.",
        required="shapes that are equal or 1 in each place, from the last one on",
        came=came,
    )


def _feed_rows(one: Named, other: Named) -> str:
    (name, shape), (others, second) = one, other
    return (
        f"Feed as many rows for '{name}' as for '{others}': the first dimension is the number of examples, here {shape[0]} and {second[0]}."
    )


def _advise_on_joined(error: GraphError, one: Named, other: Named) -> GraphError:
    (_, shape), (_, second) = one, other
    rows = len(shape) == len(second) and shape[0] != second[0]
    return error.advise(
        _feed_rows(one, other) if rows else "Make the sizes the same, but for that of the axis along which the inputs are joined.",
        required="inputs of the same shape, but for the axis along which they are joined",
        came=f"{Shape(shape)} and {Shape(second)}",
    )


def _advise_on_product(error: GraphError, one: Named, other: Named) -> GraphError:
    return error.advise(
        f"Make the last size of '{one[0]}' and the first of '{other[0]}' the same; `gc.transpose` swaps the two sizes of a matrix.",
        required="as many columns in the first matrix as rows in the second",
        came=f"{Shape(one[1])} and {Shape(other[1])}",
    )


def _advise_on_reshape(error: GraphError, count: str, shape: str) -> GraphError:
    return error.advise(
        f"Give a tensor whose {count} values fill whole rows of this size, or choose another shape. Labels that are numbers of classes "
        "become rows by `gc.one_hot(labels, classes)`.",
        required=f"values that fill the shape ({shape})",
        came=f"{count} values",
    )
