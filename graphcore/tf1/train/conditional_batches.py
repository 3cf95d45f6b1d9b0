"""The pipelines of `tf.train` that put in only some of the elements: `maybe_batch` and its relatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphcore.tf1.framework import name_scope
from graphcore.tf1.train.pipelines import batched

__all__ = ["maybe_batch", "maybe_batch_join", "maybe_shuffle_batch", "maybe_shuffle_batch_join"]


def maybe_batch(
    tensors: Any,
    keep_input: Any,
    batch_size: Any,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Sequence[Any] | None = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Like `gc.train.batch`, with the elements for which `keep_input` is true.

    Args:
        tensors, batch_size, num_threads, capacity, enqueue_many, shapes, dynamic_pad, allow_smaller_final_batch, shared_name, name: as of
            `gc.train.batch`.
        keep_input: bool, a scalar; with `enqueue_many` also one for each element.
    """
    with name_scope(name or "batch") as scope:
        copies = [tensors] * num_threads
        smaller = allow_smaller_final_batch
        return batched(scope, copies, batch_size, capacity, enqueue_many, shapes, dynamic_pad, smaller, shared_name, keep=keep_input)


def maybe_batch_join(
    tensors_list: Sequence[Any],
    keep_input: Any,
    batch_size: Any,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Sequence[Any] | None = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Like `maybe_batch`, of several elements that are made side by side, each by a thread of its own."""
    with name_scope(name or "batch_join") as scope:
        smaller = allow_smaller_final_batch
        return batched(scope, tensors_list, batch_size, capacity, enqueue_many, shapes, dynamic_pad, smaller, shared_name, keep=keep_input)


def maybe_shuffle_batch(
    tensors: Any,
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    keep_input: Any,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Sequence[Any] | None = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Like `gc.train.shuffle_batch`, with the elements for which `keep_input` is true; see `maybe_batch`."""
    with name_scope(name or "shuffle_batch") as scope:
        least, smaller = (min_after_dequeue, seed), allow_smaller_final_batch
        copies = [tensors] * num_threads
        return batched(scope, copies, batch_size, capacity, enqueue_many, shapes, False, smaller, shared_name, least, keep_input)


def maybe_shuffle_batch_join(
    tensors_list: Sequence[Any],
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    keep_input: Any,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Sequence[Any] | None = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Like `maybe_shuffle_batch`, of several elements, each made by a thread of its own."""
    with name_scope(name or "shuffle_batch_join") as scope:
        least, smaller = (min_after_dequeue, seed), allow_smaller_final_batch
        return batched(scope, tensors_list, batch_size, capacity, enqueue_many, shapes, False, smaller, shared_name, least, keep_input)
