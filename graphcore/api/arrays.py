"""Shapes, layouts and copies of tensors, under TF1's names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphcore.graph import Tensor, get_default_graph


def _apply(op: str, inputs: Sequence[Any], name: str | None, default: str, attrs: Mapping[str, Any] | None = None) -> Tensor:
    return get_default_graph().apply_op(op, inputs, attrs, name or default).outputs[0]


def identity(x: Any, name: str | None = None) -> Tensor:
    """The same value."""
    return _apply("Identity", [x], name, "Identity")


def stop_gradient(x: Any, name: str | None = None) -> Tensor:
    """The same value, but gradients do not flow through it."""
    return _apply("StopGradient", [x], name, "StopGradient")


def reshape(x: Any, shape: Any, name: str | None = None) -> Tensor:
    """The same elements in another shape; one size may be -1."""
    return _apply("Reshape", [x, shape], name, "Reshape")


def shape(x: Any, name: str | None = None) -> Tensor:
    """The shape at run time, int32. x: any -> y: [rank]."""
    return _apply("Shape", [x], name, "Shape")


def expand_dims(x: Any, axis: int, name: str | None = None) -> Tensor:
    """Insert a dimension of size 1 at `axis`."""
    return _apply("ExpandDims", [x, axis], name, "ExpandDims")


def squeeze(x: Any, axis: Sequence[int] = (), name: str | None = None) -> Tensor:
    """Remove dimensions of size 1: those in `axis`, or all."""
    return _apply("Squeeze", [x], name, "Squeeze", {"squeeze_dims": list(axis)})


def transpose(x: Any, perm: Sequence[int] | Tensor, name: str | None = None) -> Tensor:
    """Permute the dimensions to the order `perm`."""
    return _apply("Transpose", [x, perm], name, "transpose")


def zeros_like(x: Any, name: str | None = None) -> Tensor:
    """Zeros of the same shape and dtype."""
    return _apply("ZerosLike", [x], name, "zeros_like")


def ones_like(x: Any, name: str | None = None) -> Tensor:
    """Ones of the same shape and dtype."""
    return _apply("OnesLike", [x], name, "ones_like")


def concat(values: Sequence[Any], axis: int, name: str | None = None) -> Tensor:
    """Join tensors along `axis`."""
    return _apply("ConcatV2", [list(values), axis], name, "concat")


def stack(values: Sequence[Any], axis: int = 0, name: str | None = None) -> Tensor:
    """Stack tensors of one shape along a new `axis`."""
    return _apply("Pack", [list(values)], name, "stack", {"axis": axis})


def one_hot(indices: Any, depth: int, name: str | None = None) -> Tensor:
    """Rows that are 1 at the index and 0 elsewhere. indices: [...] -> y: [..., depth]."""
    return _apply("OneHot", [indices, depth, 1.0, 0.0], name, "one_hot")
