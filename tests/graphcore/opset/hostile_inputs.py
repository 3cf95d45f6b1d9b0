"""Inputs that may make a kernel fail: varied shapes, all types, extreme values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

import graphcore as gc
from graphcore.attrs import AttrValue
from tests.graphcore.opset.op_cases import Array, Case

SPECIAL: Final[Mapping[str, Sequence[Any]]] = {
    "f": (0.0, -0.0, np.nan, np.inf, -np.inf, 6e4, -6e4, 1e-7, -1.0, 0.5, 2.0),
    "V": (0.0, -0.0, np.nan, np.inf, -np.inf, 1e30, -1e30, -1.0, 0.5),
    "c": (0, np.nan, np.inf, 1 + 2j, -1e30j),
    "b": (False, True),
    "O": (b"", b"a"),
}
Sizes = Mapping[int, int]
"""The size that each size of an example is replaced by."""


def extremes(dtype: np.dtype[Any]) -> Sequence[Any]:
    """The extreme values of a type."""
    if dtype.kind not in "iu":
        return SPECIAL[dtype.kind]
    limits = np.iinfo(dtype)
    return (0, 1, 2, limits.max, limits.min, limits.max // 2, *((-1, -2) if dtype.kind == "i" else ()))


def argument_names(case: Case) -> list[str]:
    """The argument names of the arrays of a case."""
    pairs = zip(case.op_def.input_arg, case.inputs, strict=True)
    return [arg.name for arg, value in pairs for _ in (value if isinstance(value, list) else [value])]


def other_sizes(case: Case) -> list[Sizes | None]:
    """Changes of the sizes in a case: none, each size to 0, 1 and 5, and (None) scalars."""
    sizes = sorted({size for array in case.arrays for size in array.shape})
    return [{}, None, *({size: other} for other in (0, 1, 5) for size in sizes)]


def other_types(case: Case) -> list[dict[str, gc.DType]]:
    """The types of a case, and each type allowed for each type attr."""
    names = {arg.type_attr: None for arg in case.op_def.input_arg if arg.type_attr}
    allowed = ((name, case.op_def.find_attr(name)) for name in names)
    return [{}, *({name: dtype} for name, attr in allowed if attr is not None for dtype in _types(attr.allowed_values))]


def _types(values: Sequence[AttrValue] | None) -> Iterator[gc.DType]:
    yield from (value for value in values or () if isinstance(value, gc.DType) and value.as_numpy is not None)


def changed(case: Case, sizes: Sizes | None, types: Mapping[str, gc.DType], picks: Sequence[int], kept: Sequence[str]) -> list[Array]:
    """The arrays of a case in other sizes and types, filled with extreme values.

    Args:
        picks: selects the values, cyclically.
        kept: names of arguments that keep their values.
    """
    arrays: list[Array] = []
    attrs = {arg.name: arg.type_attr for arg in case.op_def.input_arg}
    number = 0
    for name, array in zip(argument_names(case), case.arrays, strict=True):
        dtype = types[attrs[name]].as_numpy if attrs[name] in types else array.dtype
        assert dtype is not None
        if name in kept:
            arrays.append(array.astype(dtype))
            continue
        shape = () if sizes is None else tuple([sizes.get(size, size) for size in array.shape])
        made = np.empty(shape, dtype)
        values = extremes(made.dtype)
        for place in range(made.size):
            made.reshape(-1)[place] = values[picks[number % len(picks)] % len(values)]
            number += 1
        arrays.append(made)
    return arrays
