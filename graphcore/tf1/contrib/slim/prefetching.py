"""`tf.contrib.slim.prefetch_queue`: a queue of finished batches in front of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphcore import dtypes
from graphcore.tf1.framework import name_scope
from graphcore.tf1.math.elementwise import cast
from graphcore.tf1.queues.queues import FIFOQueue, PaddingFIFOQueue, QueueBase
from graphcore.tf1.train.pipelines import add_summary, tensors_of
from graphcore.tf1.train.queue_runners import QueueRunner, add_queue_runner

__all__ = ["prefetch_queue"]


def prefetch_queue(
    tensors: Sequence[Any] | Mapping[str, Any],
    capacity: int = 8,
    num_threads: int = 1,
    dynamic_pad: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> QueueBase:
    """A queue that threads of `start_queue_runners` fill with the values of `tensors`.

    These are batches of `gc.train.batch`, for instance: they wait there until a model takes them.

    Args:
        tensors: an element: a list of tensors, or a dict; `dequeue` then gives dicts.
        capacity: the most elements.
        num_threads: the number of threads.
        dynamic_pad: allow unknown sizes; `dequeue_many` pads with zeros.
        shared_name: queues with the same name are one.
        name: the name scope.

    Returns:
        The queue.
    """
    names = sorted(tensors) if isinstance(tensors, Mapping) else None
    row = tensors_of(tensors)
    with name_scope(name or "prefetch_queue"):
        queue_class = PaddingFIFOQueue if dynamic_pad else FIFOQueue
        kinds, shapes = [tensor.dtype.base for tensor in row], [tensor.shape for tensor in row]
        queue = queue_class(capacity, kinds, shapes, names, shared_name)
        element = row if names is None else dict(zip(names, row, strict=True))
        add_queue_runner(QueueRunner(queue, [queue.enqueue(element)] * num_threads))
        add_summary(f"fraction_of_{capacity}_full", cast(queue.size(), dtypes.float32) * (1.0 / capacity))
        return queue
