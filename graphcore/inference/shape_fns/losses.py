"""Shape functions of the cross-entropy losses and of metrics."""

from __future__ import annotations

from graphcore.errors import InvalidArgumentError
from graphcore.inference.context import InferenceContext
from graphcore.inference.handles import UNKNOWN, DimensionHandle
from graphcore.inference.shape_fns.broadcast import broadcast_shapes


def softmax_cross_entropy_shape(c: InferenceContext) -> None:
    """`features: [batch, classes]  labels: like features, or broadcast -> loss: [batch], backprop`.

    backprop has the shape [batch, classes].
    """
    features, labels = (c.unknown_shape_of_rank(2) if shape.dims is None else shape for shape in c.inputs[:2])
    backprop = broadcast_shapes(features, labels)
    if backprop.dims is None or len(backprop.dims) != 2:
        raise InvalidArgumentError(f"Shape must be broadcasted with rank 2, but is rank {c.rank(backprop)}")
    if features.dims is not None and labels.dims is not None and len(features.dims) == len(labels.dims):
        backprop = c.make_shape([_one_of(c, *dims) for dims in zip(features.dims, labels.dims, backprop.dims, strict=True)])
    c.set_output(0, c.vector(c.dim(backprop, 0)))
    c.set_output(1, backprop)


def _one_of(c: InferenceContext, feature: DimensionHandle, label: DimensionHandle, both: DimensionHandle) -> DimensionHandle:
    """Choose between two sizes. Two unknown sizes are assumed to be equal, as they nearly always are.

    A size of 1 may be stretched to an unknown one.
    """
    return c.merge_dim(feature, label) if feature.value == label.value == UNKNOWN else both


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
    shape = c.with_rank_at_least(c.input(0), 1)
    k = c.make_dim_for_scalar_input(1) if c.num_inputs > 1 else c.make_dim(c.int_attr("k"))
    last = c.dim(shape, -1)
    if UNKNOWN not in (last.value, k.value) and last.value < k.value:
        raise InvalidArgumentError(f"input must have last dimension >= k = {k} but is {last}")
    out = c.unknown_shape() if shape.dims is None else c.replace_dim(shape, -1, k)
    c.set_output(0, out)
    c.set_output(1, out)
