"""`tf.contrib.training.bucket` and its relative: batches of elements of one kind each."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from graphcore import dtypes
from graphcore.errors import CancelledError, InvalidArgumentError, OutOfRangeError
from graphcore.graph import Tensor
from graphcore.shapes import Shape, as_shape
from graphcore.tf1.framework import constant, convert_to_tensor, get_static_value, group, name_scope
from graphcore.tf1.math.elementwise import cast, equal
from graphcore.tf1.math.reductions import reduce_sum
from graphcore.tf1.queues.queues import FIFOQueue, PaddingFIFOQueue
from graphcore.tf1.train.pipelines import add_summary, common_shapes, enqueued_if, tensors_of
from graphcore.tf1.train.queue_runners import QueueRunner, add_queue_runner

__all__ = ["bucket", "bucket_by_sequence_length"]


def bucket(
    tensors: Any,
    which_bucket: Any,
    batch_size: Any,
    num_buckets: int,
    num_threads: int = 1,
    capacity: int = 32,
    bucket_capacities: Sequence[int] | None = None,
    shapes: Sequence[Any] | None = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    keep_input: Any = True,
    shared_name: str | None = None,
    name: str | None = None,
) -> tuple[Tensor, Any]:
    """Batches of elements of the same bucket, which threads of `start_queue_runners` put together.

    Args:
        tensors: an element: a list or dict of tensors, or one.
        which_bucket: the number of its bucket, int32, a scalar; an element without such a bucket is left out.
        batch_size: the number of elements in a batch, or one for each bucket.
        num_buckets: the number of buckets.
        num_threads: the number of threads that put in elements.
        capacity: the most batches that wait, and the most elements in each bucket.
        bucket_capacities: the most elements in each bucket, instead.
        shapes: the shapes of elements, if those of the tensors are not known.
        dynamic_pad: pad elements of different sizes with zeros.
        allow_smaller_final_batch: give what is left at the end.
        keep_input: False leaves an element out; bool, a scalar.
        shared_name: queues with the same name are one.
        name: the name scope.

    Returns:
        The number of the bucket, and the batch: a dict for a dict, else a list.

    Raises:
        InvalidArgumentError: a list of sizes or capacities has another length, or shapes are not known.
    """
    sizes = list(batch_size) if isinstance(batch_size, list | tuple) else [batch_size] * num_buckets
    if len(sizes) != num_buckets:
        raise InvalidArgumentError(f"If batch_size is a list it must have num_buckets elements: required {num_buckets}, got {len(sizes)}")
    limits = [capacity] * num_buckets if bucket_capacities is None else list(bucket_capacities)
    if len(limits) != num_buckets:
        raise InvalidArgumentError(f"The list bucket_capacities ({limits}) must have exactly num_buckets ({num_buckets}) elements.")
    row = tensors_of(tensors)
    with name_scope(name or "bucket"):
        kinds = [component.dtype.base for component in row]
        component_shapes = [as_shape(shape) for shape in shapes] if shapes is not None else common_shapes([row], many=False)
        if not dynamic_pad and not all(shape.is_fully_defined for shape in component_shapes):
            raise InvalidArgumentError(f"All shapes must be fully defined: {', '.join(map(str, component_shapes))}; set_shape declares one")
        which, keep = convert_to_tensor(which_bucket, dtypes.int32), convert_to_tensor(keep_input, dtypes.bool_)
        kind = PaddingFIFOQueue if dynamic_pad else FIFOQueue
        queues = [
            kind(
                limit,
                kinds,
                component_shapes,
                shared_name=f"{shared_name}_{number}" if shared_name else None,
                name=f"bucket_queue_{number}",
            )
            for number, limit in enumerate(limits)
        ]
        # Batches of other sizes, or smaller ones at the end, have no known size.
        is_open = allow_smaller_final_batch or isinstance(batch_size, list | tuple)
        size = None if is_open else get_static_value(convert_to_tensor(batch_size, dtypes.int32))
        batches = [Shape([None if size is None else int(size)]).concatenate(shape) for shape in component_shapes]
        top = PaddingFIFOQueue(capacity, [dtypes.int32, *kinds], [Shape([]), *batches], shared_name=shared_name, name="top_queue")
        put_in = group(*[enqueued_if(queue, row, equal(which, number) & keep, many=False) for number, queue in enumerate(queues)])
        moves = []
        for number, (queue, count) in enumerate(zip(queues, sizes, strict=True)):
            taken = (queue.dequeue_up_to if allow_smaller_final_batch else queue.dequeue_many)(count, f"read_bucket_{number}")
            moves.append(
                top.enqueue([constant(number), *([taken] if isinstance(taken, Tensor) else taken)], f"enqueue_from_bucket_{number}")
            )
        ends = (OutOfRangeError, CancelledError)
        add_queue_runner(QueueRunner(queues[0], moves, top.close(), top.close(cancel_pending_enqueues=True), ends))
        closes, cancels = ([queue.close(cancel_pending_enqueues=cancel) for queue in queues] for cancel in (False, True))
        add_queue_runner(QueueRunner(top, [put_in] * num_threads, group(*closes), group(*cancels), ends))
        for bucket_queue in queues:
            add_summary(f"bucket/{bucket_queue.name}/size", cast(bucket_queue.size(), dtypes.float32))
        add_summary(f"bucket/{top.name}/fraction_of_{capacity}_full", cast(top.size(), dtypes.float32) * (1.0 / capacity))
        number, *outputs = top.dequeue("dequeue_top")
        return number, _in_form_of(tensors, outputs)


def bucket_by_sequence_length(
    input_length: Any,
    tensors: Any,
    batch_size: Any,
    bucket_boundaries: Sequence[int],
    num_threads: int = 1,
    capacity: int = 32,
    bucket_capacities: Sequence[int] | None = None,
    shapes: Sequence[Any] | None = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    keep_input: Any = True,
    shared_name: str | None = None,
    name: str | None = None,
) -> tuple[Tensor, Any]:
    """Batches of elements of like lengths; see `bucket` for the other arguments.

    Args:
        input_length: the length of an element, int32, a scalar.
        tensors, num_threads, capacity, shapes, dynamic_pad, allow_smaller_final_batch, keep_input, shared_name, name: as of `bucket`.
        batch_size, bucket_capacities: one for each bucket, one more than there are boundaries; or one size.
        bucket_boundaries: the lengths at which the next bucket begins, ascending.

    Returns:
        The lengths of the elements in the batch, and the batch: a dict for a dict, else a list.

    Raises:
        InvalidArgumentError: the boundaries are no ascending whole numbers; or as `bucket`.
    """
    if not isinstance(bucket_boundaries, list | tuple) or not bucket_boundaries:
        raise InvalidArgumentError(f"bucket_boundaries must be a list or tuple, and not empty, but received: {bucket_boundaries!r}")
    for low, high in pairwise(bucket_boundaries):
        if not isinstance(low, int) or not isinstance(high, int):
            raise InvalidArgumentError(f"bucket boundaries must be integers, but saw: {low!r} and {high!r}")
        if low >= high:
            raise InvalidArgumentError(f"Buckets must contain sequential increasing lengths, but saw: {low} before {high}")
    with name_scope(name or "bucket_by_sequence_length"):
        length = convert_to_tensor(input_length, dtypes.int32)
        which = reduce_sum(cast(length >= constant(list(bucket_boundaries), dtypes.int32), dtypes.int32))
        _, (lengths, *outputs) = bucket(
            [length, *tensors_of(tensors)],
            which,
            batch_size,
            len(bucket_boundaries) + 1,
            num_threads,
            capacity,
            bucket_capacities,
            None if shapes is None else [Shape([]), *shapes],
            dynamic_pad,
            allow_smaller_final_batch,
            keep_input,
            shared_name,
        )
        return lengths, _in_form_of(tensors, outputs)


def _in_form_of(tensors: Any, outputs: Sequence[Tensor]) -> Any:
    """The outputs as a dict for a dict, else as a list."""
    if isinstance(tensors, dict):
        return dict(zip(sorted(tensors), outputs, strict=True))
    return list(outputs)
