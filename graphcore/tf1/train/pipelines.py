"""The pipelines of `tf.train`: producers of inputs, and batches, filled by threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphcore import dtypes
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor
from graphcore.shapes import Shape, as_shape
from graphcore.tf1.arrays.layout import expand_dims, identity, squeeze
from graphcore.tf1.arrays.layout import shape as shape_of
from graphcore.tf1.arrays.ranges import range as range_
from graphcore.tf1.arrays.slices import gather
from graphcore.tf1.calls import apply_one
from graphcore.tf1.framework import constant, control_dependencies, convert_to_tensor, name_scope
from graphcore.tf1.math.elementwise import cast, maximum
from graphcore.tf1.queues.queues import FIFOQueue, PaddingFIFOQueue, QueueBase, RandomShuffleQueue
from graphcore.tf1.random import shuffle as random_shuffle
from graphcore.tf1.train.queue_runners import QueueRunner, add_queue_runner
from graphcore.tf1.variables.collections import GraphKeys
from graphcore.tf1.variables.variables import Variable

__all__ = [
    "batch",
    "batch_join",
    "input_producer",
    "limit_epochs",
    "match_filenames_once",
    "range_input_producer",
    "shuffle_batch",
    "shuffle_batch_join",
    "slice_input_producer",
    "string_input_producer",
]


def match_filenames_once(pattern: Any, name: str | None = None) -> Variable:
    """A local variable with the names of the files that match a pattern when it is initialised."""
    with name_scope(name or "matching_filenames"):
        names = apply_one("MatchingFiles", [convert_to_tensor(pattern, dtypes.string)], None)
        return Variable(names, False, [GraphKeys.LOCAL_VARIABLES], validate_shape=False, name=name or "matching_filenames")


def limit_epochs(tensor: Any, num_epochs: int | None = None, name: str | None = None) -> Tensor:
    """`tensor` in the first `num_epochs` runs, OutOfRangeError afterwards; None sets no limit.

    The count is a local variable: run `gc.local_variables_initializer()`.
    """
    converted = convert_to_tensor(tensor)
    if num_epochs is None:
        return converted
    if num_epochs <= 0:
        raise InvalidArgumentError(f"num_epochs must be > 0 not {num_epochs}.")
    with name_scope(name or "limit_epochs") as scope:
        epochs = Variable(np.int64(0), False, [GraphKeys.LOCAL_VARIABLES], name="epochs")
        counted = apply_one("CountUpTo", [epochs.handle], None, {"limit": num_epochs})
        with control_dependencies([counted]):
            return identity(converted, scope)


def input_producer(
    input_tensor: Any,
    element_shape: Any = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    summary_name: str | None = None,
    name: str | None = None,
    cancel_op: Any = None,
) -> QueueBase:
    """A queue of the rows of a tensor, which a thread of `start_queue_runners` fills.

    Args:
        input_tensor: the rows, along the first dimension.
        element_shape: the shape of a row, if that of the tensor is not known.
        num_epochs: the number of passes, after which the queue is closed; None for no limit.
        shuffle: the rows in random order, another one in each pass.
        seed: of the order.
        capacity: of the queue.
        shared_name: queues with the same name are one.
        summary_name: the name of a scalar summary of the part of the queue that is full.
        name: the name of the queue.
        cancel_op: as of `QueueRunner`.

    Raises:
        InvalidArgumentError: the shape of a row is not known.
    """
    with name_scope(name or "input_producer") as scope:
        rows = convert_to_tensor(input_tensor, name="input_tensor")
        row_shape = Shape(None) if rows.shape.dims is None else Shape(rows.shape.dims[1:])
        element = row_shape.merge_with(as_shape(element_shape))
        if not element.is_fully_defined:
            raise InvalidArgumentError("Either `input_tensor` must have a fully defined shape or `element_shape` must be specified")
        if shuffle:
            rows = random_shuffle(rows, seed=seed)
        rows = limit_epochs(rows, num_epochs)
        queue = FIFOQueue(capacity, [rows.dtype.base], [element], shared_name=shared_name, name=scope)
        add_queue_runner(QueueRunner(queue, [queue.enqueue_many([rows])], cancel_op=cancel_op))
        if summary_name is not None:
            add_summary(summary_name, cast(queue.size(), dtypes.float32) * (1.0 / capacity))
        return queue


def string_input_producer(
    string_tensor: Any,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
    cancel_op: Any = None,
) -> QueueBase:
    """A queue of strings, such as the names of files; the arguments are those of `input_producer`.

    Raises:
        InvalidArgumentError: there are no strings.
    """
    message = "string_input_producer requires a non-null input tensor"
    if not isinstance(string_tensor, Tensor | Variable) and not len(string_tensor):
        raise InvalidArgumentError(message)
    with name_scope(name or "input_producer") as scope:
        strings = convert_to_tensor(string_tensor, dtypes.string)
        some = apply_one("Greater", [apply_one("Size", [strings], None), 0], None)
        checked = strings.graph.building().apply_op("Assert", [some, [constant(message)]])
        with control_dependencies([checked]):
            strings = identity(strings)
        return input_producer(
            strings, [], num_epochs, shuffle, seed, capacity, shared_name, f"fraction_of_{capacity}_full", scope, cancel_op
        )


def range_input_producer(
    limit: Any,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
) -> QueueBase:
    """A queue of the whole numbers below `limit`; see `input_producer`."""
    with name_scope(name or "input_producer") as scope:
        return input_producer(range_(limit), [], num_epochs, shuffle, seed, capacity, shared_name, f"fraction_of_{capacity}_full", scope)


def slice_input_producer(
    tensor_list: Sequence[Any],
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
) -> list[Tensor]:
    """One row of each tensor in a list; the other arguments are those of `input_producer`.

    Raises:
        InvalidArgumentError: the list is empty.
    """
    if not tensor_list:
        raise InvalidArgumentError("Expected at least one tensor in slice_input_producer().")
    with name_scope(name or "input_producer"):
        tensors = [convert_to_tensor(tensor) for tensor in tensor_list]
        count = shape_of(tensors[0])[0]
        index = range_input_producer(count, num_epochs, shuffle, seed, capacity, shared_name).dequeue()
        return [gather(tensor, index) for tensor in tensors]


def batch(
    tensors: Any,
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
    """Batches of elements, which threads of `start_queue_runners` put into a queue.

    Args:
        tensors: an element: a list or dict of tensors, or one.
        batch_size: the number of elements.
        num_threads: the number of threads.
        capacity: of the queue.
        enqueue_many: `tensors` are several elements, along their first dimensions.
        shapes: the shapes of elements, if those of the tensors are not known.
        dynamic_pad: pad elements of different sizes with zeros.
        allow_smaller_final_batch: give what is left at the end.
        shared_name: queues with the same name are one.
        name: the name scope.

    Returns:
        The batch: a dict for a dict, a list for several tensors, and a tensor for one, also in a list.

    Raises:
        InvalidArgumentError: shapes are not known.
    """
    with name_scope(name or "batch") as scope:
        return batched(
            scope, [tensors] * num_threads, batch_size, capacity, enqueue_many, shapes, dynamic_pad, allow_smaller_final_batch, shared_name
        )


def batch_join(
    tensors_list: Sequence[Any],
    batch_size: Any,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Sequence[Any] | None = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Like `batch`, of several elements that are made side by side, each by a thread of its own."""
    with name_scope(name or "batch_join") as scope:
        return batched(scope, tensors_list, batch_size, capacity, enqueue_many, shapes, dynamic_pad, allow_smaller_final_batch, shared_name)


