"""Feeds, checked against placeholders before the run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from graphcore import dtypes
from graphcore.attrs import Array, utf8
from graphcore.brief import brief
from graphcore.errors import GraphError, InvalidArgumentError, NotFoundError
from graphcore.graph import Graph
from graphcore.graph.model.node import Node, Tensor
from graphcore.graph.shapes.read_values import value_kept
from graphcore.runtime.core.prune import PLACEHOLDERS
from graphcore.value_casts import cast_losslessly

Feeder = Callable[[Any], Array]


def resolve_feeds(graph: Graph, feeds: Iterable[Any]) -> list[Tensor]:
    """Resolve the keys of `feeds` (tensors, names, nodes with one output) to tensors.

    Raises:
        NotFoundError: no such name.
        InvalidArgumentError: something belongs to another graph, is no tensor, or is fed twice.
    """
    tensors: list[Tensor] = []
    fed: set[Tensor] = set()
    for key in feeds:
        tensor = _feed_tensor(graph, key)
        if tensor in fed:
            raise InvalidArgumentError.at(tensor.node, f'Endpoint "{tensor.name}" fed more than once.')
        fed.add(tensor)
        tensors.append(tensor)
    return tensors


def _feed_tensor(graph: Graph, key: Any) -> Tensor:
    try:
        element = graph.as_graph_element(key)
    except NotFoundError as error:
        raise NotFoundError(f"FeedInputs: unable to find feed output {key}", node=error.node) from None
    except GraphError as error:
        error.message = f"Cannot feed {brief(key)}: {error.message}"
        raise
    if not isinstance(element, Node):
        return element
    if len(element.outputs) != 1:
        raise InvalidArgumentError.at(
            element, f"FeedInputs: node '{element.name}' (op {element.op}) has {len(element.outputs)} outputs; feed one of its tensors"
        )
    return element.outputs[0]


def make_feeder(tensor: Tensor) -> Feeder:
    """A function that converts a fed value to an array for `tensor`.

    The result is a read-only view, so that nothing in a run can change the caller's array. If shapes were inferred from the value of
    `tensor`, any other value is refused.
    """
    feed = _typed_feeder(tensor)
    kept = None if tensor.node.op in PLACEHOLDERS else value_kept(tensor)
    return feed if kept is None else _keeping(tensor, feed, *kept)


def _keeping(tensor: Tensor, feed: Feeder, reader: Node, expected: Sequence[Any]) -> Feeder:
    def feed_same(value: Any) -> Array:
        array = feed(value)
        elements = array.reshape(-1).tolist()
        if len(elements) != len(expected) or any(element not in (None, other) for element, other in zip(expected, elements, strict=True)):
            raise may_not_be_fed(tensor, reader)
        return array

    return feed_same


def may_not_be_fed(tensor: Tensor, reader: Node) -> InvalidArgumentError:
    """The error for a feed of `tensor` that differs from the value that `reader` has read."""
    made = "" if reader.source is None else f", made in {reader.source.where}"
    return InvalidArgumentError.at(
        tensor.node,
        f"Tensor '{tensor.name}' may not be fed another value: node '{reader.name}' (op {reader.op}{made}) has read its value to infer shapes, "
        f"and gradients rely on them. To feed it, make it a placeholder",
    )


def _typed_feeder(tensor: Tensor) -> Feeder:
    dtype = tensor.dtype.base
    shape = tensor.shape.dims
    target = dtype.as_numpy
    if tensor.node.is_opaque and (target is None or dtype is dtypes.string):
        return lambda value: np.asarray(value) if target is not None else value  # its framework has its own texts and other types
    if target is None or dtype is dtypes.string:
        return lambda value: _feed_string(tensor, value)
    rank = None if shape is None else len(shape)
    fixed = [(i, size) for i, size in enumerate(shape or ()) if size is not None]

    def feed(value: Any) -> Array:
        if type(value) is not np.ndarray or (value.dtype is not target and value.dtype != target):
            value = _cast(tensor, value)
        actual = value.shape
        if rank is not None and actual != shape:
            if len(actual) != rank:
                raise _wrong_shape(tensor, actual)
            for i, size in fixed:
                if actual[i] != size:
                    raise _wrong_shape(tensor, actual)
        view: Array = value.view()
        view.setflags(write=False)
        return view

    return feed


def _cast(tensor: Tensor, value: Any) -> Array:
    target = tensor.dtype.base.as_numpy
    assert target is not None  # checked by the caller
    if isinstance(value, Tensor):
        raise InvalidArgumentError.at(
            tensor.node, f"The value fed to '{tensor.name}' must be a value (array, number, list), got the tensor '{value.name}'"
        ).advise(
            f"Feed an array, such as what `session.run(\u00ab{value.name}\u00bb)` gives: a tensor has no value of its own.",
            required="an array, a list or a number",
            came=f"the tensor '{value.name}'",
        )
    try:
        array: Array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise _wrong_type(tensor, f"{type(value).__name__} ({error})") from None
    if array.size and array.dtype.kind == "O":
        raise _wrong_type(tensor, _kind_of_first(array, (int,) if target.kind in "iuf" else ()))
    if array.size and array.dtype.kind == "f" and target.kind in "iu" and not _is_numpy(value):
        raise _wrong_type(tensor, "float")  # a Python float never becomes an integer
    result = cast_losslessly(array, tensor.dtype.base)
    if result is None:
        raise _wrong_type(tensor, _described(array, target))
    return result


def _is_numpy(value: Any) -> bool:
    """True for an array or scalar of NumPy, and for lists of these."""
    while isinstance(value, list | tuple) and value:
        value = value[0]
    return isinstance(value, np.ndarray | np.generic)


def _described(array: Array, target: np.dtype[Any]) -> str:
    if array.dtype.kind in "US":
        return f"text ({array.dtype})"
    if array.dtype.kind not in "iuf" or target.kind not in "iufb":
        return str(array.dtype)
    least, most = array.min(), array.max()
    if array.dtype.kind == "f" and target.kind in "iub":
        with np.errstate(invalid="ignore"):
            whole = array.astype(target).astype(array.dtype)
        return f"{array.dtype} with {array[whole != array].reshape(-1)[0]}"
    return f"{array.dtype} with elements from {least} to {most}"


def _kind_of_first(array: Array, usual: tuple[type, ...]) -> str:
    """The Python type of the first element that has none of the usual types."""
    elements = array.reshape(-1).tolist()
    return type(next((item for item in elements if not isinstance(item, usual)), elements[0])).__name__


def _wrong_type(tensor: Tensor, got: str) -> InvalidArgumentError:
    return InvalidArgumentError.at(
        tensor.node, f"Cannot feed a value of type {got} for Tensor '{tensor.name}', which has dtype {tensor.dtype.base.text}"
    ).advise(
        "Feed numbers, not text: read them from their file into an array first."
        if got.startswith("text") and tensor.dtype.base.as_numpy is not None
        else f"Convert the array before it is fed, with `value.astype(np.{tensor.dtype.public_name})`, or choose another dtype for the placeholder.",
        required=f"values of type {tensor.dtype.base.text}",
        came=got,
    )


def _wrong_shape(tensor: Tensor, actual: tuple[int, ...]) -> InvalidArgumentError:
    got = "[" + ",".join(map(str, actual)) + "]"
    return InvalidArgumentError.at(
        tensor.node,
        f"Cannot feed value of shape {got} for Tensor '{tensor.name}', which has shape {tensor.shape} (node '{tensor.node.name}', op {tensor.node.op})",
    ).advise(_reshaping(tensor, actual), required=f"a value of shape {tensor.shape}", came=f"a value of shape {got}")


def _reshaping(tensor: Tensor, actual: tuple[int, ...]) -> str:
    shape = tensor.shape.as_list()
    any_number = ", where ? is any number" if None in shape else ""
    if len(actual) == len(shape) - 1 and _fits(actual, shape[1:]):
        return f"Feed a list of such values, even if there is only one: `[value]` has the shape [1,{','.join(map(str, actual))}]."
    if len(actual) == len(shape) == 2 and _fits(actual[::-1], shape):
        return f"Rows and columns are interchanged: feed `np.transpose(value)`, which has the shape [{actual[1]},{actual[0]}]."
    return f"Feed a value of the shape {tensor.shape}{any_number}; or change the shape in the line that made \u00ab{tensor.name}\u00bb."


def _fits(actual: tuple[int, ...], shape: list[int | None]) -> bool:
    return all(wanted in (None, size) for size, wanted in zip(actual, shape, strict=True))


def _feed_string(tensor: Tensor, value: Any) -> Array:
    try:
        array = np.asarray(value, dtype=object)
    except ValueError as error:
        raise _wrong_type(tensor, f"{type(value).__name__} ({error})") from None
    flat = [utf8(item) if isinstance(item, str) else item for item in array.reshape(-1).tolist()]
    if tensor.dtype.base is dtypes.string and not all(isinstance(item, bytes) for item in flat):
        raise _wrong_type(tensor, _kind_of_first(array, (str, bytes)))
    if not tensor.shape.is_compatible_with(type(tensor.shape)(array.shape)):
        raise _wrong_shape(tensor, array.shape)
    result = np.empty(len(flat), dtype=object)
    result[:] = flat
    return result.reshape(array.shape)
