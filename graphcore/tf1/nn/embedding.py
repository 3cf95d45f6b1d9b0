"""`tf.nn`: embeddings, and losses on sampled classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from graphcore.dtypes import int32, int64
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor, get_default_graph
from graphcore.tf1.arrays.layout import concat, expand_dims, reshape, shape, stop_gradient, zeros_like
from graphcore.tf1.calls import apply_one
from graphcore.tf1.framework import constant, convert_to_tensor, name_scope
from graphcore.tf1.math.clipping import clip_by_norm
from graphcore.tf1.math.elementwise import add_n, cast, matmul
from graphcore.tf1.math.reductions import reduction
from graphcore.tf1.nn.activations import labels_of_true, sigmoid_cross_entropy_with_logits, softmax_cross_entropy_with_logits_v2, sum_rows
from graphcore.tf1.random import seed_attrs


def embedding_lookup(
    params: Any,
    ids: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    validate_indices: bool = True,
    max_norm: float | None = None,
) -> Tensor:
    """The rows of `params` with the numbers `ids`. params: [n, ...]  ids: [...] -> y: [..., *params.shape[1:]].

    Args:
        params: a tensor or variable; or several, which share the rows among them.
        ids: ints.
        partition_strategy: "mod" if the parts take turns with the rows, "div" if each has a block of them.
        name: the name scope.
        validate_indices: without effect; indices are always checked.
        max_norm: rows with a greater norm are scaled down to it.
    """
    del validate_indices
    parts = list(params) if isinstance(params, list | tuple) else [params]
    if not parts:
        raise InvalidArgumentError("embedding_lookup: need at least one tensor of params, got none")
    with name_scope(name or "embedding_lookup"):
        ids = convert_to_tensor(ids)
        rows = _partitioned(parts, ids, partition_strategy) if len(parts) > 1 else apply_one("GatherV2", [parts[0], ids, 0], None)
        if max_norm is None:
            return rows
        rank = convert_to_tensor(parts[0]).shape.rank or 2
        before = (rows.shape.rank or ids.shape.rank or 1) - rank + 1
        return clip_by_norm(rows, max_norm, list(range(max(before, 1), before + rank - 1)))  # type: ignore[no-any-return]  # of a tensor


def _partitioned(parts: Sequence[Any], ids: Tensor, strategy: str) -> Tensor:
    """The rows from several parts."""
    graph = get_default_graph()
    count = len(parts)
    flat = cast(reshape(ids, [-1]), int32)
    if strategy == "mod":
        assignments, numbers = flat % count, flat // count
    elif strategy == "div":
        sizes = [shape(part)[0] for part in parts]
        total = add_n(sizes)
        least, extra = total // count, total % count
        assignments = apply_one("Maximum", [flat // (least + 1), (flat - extra) // least], None)
        in_extra = apply_one("Less", [assignments, extra], None)
        numbers = apply_one("Select", [in_extra, flat % (least + 1), (flat - extra) % least], None)
    else:
        raise InvalidArgumentError(f"embedding_lookup: required the partition strategy mod or div, got {strategy!r}")
    where = graph.apply_op(
        "DynamicPartition",
        [apply_one("Range", [0, apply_one("Size", [flat], None), 1], None), assignments],
        {"num_partitions": count},
        None,
    )
    wanted = graph.apply_op("DynamicPartition", [numbers, assignments], {"num_partitions": count}, None)
    rows = [apply_one("GatherV2", [part, which, 0], None) for part, which in zip(parts, wanted.outputs, strict=True)]
    stitched = apply_one("DynamicStitch", [list(where.outputs), rows], None)
    result = reshape(stitched, concat([shape(ids), shape(parts[0])[1:]], 0))
    rest = convert_to_tensor(parts[0]).shape[1:]
    result.set_shape(ids.shape.concatenate(rest))
    return result


class Sampled(NamedTuple):
    """Sampled classes, and how often the true and the sampled ones are expected."""

    sampled_candidates: Tensor
    true_expected_count: Tensor
    sampled_expected_count: Tensor


def _sampler(op: str, true_classes: Any, attrs: dict[str, Any], seed: int | None, name: str | None) -> Sampled:
    classes = convert_to_tensor(true_classes, int64)
    return Sampled(*get_default_graph().apply_op(op, [classes], attrs | seed_attrs(seed), name).outputs)


def log_uniform_candidate_sampler(
    true_classes: Any, num_true: int, num_sampled: int, unique: bool, range_max: int, seed: int | None = None, name: str | None = None
) -> Sampled:
    """Classes drawn with a probability that falls with their number: words sorted by frequency.

    Args:
        true_classes: [b, num_true], int64.
        num_true: the number of true classes of an example.
        num_sampled: the number of classes to draw.
        unique: draw each class once at most.
        range_max: the number of classes.
        seed: the seed.
        name: the name of the node.
    """
    attrs = {"num_true": num_true, "num_sampled": num_sampled, "unique": unique, "range_max": range_max}
    return _sampler("LogUniformCandidateSampler", true_classes, attrs, seed, name)


def uniform_candidate_sampler(
    true_classes: Any, num_true: int, num_sampled: int, unique: bool, range_max: int, seed: int | None = None, name: str | None = None
) -> Sampled:
    """Classes drawn with the same probability; see `log_uniform_candidate_sampler`."""
    attrs = {"num_true": num_true, "num_sampled": num_sampled, "unique": unique, "range_max": range_max}
    return _sampler("UniformCandidateSampler", true_classes, attrs, seed, name)


def fixed_unigram_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    vocab_file: str = "",
    distortion: float = 1.0,
    num_reserved_ids: int = 0,
    num_shards: int = 1,
    shard: int = 0,
    unigrams: Sequence[float] = (),
    seed: int | None = None,
    name: str | None = None,
) -> Sampled:
    """Classes drawn by given weights; see `log_uniform_candidate_sampler`.

    Args:
        true_classes, num_true, num_sampled, unique, range_max, seed, name: as there.
        vocab_file: "", since the weights are given as unigrams.
        distortion: the power of the weights that is taken.
        num_reserved_ids: the number of classes before the first one with a weight.
        num_shards, shard: draw only the classes whose number is `shard` modulo `num_shards`.
        unigrams: the weights.
    """
    attrs = {
        "num_true": num_true,
        "num_sampled": num_sampled,
        "unique": unique,
        "range_max": range_max,
        "vocab_file": vocab_file,
        "distortion": float(distortion),
        "num_reserved_ids": num_reserved_ids,
        "num_shards": num_shards,
        "shard": shard,
        "unigrams": [float(weight) for weight in unigrams],
    }
    return _sampler("FixedUnigramCandidateSampler", true_classes, attrs, seed, name)


def _sampled_logits(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int,
    sampled_values: Any,
    remove_accidental_hits: bool,
    partition_strategy: str,
    seed: int | None,
) -> tuple[Tensor, Tensor]:
    """Logits and labels of the true and the sampled classes. -> logits, labels: [b, num_true + num_sampled]."""
    labels = cast(convert_to_tensor(labels), int64)
    inputs = convert_to_tensor(inputs)
    flat = reshape(labels, [-1])
    if sampled_values is None:
        sampled_values = log_uniform_candidate_sampler(labels, num_true, num_sampled, True, num_classes, seed)
    sampled, true_expected, sampled_expected = (stop_gradient(value) for value in sampled_values)
    sampled = cast(sampled, int64)
    everything = concat([flat, sampled], 0)
    rows = embedding_lookup(weights, everything, partition_strategy)
    offsets = embedding_lookup(biases, everything, partition_strategy)
    count = shape(flat)[0]
    true_rows, sampled_rows = rows[:count], rows[count:]
    true_offsets, sampled_offsets = offsets[:count], offsets[count:]
    sampled_logits = matmul(inputs, sampled_rows, transpose_b=True) + sampled_offsets
    dim = shape(true_rows)[1]
    products = expand_dims(inputs, 1) * reshape(true_rows, [-1, num_true, dim])
    true_logits = reshape(sum_rows(reshape(products, [-1, dim])), [-1, num_true]) + reshape(true_offsets, [-1, num_true])
    if remove_accidental_hits:
        hits = apply_one("Equal", [expand_dims(reshape(labels, [-1, num_true]), 2), reshape(sampled, [1, 1, -1])], None)
        lowest = constant(float(np.finfo(np.float32).min), inputs.dtype.base)
        sampled_logits = sampled_logits + reduction("Sum", cast(hits, inputs.dtype.base), [1]) * lowest
    true_logits = true_logits - apply_one("Log", [true_expected], None)
    sampled_logits = sampled_logits - apply_one("Log", [sampled_expected], None)
    logits = concat([true_logits, sampled_logits], 1)
    return logits, concat([labels_of_true(true_logits, num_true), zeros_like(sampled_logits)], 1)


def nce_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = False,
    partition_strategy: str = "mod",
    name: str = "nce_loss",
) -> Tensor:
    """The noise-contrastive loss of each example: true classes against sampled ones.

    Args:
        weights: [classes, dim], or parts of it; see `embedding_lookup`.
        biases: [classes].
        labels: [b, num_true], the true classes.
        inputs: [b, dim].
        num_sampled: the number of classes to sample for a batch.
        num_classes: the number of classes.
        num_true: the number of true classes of an example.
        sampled_values: what a candidate sampler gave; by default that of `log_uniform_candidate_sampler`.
        remove_accidental_hits: leave sampled classes out where they are true ones.
        partition_strategy: see `embedding_lookup`.
        name: the name scope.

    Returns:
        A loss for each example: [b].
    """
    with name_scope(name):
        logits, targets = _sampled_logits(
            weights,
            biases,
            labels,
            inputs,
            num_sampled,
            num_classes,
            num_true,
            sampled_values,
            remove_accidental_hits,
            partition_strategy,
            None,
        )
        return sum_rows(sigmoid_cross_entropy_with_logits(labels=targets, logits=logits, name="sampled_losses"))


def sampled_softmax_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = True,
    partition_strategy: str = "mod",
    name: str = "sampled_softmax_loss",
    seed: int | None = None,
) -> Tensor:
    """The softmax loss of each example over its true classes and sampled ones; see `nce_loss`."""
    with name_scope(name):
        logits, targets = _sampled_logits(
            weights,
            biases,
            labels,
            inputs,
            num_sampled,
            num_classes,
            num_true,
            sampled_values,
            remove_accidental_hits,
            partition_strategy,
            seed,
        )
        return softmax_cross_entropy_with_logits_v2(stop_gradient(targets), logits)
