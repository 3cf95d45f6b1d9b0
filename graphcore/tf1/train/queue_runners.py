"""`tf.train.QueueRunner`: threads that fill a queue by running its enqueue ops again and again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

from graphcore.definitions.wire.meta_graph import QueueRunnerDef, queue_runner_def_from_bytes
from graphcore.errors import CancelledError, FailedPreconditionError, GraphError, InvalidArgumentError, OutOfRangeError, error_of_code
from graphcore.graph import Graph, get_default_graph
from graphcore.graph.model.argument_errors import refuse
from graphcore.runtime import Session, get_default_session
from graphcore.tf1 import logging
from graphcore.tf1.queues.queues import QueueBase
from graphcore.tf1.train.coordinators import Coordinator
from graphcore.tf1.variables.collections import GraphKeys

__all__ = ["QueueRunner", "add_queue_runner", "start_queue_runners"]

_ENDS: Final = "ends of queue runners"


class QueueRunner:
    """Runs the enqueue ops of a queue, each in a thread of its own.

    Args:
        queue: the queue.
        enqueue_ops: nodes that put in elements; several times the same for several threads.
        close_op: closes the queue at the end of the data; by default `queue.close()`.
        cancel_op: closes it when a stop is requested; by default `queue.close(cancel_pending_enqueues=True)`.
        queue_closed_exception_types: the errors that mean the end of the data, OutOfRangeError and CancelledError by default.
        queue_runner_def: what `to_proto` returned, or its bytes as files hold them, in place of the other arguments.
        import_scope: the name scope of the nodes of `queue_runner_def`.

    Raises:
        InvalidArgumentError: there is no queue, or there are no enqueue ops.
        NotFoundError: a node of `queue_runner_def` is not there.
    """

    def __init__(
        self,
        queue: QueueBase | None = None,
        enqueue_ops: Sequence[Any] | None = None,
        close_op: Any = None,
        cancel_op: Any = None,
        queue_closed_exception_types: tuple[type[BaseException], ...] | None = None,
        queue_runner_def: Any = None,
        import_scope: str | None = None,
    ) -> None:
        if queue_runner_def is not None:
            if queue is not None or enqueue_ops is not None:
                raise InvalidArgumentError("queue_runner_def and queue are mutually exclusive.")
            read = _read(queue_runner_def, get_default_graph(), f"{import_scope}/" if import_scope else "")
            queue, enqueue_ops, close_op, cancel_op, queue_closed_exception_types = read
        if not isinstance(queue, QueueBase):
            refuse("queue", "a queue", queue)
        if not enqueue_ops:
            raise InvalidArgumentError("Must provide queue and enqueue_ops.")
        self._queue = queue
        self._enqueue_ops = list(enqueue_ops)
        self._close_op = queue.close() if close_op is None else close_op
        self._cancel_op = queue.close(cancel_pending_enqueues=True) if cancel_op is None else cancel_op
        self._closed_errors = queue_closed_exception_types or (OutOfRangeError, CancelledError)
        self._lock = threading.Lock()
        self._running: WeakKeyDictionary[Session, int] = WeakKeyDictionary()
        self._raised: list[Exception] = []

    def to_proto(self, export_scope: str | None = None) -> QueueRunnerDef:
        """Its nodes by name, as files hold them.

        Args:
            export_scope: a name scope that is removed from the names.
        """
        start = f"{export_scope}/" if export_scope else ""
        codes = [error("").error_code for error in self._closed_errors if issubclass(error, GraphError)]
        return QueueRunnerDef(
            self._queue.queue_ref.name.removeprefix(start),
            tuple([_node_name(op).removeprefix(start) for op in self._enqueue_ops]),
            _node_name(self._close_op).removeprefix(start),
            _node_name(self._cancel_op).removeprefix(start),
            tuple(codes),
        )

    @staticmethod
    def from_proto(queue_runner_def: Any, import_scope: str | None = None) -> QueueRunner:
        """The runner of the nodes of the default graph that `to_proto` names."""
        return QueueRunner(queue_runner_def=queue_runner_def, import_scope=import_scope)

    @property
    def queue(self) -> QueueBase:
        """The queue."""
        return self._queue

    @property
    def enqueue_ops(self) -> list[Any]:
        """The enqueue ops."""
        return self._enqueue_ops

    @property
    def close_op(self) -> Any:
        """The node that closes the queue at the end of the data."""
        return self._close_op

    @property
    def cancel_op(self) -> Any:
        """The node that closes it when a stop is requested."""
        return self._cancel_op

    @property
    def name(self) -> str:
        """The name of the queue."""
        return self._queue.name

    @property
    def exceptions_raised(self) -> list[Exception]:
        """The errors of threads without a coordinator."""
        return self._raised

    def create_threads(
        self, sess: Session, coord: Coordinator | None = None, daemon: bool = False, start: bool = False
    ) -> list[threading.Thread]:
        """Make a thread for each enqueue op, and one that closes the queue when the coordinator stops.

        There are none if those of the session are running. They end with the data, with the coordinator, or with the session.

        Args:
            sess: the session that runs the ops.
            coord: gets errors, and stops the threads.
            daemon: True for threads that end with the process.
            start: start them.
        """
        with self._lock:
            if self._running.get(sess):
                return []
            self._running[sess] = len(self._enqueue_ops)
            self._raised = []
        threads = [self._thread(self._run, (sess, op, coord), op, daemon=daemon) for op in self._enqueue_ops]
        if coord is not None:
            woken = threading.Event()
            coord.when_stopped(woken.set)
            _at_end_of(sess, woken.set)
            threads.append(self._thread(self._close_on_stop, (sess, coord, woken), self._cancel_op, daemon=daemon))
            for thread in threads:
                coord.register_thread(thread)
        if start:
            for thread in threads:
                thread.start()
        return threads

    def _thread(self, call: Callable[..., None], args: tuple[Any, ...], op: Any, *, daemon: bool) -> threading.Thread:
        return threading.Thread(target=call, args=args, name=f"QueueRunnerThread-{self.name}-{getattr(op, 'name', op)}", daemon=daemon)

    def _run(self, session: Session, op: Any, coord: Coordinator | None) -> None:
        """Run an enqueue op until the data, the coordinator or the session ends."""
        try:
            enqueue = session.make_callable(op)
            while coord is None or not coord.should_stop():
                enqueue()
            self._count_down(session)
        except self._closed_errors:
            if self._count_down(session) == 0 and not session.is_closed:
                _quietly(session, self._close_op)
        except Exception as error:  # noqa: BLE001 - the coordinator raises it, or `exceptions_raised` lists it
            self._count_down(session)
            if session.is_closed:
                return
            logging.error("Exception in QueueRunner: %s", error)
            with self._lock:
                self._raised.append(error)
            if coord is not None:
                coord.request_stop(error)

    def _count_down(self, session: Session) -> int:
        """Note that a thread ends. -> the number of those that run on."""
        with self._lock:
            self._running[session] -= 1
            return self._running[session]

    def _close_on_stop(self, session: Session, coord: Coordinator, woken: threading.Event) -> None:
        """Wait for the coordinator or the end of the session, and end enqueues that wait."""
        woken.wait()
        if coord.should_stop() and not session.is_closed:
            _quietly(session, self._cancel_op)


def _node_name(op: Any) -> str:
    return str(getattr(op, "node", op).name)


def _read(description: Any, graph: Graph, start: str) -> tuple[QueueBase, list[Any], Any, Any, tuple[type[BaseException], ...] | None]:
    """The arguments of a runner from its description."""
    described = description if isinstance(description, QueueRunnerDef) else queue_runner_def_from_bytes(bytes(description))
    node = graph.get_operation_by_name(start + described.queue_name.partition(":")[0])
    kinds = node.attr.get("component_types", ())
    queue = QueueBase(kinds if isinstance(kinds, tuple) else (), None, None, node.outputs[0])
    ops = [graph.get_operation_by_name(start + name) for name in described.enqueue_op_name]
    close, cancel = [graph.get_operation_by_name(start + name) for name in (described.close_op_name, described.cancel_op_name)]
    errors = tuple([error_of_code(number) for number in described.queue_closed_exception_types])
    return queue, ops, close, cancel, errors or None


def _quietly(session: Session, op: Any) -> None:
    """Run an op at the end, which may find the queue or the session closed."""
    try:
        session.run(op)
    except (CancelledError, FailedPreconditionError) as error:
        logging.vlog(1, "Ignored exception: %s", error)
    except GraphError as error:
        logging.warning("Closing a queue failed: %s", error)


class _Ends:
    """Calls functions when a session is closed: see `SharedResource`."""

    op = owner = ""

    def __init__(self) -> None:
        self.calls: list[Callable[[], None]] = []

    def end(self) -> None:
        """Call them."""
        for call in self.calls:
            call()


def _at_end_of(session: Session, call: Callable[[], None]) -> None:
    ends = session.resources.shared.find("", _ENDS, "", lambda _: _Ends(), lambda _: True)
    assert isinstance(ends, _Ends)
    ends.calls.append(call)


def add_queue_runner(qr: QueueRunner, collection: str = GraphKeys.QUEUE_RUNNERS) -> None:
    """Put a runner into a collection, in the place of an earlier one of the same queue."""
    listed = get_default_graph().get_collection_ref(collection)
    listed[:] = [runner for runner in listed if getattr(runner, "name", None) != qr.name]
    listed.append(qr)


def start_queue_runners(
    sess: Any = None,
    coord: Coordinator | None = None,
    daemon: bool = True,
    start: bool = True,
    collection: str = GraphKeys.QUEUE_RUNNERS,
    *,
    graph: Graph | None = None,
) -> list[threading.Thread]:
    """Start the threads of all runners in a collection.

    Args:
        sess: the session; the default session if None.
        coord: the coordinator.
        daemon, start: as of `QueueRunner.create_threads`.
        collection: the collection.
        graph: the graph of the runners; that of the session if None.

    Returns:
        The threads.

    Raises:
        InvalidArgumentError: there is no session, or another kind of object is given.
    """
    session = get_default_session() if sess is None else sess
    if session is None:
        raise InvalidArgumentError(
            "Cannot start queue runners: No default session is registered. Use `with sess.as_default()` or pass an explicit session to "
            "start_queue_runners(sess=sess)"
        )
    if not isinstance(session, Session):
        refuse("sess", "a gc.Session", session)
    whole = graph or session.graph
    runners = [runner for runner in whole.get_collection(collection) if runner.queue.queue_ref.node in whole]
    return [thread for runner in runners for thread in runner.create_threads(session, coord, daemon, start)]
