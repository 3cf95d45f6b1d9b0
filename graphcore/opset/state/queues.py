"""The queues of a session, which pass tuples of tensors between nodes and runs. See also `queue_uses`."""

from __future__ import annotations

from typing import Final

import numpy as np

from graphcore.attrs import attr_text
from graphcore.dtypes import DType, int64, string
from graphcore.errors import InvalidArgumentError
from graphcore.inference import ShapeAndType
from graphcore.kernel_context import RefVariable
from graphcore.opset.framework.block import Example, InferenceContext, Kernel, KernelContext, no_registered_gradient, op
from graphcore.opset.numerics.queue_values import UNBOUNDED, PriorityQueue, Queue, QueueSpec, ShuffleQueue, mismatch, type_names
from graphcore.shapes import Shape
from graphcore.traits import declares_traits

NO_GRADIENT_OF_QUEUES: Final = no_registered_gradient("what a queue gives depends on other runs; differentiate what is put into it")
_DECLARED: Final = "component_types:list(type) >= 1, shapes:list(shape) >= 0 = [], capacity:int = -1"
_NAMES: Final = "container:string = '', shared_name:string = ''"
_OF_FLOATS: Final = {"component_types": ["float"], "shapes": [Shape([2])]}


class QueueReference(RefVariable):
    """The reference to a queue, for the older forms of the ops."""

    __slots__ = ("queue",)

    def __init__(self, queue: Queue, container: str) -> None:
        super().__init__(queue.name, string, Shape([2]), None, queue.op)
        self.queue = queue
        self.assign(np.array([(container or "localhost").encode(), queue.name.encode()], np.object_))


def types_attr(k: KernelContext | InferenceContext, attr: str = "component_types") -> tuple[DType, ...]:
    """The types in an attr."""
    value = k.attr(attr)
    return tuple([item for item in value if isinstance(item, DType)]) if isinstance(value, tuple) else ()


def refused_by(k: KernelContext, text: str) -> InvalidArgumentError:
    """The error for an invalid declaration, in TensorFlow's words."""
    return InvalidArgumentError(text, op=k.op, node=k.node_name, source=k.source)


def _shapes(k: KernelContext | InferenceContext) -> list[Shape]:
    value = k.attr("shapes")
    return [item for item in value if isinstance(item, Shape)] if isinstance(value, tuple) else []


def queue_shape(c: InferenceContext) -> None:
    """A scalar handle with handle data: shapes and types of the components."""
    c.set_output(0, c.scalar())
    types, shapes = _with_priority(c, types_attr(c), _shapes(c))
    if len(shapes) != len(types):
        shapes = [Shape(None)] * len(types)
    data = [ShapeAndType(c.make_shape_from_shape(shape), dtype) for shape, dtype in zip(shapes, types, strict=True)]
    c.set_output_handle_shapes_and_types(0, data)


def _with_priority(
    k: KernelContext | InferenceContext, types: tuple[DType, ...], shapes: list[Shape]
) -> tuple[tuple[DType, ...], list[Shape]]:
    """The types and shapes of all components, with the priority that a PriorityQueue adds in front."""
    if k.op != "PriorityQueueV2":
        return types, shapes
    return (int64, *types), [Shape([]), *shapes] if len(shapes) == len(types) else shapes


def _spec(k: KernelContext) -> QueueSpec:
    """The declaration of a node.

    Raises:
        InvalidArgumentError: it is invalid.
    """
    kind = k.op.removesuffix("V2")
    types, shapes = _with_priority(k, types_attr(k), _shapes(k))
    capacity = _int(k, "capacity")
    if kind == "PaddingFIFOQueue":
        if len(shapes) != len(types):
            text = f"Shapes must be provided for all components, but received {len(types)} dtypes and {len(shapes)} shapes."
            raise refused_by(k, text)
        if any(shape.dims is None for shape in shapes):
            raise refused_by(k, "shape <unknown> must have known rank.")
    elif shapes and len(shapes) != len(types):
        listed = ", ".join([str(shape) for shape in shapes])
        raise refused_by(k, f"Different number of component types.  Types: {type_names(types)}, Shapes: [{listed}]")
    else:
        for shape in shapes:
            if not shape.is_fully_defined:
                raise refused_by(k, f"Shape {shape} is not fully defined")
    spec = QueueSpec(kind, types, tuple([shape.dims or () for shape in shapes]), UNBOUNDED if capacity < 0 else capacity)
    return spec if kind != "RandomShuffleQueue" else _shuffling(k, spec)


def _shuffling(k: KernelContext, spec: QueueSpec) -> QueueSpec:
    least = _int(k, "min_after_dequeue")
    if least < 0:
        raise refused_by(k, f"min_after_dequeue {least} must be >= 0")
    if least >= spec.capacity:
        raise refused_by(k, f"min_after_dequeue {least} must be < capacity {spec.capacity}")
    return QueueSpec(spec.kind, spec.dtypes, spec.shapes, spec.capacity, least, (_int(k, "seed"), _int(k, "seed2")))


