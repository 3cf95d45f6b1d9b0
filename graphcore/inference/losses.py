"""Shape functions of the cross-entropy losses and of what judges predictions."""

from __future__ import annotations

from graphcore.errors import InvalidArgumentError
from graphcore.inference.broadcast import broadcast_shapes
from graphcore.inference.context import InferenceContext
from graphcore.inference.handles import UNKNOWN, ShapeHandle


def softmax_cross_entropy_shape(c: InferenceContext) -> None:
    """`features: [batch, classes]  labels: likewise, or broadcast -> loss: [batch]  backprop: [batch, classes]`."""
    backprop = _same_or_broadcast(c)
    if backprop.dims is None:
        raise InvalidArgumentError("Shape must be broadcasted with rank 2, but is rank is unknown.")
    if len(backprop.dims) != 2:
        raise InvalidArgumentError(f"Shape must be broadcasted with rank 2, but is rank {len(backprop.dims)}")
    c.set_output(0, c.vector(backprop.dims[0]))
    c.set_output(1, backprop)


def _same_or_broadcast(c: InferenceContext) -> ShapeHandle:
    try:
        return c.merge(c.with_rank(c.input(0), 2), c.input(1))
    except InvalidArgumentError:
        return broadcast_shapes(c.input(0), c.input(1))  # labels of another shape are allowed if they can be stretched


def sparse_softmax_cross_entropy_shape(c: InferenceContext) -> None:
    """`features: [batch, classes]  labels: [batch] -> loss: [batch]  backprop: [batch, classes]`."""
    features = c.with_rank(c.input(0), 2)
    labels = c.with_rank(c.input(1), 1)
    batch = c.merge_dim(c.dim(features, 0), c.dim(labels, 0))
    c.set_output(0, c.vector(batch))
    c.set_output(1, c.replace_dim(features, 0, batch))


def in_top_k_shape(c: InferenceContext) -> None:
    """`predictions: [batch, classes]  targets: [batch] -> [batch]` (InTopK, InTopKV2 with scalar k)."""
    predictions = c.with_rank(c.input(0), 2)
    targets = c.with_rank(c.input(1), 1)
    c.set_output(0, c.vector(c.merge_dim(c.dim(predictions, 0), c.dim(targets, 0))))


def top_k_shape(c: InferenceContext) -> None:
    """`input: [..., n] -> values, indices: [..., k]`; k is attr `k` (TopK) or scalar input 1 (TopKV2)."""
    given = c.with_rank_at_least(c.input(0), 1)
    k = c.make_dim_for_scalar_input(1) if c.num_inputs > 1 else c.make_dim(c.int_attr("k"))
    last = c.dim(given, -1)
    if UNKNOWN not in (last.value, k.value) and last.value < k.value:
        raise InvalidArgumentError(f"input must have last dimension >= k = {k} but is {last}")
    out = c.unknown_shape() if given.dims is None else c.replace_dim(given, -1, k)
    c.set_output(0, out)
    c.set_output(1, out)
