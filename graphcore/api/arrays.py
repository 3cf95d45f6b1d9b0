"""Shapes, layouts and copies of tensors, under TF1's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphcore.api.apply_one import apply_one
from graphcore.graph import Tensor


def identity(x: Any, name: str | None = None) -> Tensor:
    """The same value."""
    return apply_one("Identity", [x], name)


def stop_gradient(x: Any, name: str | None = None) -> Tensor:
    """The same value, but gradients do not flow through it."""
    return apply_one("StopGradient", [x], name)


def reshape(x: Any, shape: Any, name: str | None = None) -> Tensor:
    """The same elements in another shape; one size may be -1."""
    return apply_one("Reshape", [x, shape], name)


def shape(x: Any, name: str | None = None) -> Tensor:
    """The shape at run time, int32. x: any -> y: [rank]."""
    return apply_one("Shape", [x], name)


def expand_dims(x: Any, axis: int, name: str | None = None) -> Tensor:
    """Insert a dimension of size 1 at `axis`."""
    return apply_one("ExpandDims", [x, axis], name)


def squeeze(x: Any, axis: Sequence[int] = (), name: str | None = None) -> Tensor:
    """Remove dimensions of size 1: those in `axis`, or all."""
    return apply_one("Squeeze", [x], name, {"squeeze_dims": list(axis)})


def transpose(x: Any, perm: Sequence[int] | Tensor, name: str | None = None) -> Tensor:
    """Permute the dimensions to the order `perm`."""
    return apply_one("Transpose", [x, perm], name or "transpose")


def zeros_like(x: Any, name: str | None = None) -> Tensor:
    """Zeros of the same shape and dtype."""
    return apply_one("ZerosLike", [x], name or "zeros_like")


def ones_like(x: Any, name: str | None = None) -> Tensor:
    """Ones of the same shape and dtype."""
    return apply_one("OnesLike", [x], name or "ones_like")


def concat(values: Sequence[Any], axis: int, name: str | None = None) -> Tensor:
    """Join tensors along `axis`."""
    return apply_one("ConcatV2", [list(values), axis], name or "concat")


def stack(values: Sequence[Any], axis: int = 0, name: str | None = None) -> Tensor:
    """Stack tensors of one shape along a new `axis`."""
    return apply_one("Pack", [list(values)], name or "stack", {"axis": axis})


def one_hot(indices: Any, depth: int, name: str | None = None) -> Tensor:
    """Rows that are 1 at the index and 0 elsewhere. indices: [...] -> y: [..., depth]."""
    return apply_one("OneHot", [indices, depth, 1.0, 0.0], name or "one_hot")