def _int(k: KernelContext, attr: str) -> int:
    value = k.attr(attr)
    assert isinstance(value, int)
    return value


@declares_traits(device_types=("CPU",))
def queue_kernel(k: KernelContext) -> Kernel:
    """The kernel that finds or makes a queue: shared by name, otherwise the node's own."""
    spec, container, shared_name = _spec(k), attr_text(k.attr("container")), attr_text(k.attr("shared_name"))
    op_name, node, shared, resources = k.op, k.node_name, k.resources.shared, k.resources
    make_queue = {"RandomShuffleQueue": ShuffleQueue, "PriorityQueue": PriorityQueue}.get(spec.kind, Queue)
    key = shared_name or (resources, node)  # inside a function, a node differs from those of the same name elsewhere

    def make(number: int) -> Queue:
        return make_queue(shared_name or f"_{number}_{node}", spec, op_name)

    def find() -> Queue:
        queue = shared.find(container, key, node, make, lambda queue: queue.spec == spec)
        assert isinstance(queue, Queue)
        refused = mismatch(queue, spec, op_name)
        if refused is not None:
            raise refused
        return queue

    return find


def reference_kernel(k: KernelContext) -> Kernel:
    """The kernel of the older forms."""
    find, container = queue_kernel(k), attr_text(k.attr("container"))
    return lambda: QueueReference(find(), container)


@op
class FIFOQueueV2:
    """A queue of elements in the order of insertion, with the lifetime of the session.

    handle: the queue
    component_types: the types of the components of an element.
    shapes: their shapes; empty for any shapes.
    capacity: the most elements; negative for any number.
    container: a namespace for `shared_name`.
    shared_name: nodes with the same shared name share a queue; empty for a private one.
    """

    signature = f"FIFOQueueV2[{_DECLARED}, {_NAMES}]() -> (handle:resource)"
    stateful = True
    shape = queue_shape
    kernel = queue_kernel
    gradient = NO_GRADIENT_OF_QUEUES
    examples = (Example([], _OF_FLOATS),)
    failures = (Example([], {"component_types": ["float"], "shapes": [Shape([None])]}),)


@op
class PaddingFIFOQueueV2:
    """A FIFO queue of elements of different sizes in unknown dimensions, dequeued with zero padding.

    handle: the queue
    component_types: the types of the components of an element.
    shapes: their shapes, of known rank.
    capacity: the most elements; negative for any number.
    container: a namespace for `shared_name`.
    shared_name: nodes with the same shared name share a queue; empty for a private one.
    """

    signature = f"PaddingFIFOQueueV2[{_DECLARED}, {_NAMES}]() -> (handle:resource)"
    stateful = True
    shape = queue_shape
    kernel = queue_kernel
    gradient = NO_GRADIENT_OF_QUEUES
    examples = (Example([], {"component_types": ["float"], "shapes": [Shape([None, 2])]}),)
    failures = (Example([], {"component_types": ["float"]}),)


@op
class PriorityQueueV2:
    """A queue of elements with a priority (an int64, the first component), the smallest first.

    handle: the queue
    component_types: the types of the components after the priority.
    shapes: their shapes; empty for any shapes.
    capacity: the most elements; negative for any number.
    container: a namespace for `shared_name`.
    shared_name: nodes with the same shared name share a queue; empty for a private one.
    """

    signature = f"PriorityQueueV2[component_types:list(type) >= 0 = [], shapes:list(shape) >= 0, capacity:int = -1, {_NAMES}]() -> (handle:resource)"
    stateful = True
    shape = queue_shape
    kernel = queue_kernel
    gradient = NO_GRADIENT_OF_QUEUES
    examples = (Example([], _OF_FLOATS),)
    failures = (Example([], {"component_types": ["float"], "shapes": [Shape([None])]}),)


@op
class RandomShuffleQueueV2:
    """A queue of elements in random order, with the lifetime of the session.

    handle: the queue
    component_types: the types of the components of an element.
    shapes: their shapes; empty for any shapes.
    capacity: the most elements; negative for any number.
    min_after_dequeue: the number of elements kept, for a random choice, until the queue is closed.
    seed, seed2: the seeds of the random numbers; both 0 for random ones.
    container: a namespace for `shared_name`.
    shared_name: nodes with the same shared name share a queue; empty for a private one.
    """

    signature = (
        f"RandomShuffleQueueV2[{_DECLARED}, min_after_dequeue:int = 0, seed:int = 0, seed2:int = 0, {_NAMES}]() -> (handle:resource)"
    )
    stateful = True
    shape = queue_shape
    kernel = queue_kernel
    gradient = NO_GRADIENT_OF_QUEUES
    examples = (Example([], {**_OF_FLOATS, "seed": 3, "seed2": 5}),)
    failures = (Example([], {**_OF_FLOATS, "min_after_dequeue": -1}),)
