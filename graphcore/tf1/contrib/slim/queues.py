"""`tf.contrib.slim.queues`: the threads that fill queues, for a `with` block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from graphcore.runtime import Session
from graphcore.tf1.train.coordinators import Coordinator
from graphcore.tf1.train.queue_runners import start_queue_runners

__all__ = ["QueueRunners"]


@contextmanager
def QueueRunners(session: Session) -> Iterator[None]:  # noqa: N802 - TF1's name
    """Start the queue runners of the session's graph, and stop them at the end of the block."""
    coordinator = Coordinator()
    threads = start_queue_runners(session, coordinator)
    try:
        yield
    finally:
        coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=120, ignore_live_threads=True)
