"""The older forms of the queue ops, with queues as references, whose components have no known shapes."""

from __future__ import annotations

from typing import Final

from graphcore.inference import InferenceContext
from graphcore.inference.shape_fns.common_shape_fns import unknown_shape
from graphcore.opset.framework.block import NO_GRADIENT, op
from graphcore.opset.framework.families import Storing
from graphcore.opset.state.queue_uses import (
    QueueCloseV2,
    QueueDequeueManyV2,
    QueueDequeueUpToV2,
    QueueDequeueV2,
    QueueEnqueueManyV2,
    QueueEnqueueV2,
    QueueIsClosedV2,
    QueueSizeV2,
)
from graphcore.opset.state.queues import FIFOQueueV2, PaddingFIFOQueueV2, RandomShuffleQueueV2, reference_kernel

_RESOURCE: Final = "handle:resource"


def _older(signature: str) -> str:
    return signature.replace("V2", "", 1).replace(_RESOURCE, "handle:Ref(string)")


def _reference_shape(c: InferenceContext) -> None:
    c.set_output(0, c.vector(2))


@op
class FIFOQueue:
    """A queue of elements in the order of insertion (FIFOQueueV2 is the newer form)."""

    signature = _older(FIFOQueueV2.signature)
    stateful = True
    shape = _reference_shape
    kernel = reference_kernel
    gradient = FIFOQueueV2.gradient
    examples = FIFOQueueV2.examples


@op
class PaddingFIFOQueue:
    """A FIFO queue that pads elements dequeued together (PaddingFIFOQueueV2 is the newer form)."""

    signature = _older(PaddingFIFOQueueV2.signature)
    stateful = True
    shape = _reference_shape
    kernel = reference_kernel
    gradient = PaddingFIFOQueueV2.gradient
    examples = PaddingFIFOQueueV2.examples


@op
class RandomShuffleQueue:
    """A queue of elements in random order (RandomShuffleQueueV2 is the newer form)."""

    signature = _older(RandomShuffleQueueV2.signature)
    stateful = True
    shape = _reference_shape
    kernel = reference_kernel
    gradient = RandomShuffleQueueV2.gradient
    examples = RandomShuffleQueueV2.examples


@op
class QueueEnqueue(Storing):
    """Enqueues one element (QueueEnqueueV2 is the newer form)."""

    signature = _older(QueueEnqueueV2.signature)
    waits = True
    shape = QueueEnqueueV2.shape
    kernel = QueueEnqueueV2.kernel
    gradient = NO_GRADIENT
    examples = QueueEnqueueV2.examples


@op
class QueueEnqueueMany(Storing):
    """Enqueues the rows of the components (QueueEnqueueManyV2 is the newer form)."""

    signature = _older(QueueEnqueueManyV2.signature)
    waits = True
    shape = QueueEnqueueManyV2.shape
    kernel = QueueEnqueueManyV2.kernel
    gradient = NO_GRADIENT
    examples = QueueEnqueueManyV2.examples


@op
class QueueDequeue(Storing):
    """Dequeues one element (QueueDequeueV2 is the newer form)."""

    signature = _older(QueueDequeueV2.signature)
    waits = True
    shape = unknown_shape
    kernel = QueueDequeueV2.kernel
    gradient = NO_GRADIENT
    examples = QueueDequeueV2.examples


@op
class QueueDequeueMany(Storing):
    """Dequeues `n` elements (QueueDequeueManyV2 is the newer form)."""

    signature = _older(QueueDequeueManyV2.signature)
    waits = True
    shape = unknown_shape
    kernel = QueueDequeueManyV2.kernel
    gradient = NO_GRADIENT
    examples = QueueDequeueManyV2.examples


@op
class QueueDequeueUpTo(Storing):
    """Dequeues up to `n` elements (QueueDequeueUpToV2 is the newer form)."""

    signature = _older(QueueDequeueUpToV2.signature)
    waits = True
    shape = unknown_shape
    kernel = QueueDequeueUpToV2.kernel
    gradient = NO_GRADIENT
    examples = QueueDequeueUpToV2.examples


@op
class QueueClose(Storing):
    """Closes a queue (QueueCloseV2 is the newer form)."""

    signature = _older(QueueCloseV2.signature)
    waits = True
    shape = QueueCloseV2.shape
    kernel = QueueCloseV2.kernel
    gradient = NO_GRADIENT
    examples = QueueCloseV2.examples


@op
class QueueIsClosed(Storing):
    """True if the queue is closed (QueueIsClosedV2 is the newer form)."""

    signature = _older(QueueIsClosedV2.signature)
    shape = QueueIsClosedV2.shape
    kernel = QueueIsClosedV2.kernel
    gradient = QueueIsClosedV2.gradient
    examples = QueueIsClosedV2.examples


@op
class QueueSize(Storing):
    """The number of elements in a queue (QueueSizeV2 is the newer form)."""

    signature = _older(QueueSizeV2.signature)
    shape = QueueSizeV2.shape
    kernel = QueueSizeV2.kernel
    gradient = NO_GRADIENT
    examples = QueueSizeV2.examples
