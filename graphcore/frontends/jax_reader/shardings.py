"""Shardings of JAX in words: partition specs of arguments, results, constraints and shard maps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from graphcore.frontends.words import REPLICATED, SHARDED

_MAX_TEXT: Final = 200
_SPECS: Final = frozenset({"P", "PartitionSpec"})
"""The class, by the version of JAX."""


def sharding_words(sharding: Any) -> str:
    """A `NamedSharding` or a `PartitionSpec`: `sharded P('data', None)`, `replicated`; "" for others."""
    spec = getattr(sharding, "spec", sharding)
    if type(spec).__name__ not in _SPECS:
        return ""
    if all(part is None for part in spec):
        return REPLICATED
    return f"{SHARDED}P({', '.join([repr(part) for part in spec])})"[:_MAX_TEXT]


def words_of_value(value: Any) -> str:
    """The sharding of an array or an abstract value, "" if no axis of it is split."""
    words = sharding_words(getattr(value, "sharding", None))
    return "" if words == REPLICATED else words


def mesh_words(sharding: Any) -> str:
    """The axes of the mesh of a sharding, or of a mesh: `data: 2, model: 4`."""
    shape = getattr(getattr(sharding, "mesh", sharding), "shape", None)
    return ", ".join([f"{axis}: {size}" for axis, size in dict(shape).items()])[:_MAX_TEXT] if shape else ""


def results_of(eqn: Any) -> list[str]:
    """The shardings of the results of an equation, "" for those that it does not say."""
    params = eqn.params
    stated: Sequence[Any] = ()
    if "sharding" in params:
        stated = [params["sharding"]]
    elif eqn.primitive.name in {"jit", "pjit"}:
        stated = params.get("out_shardings", ())
    elif eqn.primitive.name == "shard_map":
        stated = params.get("out_specs", ())
    words = [sharding_words(sharding) for sharding in stated]
    values = [words_of_value(var.aval) for var in eqn.outvars]
    return [one or other for one, other in zip(words, values, strict=True)] if len(words) == len(values) else values


def arguments_of(eqn: Any) -> list[str]:
    """The shardings of the arguments of the function that an equation calls, none if it has none."""
    name = "in_specs" if eqn.primitive.name == "shard_map" else "in_shardings"
    return [sharding_words(sharding) for sharding in eqn.params.get(name, ())]


def joined(words: Iterable[str]) -> str:
    """The shardings of the results of a node in one text."""
    return "; ".join(dict.fromkeys([word for word in words if word]))
