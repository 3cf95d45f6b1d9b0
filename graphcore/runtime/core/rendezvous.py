"""The rendezvous: values are exchanged by key; sends never block, receives wait."""

from __future__ import annotations

import math
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from graphcore.errors import CancelledError, DeadlineExceededError, GraphError, InvalidArgumentError
from graphcore.rendezvous_key import RendezvousKey
from graphcore.runtime.core.cancellation import CancellationManager
from graphcore.runtime.core.program import current
from graphcore.support.critical_section import critical_section
from graphcore.support.forking import new_rlock

_CANCELLED: Final = "[_Derived_]RecvAsync is cancelled."
_TIMED_OUT: Final = "Timed out waiting for notification"
_DELETED: Final = "LocalRendezvous deleted"


class RendezvousArgs(msgspec.Struct, frozen=True):
    """Arguments of sender and receiver besides key and value.

    Args:
        device_context: the transfer context of this end's device; the receiver gets the sender's.
        cancellation_manager: cancels a waiting receive.
    """

    device_context: Any = None
    cancellation_manager: CancellationManager | None = None


_NO_ARGS: Final = RendezvousArgs()


class Received(NamedTuple):
    """The result of a receive."""

    value: Any
    is_dead: bool


Done = Callable[[GraphError | None, RendezvousArgs, RendezvousArgs, Any, bool], None]
"""Takes the status (None for success), the args of sender and receiver, the value, and True if it is dead."""


class _Send:
    """A sent value."""

    __slots__ = ("args", "is_dead", "value")

    def __init__(self, args: RendezvousArgs, value: Any, is_dead: bool) -> None:
        self.args = args
        self.value = value
        self.is_dead = is_dead


class _Receive:
    """A waiting receive.

    Attributes:
        outcome: its result or error once decided; set once, with the lock held.
    """

    __slots__ = ("args", "done", "outcome", "token")

    def __init__(self, args: RendezvousArgs, done: Done) -> None:
        self.args = args
        self.done = done
        self.token: int | None = None
        self.outcome: _Send | GraphError | None = None


