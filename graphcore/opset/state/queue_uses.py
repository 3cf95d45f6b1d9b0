"""Ops that use queues: they enqueue and dequeue tuples of tensors, and wait if necessary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from graphcore.dtypes import DType, string
from graphcore.errors import InvalidArgumentError
from graphcore.inference import ShapeHandle
from graphcore.inference.shape_fns.common_shape_fns import no_outputs, scalar_shape
from graphcore.kernel_context import Pending, owned
from graphcore.opset.framework.block import Example, InferenceContext, Kernel, KernelContext, op
from graphcore.opset.framework.families import Storing
from graphcore.opset.framework.gradient_text import scalar, vector
from graphcore.opset.framework.kernels import invalid, one_int
from graphcore.opset.numerics.queue_values import Close, Dequeue, Element, Enqueue, Queue, QueueSpec, Sizes, agrees, shown_sizes, type_names
from graphcore.opset.state.queues import NO_GRADIENT_OF_QUEUES, QueueReference, refused_by, types_attr
from graphcore.registry import KernelFactory

ROWS: Final = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
_ROW: Final = [7.0, 8.0]
_QUEUE: Final = f"""
    three = {vector("float", 1, 2, 3)}
    n = {scalar("int32", 2)}
    queue = FIFOQueueV2[component_types={{float}}, shapes=[[2]]]()
