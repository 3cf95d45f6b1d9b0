"""Tensors kept within bounds: by value, by norm, and several together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphcore.dtypes import float32
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor
from graphcore.tf1.calls import apply_one
from graphcore.tf1.framework import constant, convert_to_tensor, name_scope
from graphcore.tf1.math.elementwise import cast, maximum, where
from graphcore.tf1.math.reductions import reduction

__all__ = ["clip_by_average_norm", "clip_by_global_norm", "clip_by_norm", "clip_by_value", "global_norm"]


def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any, name: str | None = None) -> Any:
    """`t`, where it is below the least or above the greatest value, replaced by that."""
    with name_scope(name or "clip_by_value") as scope:
        values, rest = _values(t)
        low = apply_one("Minimum", [values, clip_value_max], "Minimum")
        return rest(maximum(low, clip_value_min, scope))


def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: str | None = None) -> Any:
    """`t` scaled down to the norm `clip_norm` if its own is greater; along `axes`, or as a whole."""
    with name_scope(name or "clip_by_norm"):
        values, rest = _values(t)
        limit = convert_to_tensor(clip_norm, values.dtype.base)
        squares = reduction("Sum", values * values, axes, True)
        positive = apply_one("Greater", [squares, 0], None)
        safe = where(positive, squares, apply_one("OnesLike", [squares], None))
        length = where(positive, apply_one("Sqrt", [safe], None), squares)
        return rest((values * limit) / maximum(length, limit))


def clip_by_average_norm(t: Any, clip_norm: Any, name: str | None = None) -> Tensor:
    """`t` scaled down if its norm, divided by the number of its elements, is greater than `clip_norm`."""
    with name_scope(name or "clip_by_average_norm"):
        values = convert_to_tensor(t)
        count = cast(apply_one("Size", [values], None), float32)
        inverse = apply_one("Rsqrt", [reduction("Sum", values * values)], None)
        limit = apply_one("Reciprocal", [convert_to_tensor(clip_norm, values.dtype.base)], None)
        return values * convert_to_tensor(clip_norm, values.dtype.base) * apply_one("Minimum", [inverse * count, limit], None)


def global_norm(t_list: Sequence[Any], name: str | None = None) -> Tensor:
    """The root of the sum of the squares of all elements of several tensors; None is skipped."""
    tensors = [t for t in t_list if t is not None]
    if not tensors:
        raise InvalidArgumentError("global_norm: required a tensor, got none")
    with name_scope(name or "global_norm"):
        halves = [apply_one("L2Loss", [_values(t)[0]], None) for t in tensors]
        total = reduction("Sum", apply_one("Pack", [halves], None))
        return apply_one("Sqrt", [total * 2.0], "global_norm")


def clip_by_global_norm(t_list: Sequence[Any], clip_norm: Any, use_norm: Any = None, name: str | None = None) -> tuple[list[Any], Tensor]:
    """Several tensors, scaled down together to the norm `clip_norm` if their common norm is greater.

    Args:
        t_list: the tensors; None stays None.
        clip_norm: the greatest norm.
        use_norm: the norm of all, if it is known.
        name: the name scope.

    Returns:
        The scaled tensors, and the norm before.
    """
    length = global_norm(t_list, name) if use_norm is None else convert_to_tensor(use_norm)
    with name_scope(name or "clip_by_global_norm"):
        inverse = apply_one("Minimum", [1.0 / length, constant(1.0, length.dtype.base) / clip_norm], None)
        scale = clip_norm * inverse + (length - length)  # not a number if the norm is none
        clipped: list[Any] = []
        for t in t_list:
            if t is None:
                clipped.append(None)
                continue
            values, rest = _values(t)
            clipped.append(rest(values * scale))
        return clipped, length


def _values(t: Any) -> tuple[Tensor, Any]:
    """The values of a tensor or of slices of one, and the function that puts new values in their place."""
    if hasattr(t, "values") and hasattr(t, "indices"):
        return t.values, lambda values: type(t)(values, t.indices, t.dense_shape)
    return convert_to_tensor(t), lambda values: values