class Rendezvous:
    """Values by key. Sends and receives of one key are matched in order.

    Thread-safe; `done` callbacks are called without a lock held. When the rendezvous is garbage-collected, waiting receives get the error
    `LocalRendezvous deleted`.
    """

    def __init__(self) -> None:
        self._lock = new_rlock()  # reentrant: garbage collection may end waiting receives while it is held
        self._queues: dict[str, deque[_Send | _Receive]] = {}
        self._status: GraphError | None = None

    def __repr__(self) -> str:
        with self._lock:
            if self._status is not None:
                return f"<gc.Rendezvous aborted: {type(self._status).__name__}>"
            items = [item for queue in self._queues.values() for item in queue]
        values = sum(isinstance(item, _Send) for item in items)
        return f"<gc.Rendezvous {values} values sent, {len(items) - values} receives waiting>"

    def send(self, key: str | RendezvousKey, args: RendezvousArgs | None, value: Any, is_dead: bool = False) -> None:
        """Give `value` to the oldest receive of `key`, or store it. Never blocks.

        Args:
            key: a text from `create_key`, or a parsed key.
            args: the sender's arguments, passed to the receiver.
            is_dead: True if the value stands for "not computed" (a branch not taken).

        Raises:
            GraphError: the status the rendezvous was aborted with.
        """
        self._offer(str(key), _Send(args or _NO_ARGS, value, is_dead), deque.append)

    def recv_async(self, key: str | RendezvousKey, args: RendezvousArgs | None, done: Done) -> None:
        """Call `done` with the next value of `key`: now, or from a later send, abort or cancellation.

        Args:
            key: a text from `create_key`, or a parsed key.
            args: its cancellation manager can end the wait.
            done: called exactly once.
        """
        name, waiter = str(key), _Receive(args or _NO_ARGS, done)
        with critical_section:
            if self._take_or_wait(name, waiter):
                _complete_receive(waiter)

    def recv(self, key: str | RendezvousKey, args: RendezvousArgs | None = None, timeout: float | None = None) -> Received:
        """Wait for the next value of `key`.

        Args:
            key: a text from `create_key`, or a parsed key.
            args: its cancellation manager can end the wait.
            timeout: the most seconds to wait; None for no limit.

        Raises:
            CancelledError: cancelled while waiting.
            DeadlineExceededError: nothing came in time.
            GraphError: the status the rendezvous was aborted with.
        """
        arrived = threading.Event()
        name, waiter = str(key), _Receive(args or _own_args(), lambda *_: arrived.set())
        try:
            with critical_section:
                is_certain = self._take_or_wait(name, waiter)
            if not is_certain and not critical_section.wait(arrived, math.inf if timeout is None else timeout):
                if self._withdraw(name, waiter):
                    raise DeadlineExceededError(_TIMED_OUT)
                critical_section.wait(arrived)  # the outcome is decided, and the deciding thread is about to report it
            outcome = waiter.outcome
            if isinstance(outcome, GraphError):
                raise outcome
            assert outcome is not None
            received = Received(outcome.value, outcome.is_dead)
            return received  # noqa: RET504, TRY300 - its making is a call, where Ctrl-C may come; the return is none
        except BaseException:  # Ctrl-C: the receive is withdrawn, and its value, if any, goes to the next one
            with critical_section:
                if not self._withdraw(name, waiter):
                    self._give_back(name, waiter)
            raise

    def start_abort(self, status: GraphError) -> None:
        """Abort: waiting receives get `status`, values are dropped, later calls fail with it.

        The first status wins.

        Raises:
            InvalidArgumentError: `status` is not an error.
        """
        if not isinstance(status, GraphError):
            raise InvalidArgumentError(f"status: required an error of graphcore.errors, got {status!r}")
        failures: list[Exception] = []
        with critical_section:
            with self._lock:
                if self._status is None:
                    self._status = _again(status)
                waiting = [item for queue in self._queues.values() for item in queue if isinstance(item, _Receive)]
                for waiter in waiting:
                    waiter.outcome = _again(self._status)
                self._queues = {}
            for waiter in waiting:
                try:
                    _complete_receive(waiter)
                except Exception as error:  # noqa: BLE001 - the others must still be notified; the error is raised below
                    failures.append(error)
        if failures:
            raise failures[0]

    def __del__(self) -> None:
        if self._queues:
            self.start_abort(CancelledError(_DELETED))

    def _offer(self, name: str, sent: _Send, put: Callable[[deque[_Send | _Receive], _Send], object]) -> None:
        """Give a value to the oldest receive; without one, `put` it into the queue."""
        with critical_section:
            with self._lock:
                if self._status is not None:
                    raise _again(self._status)
                queue = self._queues.get(name)
                if not queue or not isinstance(queue[0], _Receive):
                    put(self._queues.setdefault(name, deque()), sent)
                    return
                waiter = queue[0]
                waiter.outcome = sent
                self._take_out(name, waiter)
            _complete_receive(waiter)

    def _take_or_wait(self, name: str, waiter: _Receive) -> bool:
        """True iff the outcome of `waiter` is decided at once; otherwise it is queued."""
        with self._lock:
            queue = self._queues.get(name)
            if self._status is not None:
                waiter.outcome = _again(self._status)
            elif queue and isinstance(queue[0], _Send):
                waiter.outcome = queue[0]
                queue.popleft()
                self._drop_if_empty(name)
            elif not self._registered(name, waiter):
                waiter.outcome = CancelledError(_CANCELLED)
            else:
                self._queues.setdefault(name, deque()).append(waiter)
                return False
            return True

    def _registered(self, name: str, waiter: _Receive) -> bool:
        """True iff `waiter` may wait. A concurrent cancellation waits for the lock and finds it in the queue."""
        manager = waiter.args.cancellation_manager
        if manager is None:
            return True
        waiter.token = manager.get_cancellation_token()
        reference = weakref.ref(self)  # the manager may live longer, and must not keep the rendezvous alive

        def cancel() -> None:
            rendezvous = reference()
            if rendezvous is not None:
                rendezvous._end(name, waiter, CancelledError(_CANCELLED))

        return manager.register_callback(waiter.token, cancel)

    def _end(self, name: str, waiter: _Receive, status: GraphError) -> None:
        """Complete `waiter` without a value, unless its outcome is decided."""
        with critical_section:
            with self._lock:
                if waiter.outcome is not None:
                    return
                waiter.outcome = status
                self._take_out(name, waiter)
            _complete_receive(waiter)

    def _withdraw(self, name: str, waiter: _Receive) -> bool:
        """Remove `waiter` silently. False if its outcome is decided."""
        with critical_section:
            with self._lock:
                if waiter.outcome is not None:
                    return False
                waiter.outcome = CancelledError(_CANCELLED)
                self._take_out(name, waiter)
            _deregister(waiter)
            return True

    def _give_back(self, name: str, waiter: _Receive) -> None:
        """Pass the value of `waiter` on to the next receive after an interruption."""
        with self._lock:
            if isinstance(waiter.outcome, _Send) and self._status is None:
                self._offer(name, waiter.outcome, deque.appendleft)

    def _take_out(self, name: str, item: _Send | _Receive) -> None:
        queue = self._queues.get(name)
        if queue is not None and item in queue:
            queue.remove(item)
            self._drop_if_empty(name)

    def _drop_if_empty(self, name: str) -> None:
        if not self._queues[name]:
            del self._queues[name]


def _own_args() -> RendezvousArgs:
    """The arguments of a receive; in a cancellable run, cancelling the run ends the receive."""
    step = current.step
    return _NO_ARGS if step is None or step.cancellation is None else RendezvousArgs(cancellation_manager=step.cancellation)


def _again(status: GraphError) -> GraphError:
    """A copy of an error to raise: each thread that raises it adds its own traceback."""
    return type(status)(status.message, op=status.op, node=status.node, attr=status.attr, input=status.input, source=status.source)


def _complete_receive(waiter: _Receive) -> None:
    """Call the callbacks of completed receives, without the lock."""
    _deregister(waiter)
    outcome = waiter.outcome
    if isinstance(outcome, _Send):
        waiter.done(None, outcome.args, waiter.args, outcome.value, outcome.is_dead)
    else:
        waiter.done(outcome, _NO_ARGS, waiter.args, None, False)


def _deregister(waiter: _Receive) -> None:
    manager = waiter.args.cancellation_manager
    if manager is not None and waiter.token is not None:
        manager.try_deregister_callback(waiter.token)