def shuffle_batch(
    tensors: Any,
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Sequence[Any] | None = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Like `batch`, in random order.

    Args:
        tensors, batch_size, capacity, num_threads, enqueue_many, shapes, allow_smaller_final_batch, shared_name, name: as of `batch`.
        min_after_dequeue: the number of elements that stay in the queue for the choice.
        seed: of the choice.
    """
    with name_scope(name or "shuffle_batch") as scope:
        least = min_after_dequeue, seed
        return batched(
            scope, [tensors] * num_threads, batch_size, capacity, enqueue_many, shapes, False, allow_smaller_final_batch, shared_name, least
        )


def shuffle_batch_join(
    tensors_list: Sequence[Any],
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Sequence[Any] | None = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Like `shuffle_batch`, of several elements that are made side by side, each by a thread of its own."""
    with name_scope(name or "shuffle_batch_join") as scope:
        least = min_after_dequeue, seed
        return batched(
            scope, tensors_list, batch_size, capacity, enqueue_many, shapes, False, allow_smaller_final_batch, shared_name, least
        )


def batched(
    scope: str,
    elements: Sequence[Any],
    batch_size: Any,
    capacity: int,
    many: bool,
    shapes: Sequence[Any] | None,
    pads: bool,
    smaller: bool,
    shared_name: str | None,
    shuffling: tuple[int, int | None] | None = None,
    keep: Any = None,
) -> Any:
    """Batches of elements from one thread each.

    `shuffling` holds min_after_dequeue and the seed; `keep` says which elements are put in, None for all.
    """
    if not elements:
        raise InvalidArgumentError("Expected at least one set of tensors, got none")
    rows = [tensors_of(element) for element in elements]
    kinds = [tensor.dtype.base for tensor in rows[0]]
    if any([tensor.dtype.base for tensor in row] != kinds for row in rows):
        raise InvalidArgumentError("The elements that are joined have different dtypes")
    sizes = [as_shape(shape) for shape in shapes] if shapes is not None else common_shapes(rows, many=many)
    if not pads:
        for size in sizes:
            if not size.is_fully_defined:
                raise InvalidArgumentError(f"All shapes must be fully defined: {', '.join(map(str, sizes))}; set_shape declares one")
    queue: QueueBase
    if shuffling is None:
        queue = (PaddingFIFOQueue if pads else FIFOQueue)(capacity, kinds, sizes, shared_name=shared_name)
        add_summary(f"fraction_of_{capacity}_full", cast(queue.size(), dtypes.float32) * (1.0 / capacity))
    else:
        least, seed = shuffling
        queue = RandomShuffleQueue(capacity, least, kinds, sizes, seed=seed, shared_name=shared_name)
        over = maximum(0, queue.size() - least)
        add_summary(f"fraction_over_{least}_of_{capacity - least}_full", cast(over, dtypes.float32) * (1.0 / (capacity - least + 1e-8)))
    enqueued: dict[int, Any] = {}
    for element, row in zip(elements, rows, strict=True):
        if id(element) not in enqueued:
            enqueued[id(element)] = enqueued_if(queue, row, keep, many=many)
    add_queue_runner(QueueRunner(queue, [enqueued[id(element)] for element in elements]))
    taken = queue.dequeue_up_to(batch_size, scope) if smaller else queue.dequeue_many(batch_size, scope)
    outputs = [taken] if isinstance(taken, Tensor) else taken
    if isinstance(elements[0], dict):
        return dict(zip(sorted(elements[0]), outputs, strict=True))
    return outputs if len(outputs) > 1 else outputs[0]


def enqueued_if(queue: QueueBase, row: Sequence[Tensor], keep: Any, *, many: bool) -> Any:
    """The node that puts in an element, or several, as far as `keep` says so."""
    if keep is None:
        return queue.enqueue_many(row) if many else queue.enqueue(row)
    kept = convert_to_tensor(keep, dtypes.bool_)
    if kept.shape.rank is None or (kept.shape.rank and not many):
        raise InvalidArgumentError(f"keep_input: required a scalar, or a vector with enqueue_many, got shape {kept.shape}")
    if kept.shape.rank:
        places = squeeze(apply_one("Where", [kept], None), [1])
        return queue.enqueue_many([gather(component, places) for component in row])
    # With none of its rows, nothing is put in, and a full queue does not block.
    rows = list(row) if many else [expand_dims(component, 0) for component in row]
    none_or_all = cast(kept, dtypes.int32)
    return queue.enqueue_many([component[: shape_of(component)[0] * none_or_all] for component in rows])


def tensors_of(element: Any) -> list[Tensor]:
    """The tensors of an element, in the order of their keys if it is a dict."""
    components = [element[key] for key in sorted(element)] if isinstance(element, dict) else element
    listed = components if isinstance(components, list | tuple) else [components]
    if not listed:
        raise InvalidArgumentError("Expected at least one tensor in an element, got none")
    return [convert_to_tensor(component) for component in listed]


def common_shapes(rows: Sequence[Sequence[Tensor]], *, many: bool) -> list[Shape]:
    """The shapes of the components, as far as those of all elements agree."""
    common = []
    for column in zip(*rows, strict=True):
        shapes = [Shape(None) if tensor.shape.dims is None else Shape(tensor.shape.dims[1 if many else 0 :]) for tensor in column]
        first = shapes[0]
        for other in shapes[1:]:
            if first.dims is None or other.dims is None or len(first.dims) != len(other.dims):
                first = Shape(None)
            else:
                first = Shape([a if a == b else None for a, b in zip(first.dims, other.dims, strict=True)])
        common.append(first)
    return common


def add_summary(name: str, value: Tensor) -> None:
    """Add a scalar summary."""
    from graphcore.tf1.summary import scalar  # noqa: PLC0415 - it loads protobuf

    scalar(name, value)
