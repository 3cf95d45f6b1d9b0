"""Where values meet who waits for them, by key: sends never block, receives wait."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from graphcore.errors import CancelledError, DeadlineExceededError, GraphError
from graphcore.rendezvous_key import RendezvousKey
from graphcore.runtime.cancellation import CancellationManager
from graphcore.runtime.program import current

_CANCELLED: Final = "[_Derived_]RecvAsync is cancelled."
_TIMED_OUT: Final = "Timed out waiting for notification"
_DELETED: Final = "LocalRendezvous deleted"


class RendezvousArgs(msgspec.Struct, frozen=True):
    """What sender and receiver say besides key and value.

    Args:
        device_context: how the device of this end moves values; the receiver gets the sender's.
        cancellation_manager: cancels a receive that waits.
    """

    device_context: Any = None
    cancellation_manager: CancellationManager | None = None


_NO_ARGS: Final = RendezvousArgs()


class Received(NamedTuple):
    """What a receive gives."""

    value: Any
    is_dead: bool


Done = Callable[[GraphError | None, RendezvousArgs, RendezvousArgs, Any, bool], None]
"""Takes the status (None if all is well), the sender's and the receiver's args, the value, and whether it is dead."""


class _Send:
    __slots__ = ("args", "is_dead", "value")

    def __init__(self, args: RendezvousArgs, value: Any, is_dead: bool) -> None:
        self.args = args
        self.value = value
        self.is_dead = is_dead


class _Receive:
    __slots__ = ("args", "done", "token")

    def __init__(self, args: RendezvousArgs, done: Done) -> None:
        self.args = args
        self.done = done
        self.token: int | None = None


class Rendezvous:
    """Values on their way, by key. Several sends or several receives of one key are served in their order.

    Safe to use from several threads; `done` functions are called without a lock held. When nothing refers to it any more, who
    still waits is told `LocalRendezvous deleted`.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # not Lock: a collection in the middle may end what waits here
        self._queues: dict[str, deque[_Send | _Receive]] = {}
        self._status: GraphError | None = None

    def send(self, key: str | RendezvousKey, args: RendezvousArgs | None, value: Any, is_dead: bool = False) -> None:
        """Leave `value` for the receive of `key` that waits longest, or for one to come. Never waits.

        Args:
            key: a text from `create_key`, or a parsed key.
            args: what the receiver is told of this end.
            is_dead: the value stands for "not computed" (a branch not taken).

        Raises:
            GraphError: the status that the rendezvous was aborted with.
        """
        name = str(key)
        with self._lock:
            if self._status is not None:
                raise _again(self._status)
            queue = self._queues.get(name)
            waiter = queue[0] if queue else None
            if queue is None or not isinstance(waiter, _Receive):
                self._append(name, _Send(args or _NO_ARGS, value, is_dead))
                return
            queue.popleft()
            self._drop_if_empty(name)
        _deregister(waiter)
        waiter.done(None, args or _NO_ARGS, waiter.args, value, is_dead)

    def recv_async(self, key: str | RendezvousKey, args: RendezvousArgs | None, done: Done) -> None:
        """Have `done` called with the next value of `key`: now if one is there, else by who sends, aborts or cancels.

        Args:
            key: a text from `create_key`, or a parsed key.
            args: its cancellation manager can end the wait.
            done: called exactly once.
        """
        self._start(str(key), _Receive(args or _NO_ARGS, done))

    def recv(self, key: str | RendezvousKey, args: RendezvousArgs | None = None, timeout: float | None = None) -> Received:
        """Wait for the next value of `key`.

        Args:
            key: a text from `create_key`, or a parsed key.
            args: its cancellation manager can end the wait.
            timeout: seconds to wait at most; None for as long as it takes.

        Raises:
            CancelledError: cancelled while waiting.
            DeadlineExceededError: nothing came in time.
            GraphError: the status that the rendezvous was aborted with.
        """
        arrived = threading.Event()
        result: list[tuple[GraphError | None, Received]] = []

        def done(status: GraphError | None, _sent: RendezvousArgs, _own: RendezvousArgs, value: Any, is_dead: bool) -> None:
            result.append((status, Received(value, is_dead)))
            arrived.set()

        name = str(key)
        waiter = _Receive(args or _own_args(), done)
        try:
            self._start(name, waiter)
            in_time = arrived.wait(timeout)
        except BaseException:  # Ctrl-C: nobody waits any more, and what comes is for the next who does
            if self._forget(name, waiter):
                _deregister(waiter)
            raise
        if not in_time:
            if self._forget(name, waiter):
                _deregister(waiter)
                raise DeadlineExceededError(_TIMED_OUT)
            arrived.wait()  # it has left the queue: whoever took it out is about to call `done`
        status, received = result[0]
        if status is not None:
            raise status
        return received

    def start_abort(self, status: GraphError) -> None:
        """End all: who waits gets `status`, what was sent is dropped, later sends and receives fail with it. The first status wins."""
        with self._lock:
            if self._status is not None:
                return
            self._status = _again(status)
            queues, self._queues = self._queues, {}
        for queue in queues.values():
            for item in queue:
                if isinstance(item, _Receive):
                    _deregister(item)
                    item.done(_again(status), _NO_ARGS, item.args, None, False)

    def __del__(self) -> None:
        if self._queues:
            self.start_abort(CancelledError(_DELETED))

    def _start(self, name: str, waiter: _Receive) -> None:
        outcome = self._take_or_wait(name, waiter)
        if isinstance(outcome, _Send):
            waiter.done(None, outcome.args, waiter.args, outcome.value, outcome.is_dead)
        elif isinstance(outcome, GraphError):
            waiter.done(outcome, _NO_ARGS, waiter.args, None, False)

    def _take_or_wait(self, name: str, waiter: _Receive) -> _Send | GraphError | None:
        """What was sent, or why nothing will come; None if `waiter` waits now."""
        with self._lock:
            if self._status is not None:
                return _again(self._status)
            queue = self._queues.get(name)
            if queue and isinstance(queue[0], _Send):
                sent = queue[0]
                queue.popleft()
                self._drop_if_empty(name)
                return sent
            if not self._registered(name, waiter):
                return CancelledError(_CANCELLED)
            self._append(name, waiter)
            return None

    def _registered(self, name: str, waiter: _Receive) -> bool:
        """Whether `waiter` may wait. A cancellation that comes now waits for the lock, and finds it in the queue."""
        manager = waiter.args.cancellation_manager
        if manager is None:
            return True
        waiter.token = manager.get_cancellation_token()
        here = weakref.ref(self)  # the manager may live longer, and must not keep the rendezvous

        def cancel() -> None:
            rendezvous = here()
            if rendezvous is not None and rendezvous._forget(name, waiter):
                waiter.done(CancelledError(_CANCELLED), _NO_ARGS, waiter.args, None, False)

        return manager.register_callback(waiter.token, cancel)

    def _forget(self, name: str, waiter: _Receive) -> bool:
        """Take `waiter` out of its queue. False if it is not there any more."""
        with self._lock:
            queue = self._queues.get(name)
            if queue is None or waiter not in queue:
                return False
            queue.remove(waiter)
            self._drop_if_empty(name)
            return True

    def _append(self, name: str, item: _Send | _Receive) -> None:
        self._queues.setdefault(name, deque()).append(item)

    def _drop_if_empty(self, name: str) -> None:
        if not self._queues[name]:
            del self._queues[name]


def _own_args() -> RendezvousArgs:
    """Who waits within a watched run can be cancelled with it."""
    step = current.step
    return _NO_ARGS if step is None or step.cancellation is None else RendezvousArgs(cancellation_manager=step.cancellation)


def _again(status: GraphError) -> GraphError:
    """A copy to raise: each thread that raises one writes its own traceback into it."""
    return type(status)(status.message, op=status.op, node=status.node, attr=status.attr, input=status.input, source=status.source)


def _deregister(waiter: _Receive) -> None:
    manager = waiter.args.cancellation_manager
    if manager is not None and waiter.token is not None:
        manager.try_deregister_callback(waiter.token)
