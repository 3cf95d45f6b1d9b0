"""Feeds: checked against the placeholder before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from graphcore import dtypes
from graphcore.attrs import Array
from graphcore.errors import GraphError, InvalidArgumentError, NotFoundError
from graphcore.graph import Graph
from graphcore.graph.node import Node, Tensor

Feeder = Callable[[Any], Array]


def resolve_feeds(graph: Graph, feeds: Iterable[Any]) -> list[Tensor]:
    """The tensors that `feeds` (tensors, names, nodes with one output) mean.

    Raises:
        NotFoundError: no such name.
        InvalidArgumentError: something belongs to another graph, is no tensor, or is fed twice.
    """
    tensors: list[Tensor] = []
    known: set[Tensor] = set()
    for key in feeds:
        tensor = _feed_tensor(graph, key)
        if tensor in known:
            raise InvalidArgumentError.at(tensor.node, f'Endpoint "{tensor.name}" fed more than once.')
        known.add(tensor)
        tensors.append(tensor)
    return tensors


def _feed_tensor(graph: Graph, key: Any) -> Tensor:
    try:
        element = graph.as_graph_element(key)
    except NotFoundError as error:
        raise NotFoundError(f"FeedInputs: unable to find feed output {key}", node=error.node) from None
    except GraphError as error:
        error.message = f"Cannot feed {key!r}: {error.message}"
        raise
    if not isinstance(element, Node):
        return element
    if len(element.outputs) != 1:
        raise InvalidArgumentError.at(
            element, f"FeedInputs: node '{element.name}' (op {element.op}) has {len(element.outputs)} outputs; feed one of its tensors"
        )
    return element.outputs[0]


def make_feeder(tensor: Tensor) -> Feeder:
    """What turns a fed value into an array that fits `tensor`.

    The result is a read-only view, so that nothing in a run can change the caller's array.
    """
    dtype = tensor.dtype.base
    shape = tensor.shape.dims
    target = dtype.as_numpy
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
    if isinstance(value, Tensor):
        raise InvalidArgumentError.at(
            tensor.node, f"The value fed to '{tensor.name}' must be a value (array, number, list), got the tensor '{value.name}'"
        )
    try:
        array: Array = np.asarray(value)
        typed = isinstance(value, np.ndarray | np.generic)
        fits = array.size == 0 or np.can_cast(array.dtype, target, "same_kind") or (not typed and _exact(array, target))  # type: ignore[arg-type]  # checked by the caller
        if fits:
            return array.astype(target)
        got = str(array.dtype)
    except (TypeError, ValueError) as error:
        got = f"{type(value).__name__} ({error})"
    raise InvalidArgumentError.at(
        tensor.node, f"Cannot feed a value of type {got} for Tensor '{tensor.name}', which has dtype {tensor.dtype.base.name}"
    )


def _exact(array: Array, target: np.dtype[Any] | None) -> bool:
    if array.dtype.kind not in "iub" or target is None:
        return False
    return bool(np.all(array.astype(target) == array)) and target.kind != "b"


def _wrong_shape(tensor: Tensor, actual: tuple[int, ...]) -> InvalidArgumentError:
    got = "[" + ",".join(map(str, actual)) + "]"
    return InvalidArgumentError.at(
        tensor.node,
        f"Cannot feed value of shape {got} for Tensor '{tensor.name}', which has shape {tensor.shape} (node '{tensor.node.name}', op {tensor.node.op})",
    )


def _feed_string(tensor: Tensor, value: Any) -> Array:
    array = np.asarray(value, dtype=object)
    if not tensor.shape.is_compatible_with(type(tensor.shape)(array.shape)):
        raise _wrong_shape(tensor, array.shape)
    flat = [item.encode() if isinstance(item, str) else item for item in array.reshape(-1).tolist()]
    result = np.empty(len(flat), dtype=object)
    result[:] = flat
    return result.reshape(array.shape)
