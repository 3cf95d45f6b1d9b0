"""`tf.FIFOQueue` and its relatives: queues of tuples of tensors between nodes and runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from graphcore import dtypes as types
from graphcore.dtypes import as_dtype
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Node, Tensor
from graphcore.graph.model.argument_errors import refuse
from graphcore.shapes import Shape, as_shape
from graphcore.tf1.calls import apply_one
from graphcore.tf1.framework import convert_to_tensor, name_scope
from graphcore.tf1.random import seed_attrs

__all__ = ["FIFOQueue", "PaddingFIFOQueue", "PriorityQueue", "QueueBase", "RandomShuffleQueue"]


class QueueBase:
    """A queue; its subclasses make one.

    Args:
        dtypes: the dtypes of the components of an element.
        shapes: their shapes; None for any.
        names: names for the components, which elements are then dicts of; None for tuples.
        queue_ref: the tensor with its handle.
    """

    def __init__(self, dtypes: Sequence[Any], shapes: Sequence[Any] | None, names: Sequence[str] | None, queue_ref: Tensor) -> None:
        self._dtypes = [as_dtype(dtype).base for dtype in dtypes]
        self._shapes = [Shape(None)] * len(self._dtypes) if shapes is None else [as_shape(shape) for shape in shapes]
        if len(self._shapes) != len(self._dtypes):
            raise InvalidArgumentError(f"Queue shapes must have the same length as dtypes, got {len(self._shapes)} and {len(self._dtypes)}")
        if names is not None and len(names) != len(self._dtypes):
            raise InvalidArgumentError(f"Queue names must have the same length as dtypes, got {len(names)} and {len(self._dtypes)}")
        self._names = None if names is None else list(names)
        self._queue_ref = queue_ref
        self._name = queue_ref.node.name.rpartition("/")[2]

    def __repr__(self) -> str:
        return f"<gc.{type(self).__name__} '{self.name}' of {', '.join([dtype.text for dtype in self._dtypes])}>"

    @staticmethod
    def from_list(index: Any, queues: Sequence[QueueBase]) -> QueueBase:
        """The queue with number `index` of several of one kind of elements, chosen at run time.

        Raises:
            InvalidArgumentError: they have other dtypes or names.
        """
        if not queues or not all(isinstance(queue, QueueBase) for queue in queues):
            refuse("queues", "a list of queues", queues)
        first = queues[0]
        if any(queue.dtypes != first.dtypes or queue.names != first.names for queue in queues):
            raise InvalidArgumentError("Queues do not have matching component dtypes and names.")
        handles = apply_one("Pack", [[queue.queue_ref for queue in queues]], None)
        chosen = apply_one("GatherV2", [handles, convert_to_tensor(index, types.int32), 0], None)
        return QueueBase(first.dtypes, None, first.names, chosen)

    @property
    def queue_ref(self) -> Tensor:
        """The tensor with its handle."""
        return self._queue_ref

    @property
    def name(self) -> str:
        """The name of its node."""
        return self._queue_ref.node.name

    @property
    def dtypes(self) -> list[types.DType]:
        """The dtypes of the components."""
        return self._dtypes

    @property
    def shapes(self) -> list[Shape]:
        """The shapes of the components."""
        return self._shapes

    @property
    def names(self) -> list[str] | None:
        """The names of the components; None for tuples."""
        return self._names

    def _values(self, vals: Any, *, many: bool) -> list[Tensor]:
        """The components of an element, or of several along their first dimensions."""
        if isinstance(vals, Mapping):
            if self._names is None or sorted(vals) != sorted(self._names):
                raise InvalidArgumentError(f"Keys in dictionary to enqueue do not match names of Queue: {sorted(vals)}, and {self._names}")
            components = [vals[name] for name in self._names]
        elif self._names is not None:
            raise InvalidArgumentError(f"You must enqueue a dictionary in a queue with names, {self._names}")
        else:
            components = list(vals) if isinstance(vals, list | tuple) else [vals]
        if len(components) != len(self._dtypes):
            raise InvalidArgumentError(f"Queue '{self.name}': required {len(self._dtypes)} components, got {len(components)}")
        tensors = [
            convert_to_tensor(value, dtype, f"component_{i}") for i, (value, dtype) in enumerate(zip(components, self._dtypes, strict=True))
        ]
        for tensor, shape in zip(tensors, self._shapes, strict=True):
            wanted = Shape([None]).concatenate(shape) if many else shape
            tensor.shape.assert_is_compatible_with(wanted)
        return tensors

    def _elements(self, outputs: Sequence[Tensor]) -> Any:
        if self._names is not None:
            return dict(zip(self._names, outputs, strict=True))
        return outputs[0] if len(outputs) == 1 else list(outputs)

    def _apply(self, op: str, inputs: Sequence[Any], attrs: Mapping[str, Any], name: str) -> Node:
        return self._queue_ref.graph.building().apply_op(op, [self._queue_ref, *inputs], attrs, name)

    def enqueue(self, vals: Any, name: str | None = None) -> Node:
        """A node that puts in an element, and waits for space.

        Args:
            vals: a tensor, a list of tensors, or a dict for a queue with names.
            name: the name of the node.
        """
        with name_scope(name or f"{self._name}_enqueue") as scope:
            return self._apply("QueueEnqueueV2", [self._values(vals, many=False)], {}, scope)

    def enqueue_many(self, vals: Any, name: str | None = None) -> Node:
        """A node that puts in the elements along the first dimension of tensors; see `enqueue`."""
        with name_scope(name or f"{self._name}_EnqueueMany") as scope:
            return self._apply("QueueEnqueueManyV2", [self._values(vals, many=True)], {}, scope)

    def dequeue(self, name: str | None = None) -> Any:
        """An element: a tensor, a list of tensors, or a dict. It is waited for; OutOfRangeError from a closed empty queue."""
        node = self._apply("QueueDequeueV2", [], {"component_types": self._dtypes}, name or f"{self._name}_Dequeue")
        return self._elements(node.outputs)

    def dequeue_many(self, n: Any, name: str | None = None) -> Any:
        """`n` elements along a new first dimension; OutOfRangeError if a closed queue has fewer."""
        node = self._apply("QueueDequeueManyV2", [n], {"component_types": self._dtypes}, name or f"{self._name}_DequeueMany")
        return self._elements(node.outputs)

    def dequeue_up_to(self, n: Any, name: str | None = None) -> Any:
        """Up to `n` elements along a new first dimension: fewer only from a closed queue."""
        node = self._apply("QueueDequeueUpToV2", [n], {"component_types": self._dtypes}, name or f"{self._name}_DequeueUpTo")
        return self._elements(node.outputs)

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Node:
        """A node that closes the queue: nothing can be put in any more, and what is in it can be taken out.

        Args:
            cancel_pending_enqueues: end enqueues that wait, with CancelledError.
            name: the name of the node.
        """
        attrs = {"cancel_pending_enqueues": cancel_pending_enqueues}
        return self._apply("QueueCloseV2", [], attrs, name or f"{self._name}_Close")

    def is_closed(self, name: str | None = None) -> Tensor:
        """True if the queue is closed, a bool scalar."""
        return self._apply("QueueIsClosedV2", [], {}, name or f"{self._name}_Is_Closed").outputs[0]

    def size(self, name: str | None = None) -> Tensor:
        """The number of elements, an int32 scalar."""
        return self._apply("QueueSizeV2", [], {}, name or f"{self._name}_Size").outputs[0]

    @classmethod
    def _made(
        cls: type[Self], op: str, dtypes: Any, shapes: Any, names: Any, attrs: Mapping[str, Any], shared_name: str | None, name: str
    ) -> tuple[list[Any], list[Any] | None, list[str] | None, Tensor]:
        """The arguments of `QueueBase`, with a new node."""
        kinds = [as_dtype(dtype).base for dtype in (dtypes if isinstance(dtypes, list | tuple) else [dtypes])]
        sizes = None if shapes is None else _shapes(shapes, len(kinds))
        labels = [names] if isinstance(names, str) else names
        declared = {"component_types": kinds, "shapes": sizes or [], "shared_name": shared_name or "", **attrs}
        return kinds, sizes, labels, apply_one(op, [], name, declared)


def _shapes(shapes: Any, count: int) -> list[Shape]:
    """A shape for each component; for one component it may stand alone."""
    try:
        if count == 1 and not (isinstance(shapes, list | tuple) and len(shapes) == 1 and isinstance(shapes[0], list | tuple | Shape)):
            return [as_shape(shapes)]
    except InvalidArgumentError:
        pass
    return [as_shape(shape) for shape in shapes]


class FIFOQueue(QueueBase):
    """A queue of elements in the order of insertion.

    Args:
        capacity: the most elements.
        dtypes: the dtypes of the components, or one.
        shapes: their full shapes, or one; needed to take out several elements together.
        names: names for the components.
        shared_name: queues with the same name are one.
        name: the name of the node.
    """

    def __init__(
        self, capacity: int, dtypes: Any, shapes: Any = None, names: Any = None, shared_name: str | None = None, name: str = "fifo_queue"
    ) -> None:
        super().__init__(*self._made("FIFOQueueV2", dtypes, shapes, names, {"capacity": capacity}, shared_name, name))


class RandomShuffleQueue(QueueBase):
    """A queue that gives its elements in random order.

    Args:
        capacity, dtypes, shapes, names, shared_name, name: as of `FIFOQueue`.
        min_after_dequeue: the number of elements that stay in it for the choice, until it is closed.
        seed: of the choice.
    """

    def __init__(
        self,
        capacity: int,
        min_after_dequeue: int,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        seed: int | None = None,
        shared_name: str | None = None,
        name: str = "random_shuffle_queue",
    ) -> None:
        attrs = {"capacity": capacity, "min_after_dequeue": min_after_dequeue, **seed_attrs(seed)}
        super().__init__(*self._made("RandomShuffleQueueV2", dtypes, shapes, names, attrs, shared_name, name))


class PaddingFIFOQueue(QueueBase):
    """A queue of elements of different sizes, which are padded with zeros in batches.

    Args:
        capacity, dtypes, names, shared_name, name: as of `FIFOQueue`.
        shapes: the shapes of the components, None for sizes that differ.
    """

    def __init__(
        self, capacity: int, dtypes: Any, shapes: Any, names: Any = None, shared_name: str | None = None, name: str = "padding_fifo_queue"
    ) -> None:
        super().__init__(*self._made("PaddingFIFOQueueV2", dtypes, shapes, names, {"capacity": capacity}, shared_name, name))


class PriorityQueue(QueueBase):
    """A queue of elements with a priority (an int64, the first component), the smallest first.

    Args:
        capacity, shapes, names, shared_name, name: as of `FIFOQueue`; shapes and names without the priority.
        types: the dtypes of the components after the priority.
    """

    def __init__(
        self, capacity: int, types: Any, shapes: Any = None, names: Any = None, shared_name: str | None = None, name: str = "priority_queue"
    ) -> None:
        kinds, sizes, labels, handle = self._made("PriorityQueueV2", types, shapes, names, {"capacity": capacity}, shared_name, name)
        all_sizes = None if sizes is None else [Shape([]), *sizes]
        super().__init__(["int64", *kinds], all_sizes, None if labels is None else ["priority", *labels], handle)
