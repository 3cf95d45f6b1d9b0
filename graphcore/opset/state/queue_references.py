"""The older forms of the queue ops: queues are references, and components have unknown shapes."""

from __future__ import annotations

from typing import Any, Final

from graphcore.inference import InferenceContext
from graphcore.inference.shape_fns.common_shape_fns import unknown_shape
from graphcore.opset.framework.block import NO_GRADIENT, define_op
from graphcore.opset.state.queue_uses import (
    NO_QUEUE,
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

_NO_QUEUE: Final = NO_QUEUE.replace("VarHandleOp", "Variable")


def _older(newer: Any, summary: str, **parts: Any) -> None:
    """Register the older form of an op, with the parts of the newer one unless others are given.

    Args:
        newer: the block of the newer form.
        summary: the beginning of the docstring.
        parts: the parts that differ.
    """
    name = newer.__name__.removesuffix("V2")
    failures = [use.replace(NO_QUEUE, _NO_QUEUE).replace("V2", "") if isinstance(use, str) else use for use in newer.failures]
    signature = newer.signature.replace("V2", "", 1).replace("handle:resource", "handle:Ref(string)")
    define_op(
        name,
        f"{summary} ({name}V2 is the newer form).",
        newer,
        **{"signature": signature, "failures": failures, "stateful": False, **parts},
    )


def _reference_shape(c: InferenceContext) -> None:
    c.set_output(0, c.vector(2))


_older(FIFOQueueV2, "A queue of elements in the order of insertion", shape=_reference_shape, kernel=reference_kernel, stateful=True)
_older(
    PaddingFIFOQueueV2, "A FIFO queue that pads elements dequeued together", shape=_reference_shape, kernel=reference_kernel, stateful=True
)
_older(RandomShuffleQueueV2, "A queue of elements in random order", shape=_reference_shape, kernel=reference_kernel, stateful=True)
_older(QueueEnqueueV2, "Enqueues one element", gradient=NO_GRADIENT)
_older(QueueEnqueueManyV2, "Enqueues the rows of the components", gradient=NO_GRADIENT)
_older(QueueDequeueV2, "Dequeues one element", shape=unknown_shape, gradient=NO_GRADIENT)
_older(QueueDequeueManyV2, "Dequeues `n` elements", shape=unknown_shape, gradient=NO_GRADIENT)
_older(QueueDequeueUpToV2, "Dequeues up to `n` elements", shape=unknown_shape, gradient=NO_GRADIENT)
_older(QueueCloseV2, "Closes a queue", gradient=NO_GRADIENT)
_older(QueueIsClosedV2, "True if the queue is closed")
_older(QueueSizeV2, "The number of elements in a queue", gradient=NO_GRADIENT)
