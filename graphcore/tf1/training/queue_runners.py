"""`tf.train.QueueRunner`: threads that fill queues."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from graphcore.api.variables.collections import GraphKeys
from graphcore.errors import CancelledError, FailedPreconditionError, GraphError, InvalidArgumentError, OutOfRangeError
from graphcore.graph import Graph, get_default_graph
from graphcore.runtime import Session, get_default_session
from graphcore.tf1.training.coordinators import Coordinator


class QueueRunner:
    """Runs nodes that fill a queue in threads until there is no more input, and closes the queue then.

    Args:
        queue: the queue, a `gc.QueueBase`.
        enqueue_ops: the nodes; each runs in a thread of its own.
        close_op: closes the queue; `queue.close()` if None.
        cancel_op: closes the queue and ends waiting nodes; `queue.close(cancel_pending_enqueues=True)` if None.
        queue_closed_exception_types: the errors that mean that there is no more input.
        queue_runner_def, import_scope: not available.
    """

    def __init__(
        self,
        queue: Any = None,
        enqueue_ops: Sequence[Any] | None = None,
        close_op: Any = None,
        cancel_op: Any = None,
        queue_closed_exception_types: tuple[type[GraphError], ...] | None = None,
        queue_runner_def: Any = None,
        import_scope: str | None = None,
    ) -> None:
        if queue_runner_def is not None or import_scope is not None:
            raise InvalidArgumentError("QueueRunner: queue_runner_def and import_scope are not available")
        if queue is None or not enqueue_ops:
            raise InvalidArgumentError("Must provide queue and enqueue_ops.")
        self.queue = queue
        self.enqueue_ops = list(enqueue_ops)
        self.close_op = queue.close() if close_op is None else close_op
        self.cancel_op = queue.close(cancel_pending_enqueues=True) if cancel_op is None else cancel_op
        self.queue_closed_exception_types = queue_closed_exception_types or (OutOfRangeError,)
        self.exceptions_raised: list[BaseException] = []
        self._lock = threading.Lock()
        self._running: dict[Any, int] = {}

    @property
    def name(self) -> str:
        """The name of the queue."""
        found: str = self.queue.name
        return found

    def create_threads(
        self, sess: Session, coord: Coordinator | None = None, daemon: bool = False, start: bool = False
    ) -> list[threading.Thread]:
        """The threads of a session; none if they are running.

        Args:
            sess: the session.
            coord: ends the threads, and gets their errors; without one they are kept in `exceptions_raised`.
            daemon: let the process end while they run.
            start: start them.
        """
        with self._lock:
            if self._running.get(sess):
                return []
            self._running[sess] = len(self.enqueue_ops)
            self.exceptions_raised = []
        threads = [
            threading.Thread(target=self._run, args=(sess, op, coord), name=f"QueueRunnerThread-{self.name}-{getattr(op, 'name', number)}")
            for number, op in enumerate(self.enqueue_ops)
        ]
        if coord is not None:
            threads.append(
                threading.Thread(target=self._close_on_stop, args=(sess, coord), name=f"QueueRunnerThread-{self.name}-close_on_stop")
            )
        for thread in threads:
            if coord is not None:
                coord.register_thread(thread)
            thread.daemon = daemon
            if start:
                thread.start()
        return threads

    def _run(self, session: Session, op: Any, coord: Coordinator | None) -> None:
        is_last = False
        try:
            while coord is None or not coord.should_stop():
                try:
                    session.run(op)
                except self.queue_closed_exception_types:
                    with self._lock:
                        self._running[session] -= 1
                        is_last = not self._running[session]
                    if is_last:
                        session.run(self.close_op)
                    return
        except Exception as error:  # noqa: BLE001 - the coordinator raises it where it is awaited
            if coord is not None:
                stopped = coord.should_stop() and isinstance(error, CancelledError | FailedPreconditionError)
                coord.request_stop(None if stopped else error)
            else:
                with self._lock:
                    self.exceptions_raised.append(error)
        finally:
            with self._lock:
                if self._running.get(session) and not is_last:
                    self._running[session] -= 1

    def _close_on_stop(self, session: Session, coord: Coordinator) -> None:
        coord.wait_for_stop()
        try:
            session.run(self.cancel_op)
        except (CancelledError, FailedPreconditionError):
            return  # the session was closed before


def add_queue_runner(qr: QueueRunner, collection: str = GraphKeys.QUEUE_RUNNERS) -> None:
    """Let `start_queue_runners` start the threads of `qr`."""
    get_default_graph().add_to_collection(collection, qr)


def start_queue_runners(
    sess: Session | None = None,
    coord: Coordinator | None = None,
    daemon: bool = True,
    start: bool = True,
    collection: str = GraphKeys.QUEUE_RUNNERS,
    *,
    graph: Graph | None = None,
) -> list[threading.Thread]:
    """Start the threads of all queue runners of a graph.

    Args:
        sess: the session; the default session if None.
        coord: ends the threads, and gets their errors.
        daemon: let the process end while they run.
        start: start them.
        collection: the collection with the runners.
        graph: the graph; that of the session if None.

    Returns:
        The threads.

    Raises:
        InvalidArgumentError: there is no session.
    """
    session = sess if sess is not None else get_default_session()
    if not isinstance(session, Session):
        raise InvalidArgumentError("Cannot start queue runners: No default session is registered. Use `with sess.as_default()` or pass one")
    runners = (graph or session.graph).get_collection(collection)
    return [thread for runner in runners for thread in runner.create_threads(session, coord, daemon=daemon, start=start)]
