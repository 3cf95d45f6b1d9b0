"""`tf.contrib.layers.utils`: names of outputs in collections, and sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np

from graphcore.api.branches import cond
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Graph, Tensor
from graphcore.shapes import Shape, as_shape
from graphcore.tf1.framework import add_to_collections, get_collection, get_collection_ref, get_static_value

__all__ = [
    "append_tensor_alias",
    "collect_named_outputs",
    "constant_value",
    "convert_collection_to_dict",
    "gather_tensors_aliases",
    "get_tensor_aliases",
    "get_variable_collections",
    "last_dimension",
    "smart_cond",
    "two_element_tuple",
]

_aliases: Final[WeakKeyDictionary[Graph, dict[tuple[str, int], list[str]]]] = WeakKeyDictionary()
"""The aliases of tensors, which outlive the `Tensor` objects."""

constant_value = get_static_value


def collect_named_outputs(collections: Any, alias: str | None, outputs: Tensor) -> Tensor:
    """Put outputs into collections under a further name, for `convert_collection_to_dict`."""
    if alias:
        append_tensor_alias(outputs, alias)
    if collections:
        add_to_collections(collections, outputs)
    return outputs


def append_tensor_alias(tensor: Tensor, alias: str) -> Tensor:
    """Give a tensor a further name; a slash at its end is left out."""
    names = _aliases.setdefault(tensor.graph, {}).setdefault((tensor.node.name, tensor.index), [])
    names.append(alias.removesuffix("/"))
    return tensor


def get_tensor_aliases(tensor: Tensor) -> list[str]:
    """The further names of a tensor; its own, without `:0`, if there is none."""
    return list(_aliases.get(tensor.graph, {}).get((tensor.node.name, tensor.index), [])) or [tensor.name.removesuffix(":0")]


def gather_tensors_aliases(tensors: Any) -> list[str]:
    """The further names of all of some tensors."""
    return [alias for tensor in tensors for alias in get_tensor_aliases(tensor)]


def convert_collection_to_dict(collection: str, clear_collection: bool = False) -> dict[str, Tensor]:
    """The tensors of a collection by their further names.

    Args:
        collection: the collection.
        clear_collection: leave it empty.
    """
    tensors_by_alias = {alias: tensor for tensor in get_collection(collection) for alias in get_tensor_aliases(tensor)}
    if clear_collection:
        get_collection_ref(collection).clear()
    return tensors_by_alias


def smart_cond(pred: Any, fn1: Callable[[], Any], fn2: Callable[[], Any], name: str | None = None) -> Any:
    """`gc.cond`, without a node where `pred` is the same in every run."""
    static_pred = get_static_value(pred) if isinstance(pred, Tensor) else pred
    if isinstance(static_pred, bool | int | np.bool_ | np.ndarray):
        return fn1() if static_pred else fn2()
    return cond(pred, fn1, fn2, name=name)


def get_variable_collections(variables_collections: Any, name: str) -> Any:
    """The collections for variables of a kind, from a dict by kinds or from one list for all."""
    return variables_collections.get(name) if isinstance(variables_collections, dict) else variables_collections


def last_dimension(shape: Any, min_rank: int = 1) -> int:
    """The last size of a shape.

    Raises:
        InvalidArgumentError: it is unknown, or there are fewer than `min_rank` dimensions.
    """
    shape = as_shape(shape)
    if shape.rank is None or shape.rank < min_rank or shape.as_list()[-1] is None:
        raise InvalidArgumentError(f"required a shape of at least {min_rank} dimensions with a known last one, got {shape}")
    return int(shape.as_list()[-1])


def two_element_tuple(int_or_tuple: Any) -> tuple[int, int]:
    """Two ints: those given, also as a shape, or the one given twice.

    Raises:
        InvalidArgumentError: something else is given.
    """
    if isinstance(int_or_tuple, list | tuple | Shape) and len(int_or_tuple) == 2:
        return int(int_or_tuple[0]), int(int_or_tuple[1])
    if isinstance(int_or_tuple, int):
        return int_or_tuple, int_or_tuple
    raise InvalidArgumentError(f"required an int or two, got {int_or_tuple!r}")