"""
_CLOSED: Final = f"{_QUEUE}closed = QueueCloseV2(queue)\n"
NO_QUEUE: Final = "variable = VarHandleOp[dtype=string, shape=[2]]()\n"
"""The handle of a variable, for uses that fail."""


def queue_behind(k: KernelContext, handle: Any) -> Queue:
    """The queue of a handle or reference.

    Raises:
        InvalidArgumentError: it is none of a queue.
    """
    queue = handle.queue if isinstance(handle, QueueReference) else handle
    if not isinstance(queue, Queue):
        raise invalid(k, f"required the handle of a queue, got {type(queue).__name__}")
    return queue


def _check_timeout(k: KernelContext) -> None:
    if k.attr("timeout_ms") != -1:
        raise refused_by(k, "Timeout not supported yet.")


def _typed(k: KernelContext, handle: Any, types: Sequence[DType], *, enters: bool) -> Queue:
    """The queue, after a check that its components are of `types`."""
    queue = queue_behind(k, handle)
    if queue.spec.dtypes == types:
        return queue
    texts = []
    for components in (types, queue.spec.dtypes):
        others = k.input_types[: 1 if enters else None]
        enqueued, returned = ((*others, *components), ()) if enters else (others, components)
        texts.append(f"{type_names(enqueued)}->{type_names(returned)}")
    raise InvalidArgumentError(f"Signature mismatch, have: {texts[0]} expected: {texts[1]}")


def _kept(value: Any, dtype: DType) -> Any:
    """A value for a queue: an array that no other code may change."""
    if dtype.as_numpy is None:
        return value
    if isinstance(value, np.generic | bytes | str):
        value = np.asarray(value, np.object_ if dtype is string else None)
    return owned(value)


def _wrong_shape(place: int, wanted: Sizes, value: Any) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"Shape mismatch in tuple component {place}. Expected {shown_sizes(wanted)}, got {shown_sizes(np.shape(value))}"
    )


def _element(spec: QueueSpec, values: Sequence[Any]) -> list[Element]:
    """The single element made of `values`."""
    for place, (wanted, value) in enumerate(zip(spec.shapes, values, strict=False)):
        if not agrees(wanted, np.shape(value)):
            raise _wrong_shape(place, wanted, value)
    return [tuple([_kept(value, dtype) for value, dtype in zip(values, spec.dtypes, strict=True)])]


def _elements(spec: QueueSpec, values: Sequence[Any]) -> list[Element]:
    """The elements along the first dimension of `values`."""
    counts = [np.shape(value)[0] if np.shape(value) else None for value in values]
    count = counts[0]
    for place, (sizes, value) in enumerate(zip(spec.shapes, values, strict=False)):
        if counts[place] is None or not agrees((count, *sizes), np.shape(value)):
            raise _wrong_shape(place, (count, *sizes), value)
    for place, size in enumerate(counts):
        if size is None or size != count:
            has = "no dimensions" if size is None else size
            text = f"All input tensors must have the same size in the 0th dimension. Component {place} has {has}"
            raise InvalidArgumentError(text if count is None else f"{text}, and should have {count}")
    return [tuple([_kept(value[i], dtype) for value, dtype in zip(values, spec.dtypes, strict=True)]) for i in range(count or 0)]


def _enqueue(*, many: bool) -> KernelFactory:
    def kernel(k: KernelContext) -> Kernel:
        _check_timeout(k)
        types, split = types_attr(k, "Tcomponents"), _elements if many else _element

        def enqueue(handle: Any, *values: Any) -> Pending:
            queue = _typed(k, handle, types, enters=True)
            return Enqueue(queue, split(queue.spec, values))

        return enqueue

    return kernel


def _single(elements: Sequence[Element]) -> Element:
    return elements[0]


def _dequeue(k: KernelContext) -> Kernel:
    _check_timeout(k)
    types = types_attr(k)

    def dequeue(handle: Any) -> Pending:
        queue = _typed(k, handle, types, enters=False)
        return Dequeue(queue, 1, _single, queue.single)

    return dequeue


def _dequeue_many(*, up_to: bool) -> KernelFactory:
    def kernel(k: KernelContext) -> Kernel:
        _check_timeout(k)
        types, xp = types_attr(k), k.xp

        def dequeue(handle: Any, n: Any) -> Pending:
            count = one_int(k, n)
            if count < 0:
                raise InvalidArgumentError(f"Dequeue{'UpTo' if up_to else 'Many'}Op requested {count} < 0 elements")
            queue = _typed(k, handle, types, enters=False)
            spec = queue.spec
            if not spec.shapes:
                raise InvalidArgumentError(f"{spec.kind}'s DequeueMany and DequeueUpTo require the components to have specified shapes.")
            return Dequeue(queue, count, lambda elements: _batched(xp, spec, elements), spec.kind, up_to=up_to)

        return dequeue

    return kernel


def _batched(xp: Any, spec: QueueSpec, elements: Sequence[Element]) -> tuple[Any, ...]:
    """The components of `elements`, stacked along a first dimension."""
    batches = []
    for place, (sizes, dtype) in enumerate(zip(spec.shapes, spec.dtypes, strict=True)):
        rows = [element[place] for element in elements]
        if not rows:
            batches.append(xp.zeros((0, *[size or 0 for size in sizes]), dtype.as_numpy or np.object_))
        elif None in sizes:
            batches.append(_padded(xp, rows, dtype))
        else:
            batches.append(xp.stack(rows))
    return tuple(batches)


def _padded(xp: Any, rows: Sequence[Any], dtype: DType) -> Any:
    """Rows of one rank, padded with zeros or empty strings to the largest of each dimension."""
    sizes = [max(along) for along in zip(*[row.shape for row in rows], strict=True)]
    padded = xp.full((len(rows), *sizes), b"", np.object_) if dtype is string else xp.zeros((len(rows), *sizes), dtype.as_numpy)
    for i, row in enumerate(rows):
        padded[(i, *[slice(size) for size in row.shape])] = row
    return padded


def _element_shapes(c: InferenceContext, batch: ShapeHandle) -> None:
    data = c.input_handle_shapes_and_types(0)
    element_data = data if data is not None and len(data) == c.num_outputs else None
    for i in range(c.num_outputs):
        c.set_output(i, c.unknown_shape() if element_data is None else c.concatenate(batch, element_data[i].shape))


def _one_shape(c: InferenceContext) -> None:
    _element_shapes(c, c.scalar())


def _many_shape(c: InferenceContext) -> None:
    n = c.input_tensor(1)
    if n is None or n.size != 1:
        return _element_shapes(c, c.vector(c.unknown_dim()))
    if n.item() < 0:
        raise InvalidArgumentError(f"Input 'n' must be >= 0, but is {n.item()}")
    return _element_shapes(c, c.vector(c.make_dim(n.item())))


def _up_to_shape(c: InferenceContext) -> None:
    _element_shapes(c, c.vector(c.unknown_dim()))


@op
class QueueEnqueueV2(Storing):
    """Enqueues one element, as soon as there is space.

    handle: the queue
    components: the element
    timeout_ms: must be -1, for no limit.
    """

    signature = "QueueEnqueueV2[Tcomponents:list(type) >= 1, timeout_ms:int = -1](handle:resource, components:Tcomponents) -> ()"
    stateful = True
    waits = True
    shape = no_outputs
    device_types = ("CPU",)
    kernel = _enqueue(many=False)
    gradient = NO_GRADIENT_OF_QUEUES
    examples = (Example([ROWS, [_ROW]]),)
    failures = (_QUEUE + "enqueue = QueueEnqueueV2[Tcomponents={float}](queue, three)",)


@op
class QueueEnqueueManyV2(Storing):
    """Enqueues the rows of the components in order, each as soon as there is space.

    handle: the queue
    components: the elements, along the first dimension
    timeout_ms: must be -1, for no limit.
    """

    signature = "QueueEnqueueManyV2[Tcomponents:list(type) >= 1, timeout_ms:int = -1](handle:resource, components:Tcomponents) -> ()"
    stateful = True
    waits = True
    shape = no_outputs
    device_types = ("CPU",)
    kernel = _enqueue(many=True)
    gradient = NO_GRADIENT_OF_QUEUES
    examples = (Example([ROWS, [[_ROW, _ROW]]]),)
    failures = (_QUEUE + "enqueue = QueueEnqueueManyV2[Tcomponents={float}](queue, three)",)


@op
class QueueDequeueV2(Storing):
    """Dequeues one element, as soon as there is one.

    handle: the queue
    components: the element
    timeout_ms: must be -1, for no limit.
    """

    signature = "QueueDequeueV2[component_types:list(type) >= 1, timeout_ms:int = -1](handle:resource) -> (components:component_types)"
    stateful = True
    waits = True
    shape = _one_shape
    device_types = ("CPU",)
    kernel = _dequeue
    gradient = NO_GRADIENT_OF_QUEUES
    examples = (Example([ROWS], {"component_types": ["float"]}),)
    failures = (_CLOSED + "dequeue = QueueDequeueV2[component_types={float}](queue) @ closed",)


@op
class QueueDequeueManyV2(Storing):
    """Dequeues `n` elements as they become available; fails if a closed queue has fewer.

    handle: the queue
    n: the number of elements, a scalar
    components: the elements, along a new first dimension
    timeout_ms: must be -1, for no limit.
    """

    signature = (
        "QueueDequeueManyV2[component_types:list(type) >= 1, timeout_ms:int = -1](handle:resource, n:int32) -> (components:component_types)"
    )
    stateful = True
    waits = True
    shape = _many_shape
    device_types = ("CPU",)
    kernel = _dequeue_many(up_to=False)
    gradient = NO_GRADIENT_OF_QUEUES
    examples = (Example([ROWS, 2], {"component_types": ["float"]}),)
    failures = (_CLOSED + "dequeue = QueueDequeueManyV2[component_types={float}](queue, n) @ closed",)


@op
class QueueDequeueUpToV2(Storing):
    """Dequeues up to `n` elements: fewer only from a closed queue; fails if that is empty.

    handle: the queue
    n: the most elements, a scalar
    components: the elements, along a new first dimension
    timeout_ms: must be -1, for no limit.
    """

    signature = (
        "QueueDequeueUpToV2[component_types:list(type) >= 1, timeout_ms:int = -1](handle:resource, n:int32) -> (components:component_types)"
    )
    stateful = True
    waits = True
    shape = _up_to_shape
    device_types = ("CPU",)
    kernel = _dequeue_many(up_to=True)
    gradient = NO_GRADIENT_OF_QUEUES
    examples = (Example([ROWS, 2], {"component_types": ["float"]}),)
    failures = (_CLOSED + "dequeue = QueueDequeueUpToV2[component_types={float}](queue, n) @ closed",)


@op
class QueueCloseV2:
    """Closes a queue for further enqueues, after waiting for pending ones.

    handle: the queue
    cancel_pending_enqueues: if true, pending ones are cancelled instead.
    """

    signature = "QueueCloseV2[cancel_pending_enqueues:bool = false](handle:resource) -> ()"
    stateful = True
    waits = True
    device_types = ("CPU",)
    shape = no_outputs
    gradient = NO_GRADIENT_OF_QUEUES
    examples = (Example([ROWS]),)
    failures = (_CLOSED + "again = QueueCloseV2(queue) @ closed",)

    def kernel(k: KernelContext) -> Kernel:
        at_once = bool(k.attr("cancel_pending_enqueues"))
        return lambda handle: Close(queue_behind(k, handle), at_once=at_once)


@op
class QueueIsClosedV2:
    """True if the queue is closed.

    handle: the queue
    """

    signature = "QueueIsClosedV2(handle:resource) -> (is_closed:bool)"
    stateful = True
    device_types = ("CPU",)
    shape = scalar_shape
    gradient = NO_GRADIENT_OF_QUEUES
    examples = (Example([ROWS], outputs=[False]),)
    failures = (NO_QUEUE + "is_closed = QueueIsClosedV2(variable)",)

    def kernel(k: KernelContext) -> Kernel:
        return lambda handle: np.bool_(queue_behind(k, handle).closed)


@op
class QueueSizeV2:
    """The number of elements in a queue.

    handle: the queue
    """

    signature = "QueueSizeV2(handle:resource) -> (size:int32)"
    stateful = True
    device_types = ("CPU",)
    shape = scalar_shape
    gradient = NO_GRADIENT_OF_QUEUES
    examples = (Example([ROWS], outputs=[3]),)
    failures = (NO_QUEUE + "size = QueueSizeV2(variable)",)

    def kernel(k: KernelContext) -> Kernel:
        return lambda handle: np.int32(queue_behind(k, handle).size)
