"""Threads whose runs are short take turns, each for as long as Python itself lets a thread go on.

Python runs one thread at a time, and NumPy gives Python's lock away in each operation on a larger array. So threads that run small graphs
at once queue up for that lock several times a run, and most of their time goes into being put to sleep and woken: runs of 15 microseconds
take two to seven times as long as one after another. Where threads change places that often, only as many run as there is work for besides
Python's, and the others sleep until it is their turn.

A turn is advice, not a lock. Who has it and does not begin another run, or is in one that takes long, loses it within a few milliseconds,
and within a fraction of one if he has not been seen to go on and on: no thread waits for what another one, in its run, waits for, and few
wait for one that has had its last run. Each look at who uses his turn disturbs who runs, for some tens of microseconds, so it is done
seldom. Where threads with turns turn out to wait for something else most of the time, so that others could run meanwhile, there are no
turns for a while.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from threading import get_ident
from typing import Any, Final, TypeVar

from graphcore.pool import Pool, core_count

_Result = TypeVar("_Result")

HAS_ONE_LOCK: Final[bool] = getattr(sys, "_is_gil_enabled", lambda: True)()
"""Whether only one thread at a time runs Python; a Python without that lock has nothing to take turns at."""
SHORT: Final = 250e-6
"""Runs of at most so many seconds of the processor take turns."""
_TIMED: Final = 16
"""Of so many long runs one is timed."""
_OF_PYTHON: Final = 50e-6
"""So many seconds of a short run are Python's, which only one thread can have; others may run beside the rest."""
_CHANGES: Final = 8
_WITHIN: Final = 0.002
"""Threads that took each other's place so many times within so many seconds do it too often."""
_TRIAL: Final = 0.002
"""Who has had a turn for so many seconds is likely to go on."""
_LOOK_SOON: Final = 0.0003
_LOOK: Final = 0.0025
"""In so many seconds who has a turn is looked at again: who may have had his last run, and who is likely to go on."""
_LONG: Final = 0.002
"""Who has been in one run for so many seconds may wait for something in it."""
_IDLE: Final = 0.0001
"""Who has had no run for so many seconds may have had his last."""
_ALL_AT_FULL_LENGTH: Final = 8
"""With more threads than that turns get shorter, so that nobody waits longer."""
_BUSY: Final = 0.4
_LEFT_ALONE: Final = 0.5
"""Where turns were used by less than that, there are none for so many seconds."""
_BACK: Final = 0.01
"""Who has lost his turn and is back within so many seconds did not use it."""
_LOST: Final = 0.2
"""Who has waited so much longer than he should have goes on without a turn."""


class Load:
    """How much of the processor runs of one kind take.

    Attributes:
        cost: the seconds of a run, as far as is known.
    """

    __slots__ = ("_untimed", "cost")

    def __init__(self) -> None:
        self.cost = math.inf
        self._untimed = 1

    def is_long(self) -> bool:
        """Whether runs take too long to take turns. Now and then they are to be timed once more, and count as short meanwhile."""
        if self.cost <= SHORT:
            return False
        self._untimed -= 1
        if self._untimed > 0:
            return True
        self._untimed = _TIMED
        return False

    def note(self, seconds: float) -> None:
        """A run took so many. Most take less than one that was disturbed, or had to make ready something first."""
        self.cost = seconds if seconds < self.cost else self.cost + (seconds - self.cost) / 32


class _Turn:
    """A thread's turn.

    Attributes:
        begun: when it began, in seconds.
        end: when it is to end or, once it has, ended.
        used: the seconds of the processor that the thread had used when it began; not a number till the thread knows that it has.
        at_once: how many turns there were when it ended.
        is_new: whether the thread may be about to have its last run.
        in_run: whether the thread is in a run. The watcher makes it None, for the next run that begins or ends to show that there was one.
        was_in_run: what the watcher saw.
        since: when the watcher saw it; of a new one, when its last run began or ended.
    """

    __slots__ = ("at_once", "begun", "end", "in_run", "is_new", "since", "used", "was_in_run")

    in_run: bool | None

    def __init__(self, now: float, end: float, is_new: bool) -> None:
        self.end = end
        self.at_once = 1
        self.is_new = is_new
        self.was_in_run = True
        self.begun, self.used = now, math.nan
        self.mark(now, in_run=True)

    def mark(self, now: float, in_run: bool) -> None:
        """A run begins, or has ended."""
        self.since, self.in_run = now, in_run

    def is_unused(self, now: float) -> bool:
        """Whether nothing has run for a while, or the same for long, as far as can be seen now."""
        seen = self.in_run
        if seen is not None:
            self.was_in_run, self.in_run = seen, None
            if not self.is_new:
                self.since = now
        return now - self.since > (_LONG if self.was_in_run else _IDLE)

    def next_look(self, now: float) -> float:
        """In how many seconds it is to be looked at."""
        if self.is_new or not self.was_in_run:
            return _LOOK_SOON
        left = self.end - now
        return left / math.ceil(left / _LOOK) if left > _LOOK_SOON else _LOOK

    def use(self, used: float) -> float:
        """What part of it a processor was at work, if the thread has `used` so many seconds of it now."""
        return self.at_once * (used - self.used) / max(self.end - self.begun, _IDLE)


class _Waiter:
    """A thread that waits for its turn."""

    __slots__ = ("cost", "thread", "woken")

    def __init__(self, thread: int, cost: float) -> None:
        self.thread = thread
        self.cost = cost
        self.woken = threading.Lock()
        self.woken.acquire()


class Turns:
    """Whose turn it is.

    Attributes:
        going: the threads that need not ask before a run, but say in their turns that they are in one: who ran last or, where there are
            turns, those with one that are likely to go on.
    """

    def __init__(self) -> None:
        self.going: dict[int, _Turn] = {}
        self.reset()

    def reset(self) -> None:
        """As if nothing had run, whatever state it is in."""
        self.going.clear()
        self._lock = threading.RLock()  # a finalizer may run something at any time
        self._held: dict[int, _Turn] = {}
        self._lost: dict[int, _Turn] = {}
        self._known: set[int] = set()
        self._queue: deque[_Waiter] = deque()
        self._changes: deque[float] = deque([-math.inf] * _CHANGES, _CHANGES)
        self._busy = 1.0
        self._left_alone_until = 0.0
        self._is_watched = False
        self._watcher = Pool(1)
        self._cores = core_count()

    def ask(self, cost: float) -> None:
        """Before a run of about `cost` seconds of the processor: wait for this thread's turn, if there are turns now."""
        me, now = get_ident(), time.monotonic()
        with self._lock:
            turn = self._held.get(me)
            if turn is not None and (now < turn.end or not self._queue):
                self._go_on(me, turn, now)
                return
            if turn is not None:
                self._end_turn(me, turn, now)
            elif (lost := self._lost.pop(me, None)) is not None and now < lost.end + _BACK:
                self._note_use(lost, now)
            if not self._is_watched and not self._change_often(now):
                self._held.clear()
                self.going.clear()
                self.going[me] = _Turn(now, math.inf, is_new=False)
                return
            if cost > SHORT or now < self._left_alone_until or not HAS_ONE_LOCK:
                return
            if turn is None and not self._queue and self._is_room(cost):
                for other in self.going.keys() - self._held.keys():
                    del self.going[other]  # who ran last, without a turn, is to ask next time
                self._begin_turn(me, now)
                self._learn_of_turn(me)
                return
            waiter = _Waiter(me, cost)
            self._queue.append(waiter)
            self._hand_on(now)
            if not self._watch():
                return
        try:
            if not waiter.woken.acquire(timeout=_LOST + 2 * len(self._queue) * sys.getswitchinterval()):
                self._forget()
        except BaseException:
            self._give_up(waiter)
            raise
        with self._lock:
            self._learn_of_turn(me)

    def ran(self) -> None:
        """A run that was asked for has ended."""
        if (turn := self._held.get(get_ident())) is not None:
            turn.mark(time.monotonic(), in_run=False)

    def _learn_of_turn(self, me: int) -> None:
        if (turn := self._held.get(me)) is not None:
            turn.begun, turn.used = time.monotonic(), time.thread_time()
            turn.mark(turn.begun, in_run=True)

    def _go_on(self, me: int, turn: _Turn, now: float) -> None:
        if turn.is_new and now > turn.begun + _TRIAL:
            turn.is_new = False
            self._known.add(me)
        turn.mark(now, in_run=True)
        if not turn.is_new:
            self.going[me] = turn

    def _change_often(self, now: float) -> bool:
        self._changes.append(now)
        return now - self._changes[0] < _WITHIN

    def _is_room(self, cost: float) -> bool:
        return len(self._held) < min(self._cores, 1 + int(cost / _OF_PYTHON))

    def _begin_turn(self, thread: int, now: float) -> None:
        threads = len(self._queue) + len(self._held)
        end = now + sys.getswitchinterval() * min(1.0, _ALL_AT_FULL_LENGTH / (threads + 1))
        self._held[thread] = turn = _Turn(now, end, thread not in self._known)
        if not turn.is_new:
            self.going[thread] = turn

    def _end_turn(self, me: int, turn: _Turn, now: float) -> None:
        self._take_back(me, turn, now, len(self._held))
        self._note_use(turn, now)
        self._hand_on(now)

    def _take_back(self, thread: int, turn: _Turn, now: float, at_once: int) -> None:
        turn.at_once, turn.end = at_once, now
        del self._held[thread]
        self.going.pop(thread, None)

    def _note_use(self, turn: _Turn, now: float) -> None:
        """Of this thread's turn, which has ended."""
        use = turn.use(time.thread_time())
        if not math.isnan(use):
            self._busy += 0.2 * (min(1.0, use) - self._busy)
        if self._busy < _BUSY:
            self._busy = 1.0
            self._left_alone_until = now + _LEFT_ALONE

    def _hand_on(self, now: float) -> None:
        """Whoever there is room for begins his turn."""
        while self._queue and (now < self._left_alone_until or self._is_room(self._queue[0].cost)):
            waiter = self._queue.popleft()
            self._begin_turn(waiter.thread, now)
            waiter.woken.release()

    def _give_up(self, waiter: _Waiter) -> None:
        with self._lock:
            if waiter in self._queue:
                self._queue.remove(waiter)

    def _watch(self) -> bool:
        """Have somebody see to it that turns end; False where no thread can be had for that, and there are no turns."""
        if self._is_watched:
            return True
        try:
            self._is_watched = True
            self._watcher.submit(self._look)
        except BaseException as error:
            self._forget()
            if isinstance(error, RuntimeError):  # no more threads, or Python is about to end
                return False
            raise
        return True

    def _look(self) -> None:
        try:
            pause = _LOOK_SOON
            while self._queue:
                time.sleep(pause)
                with self._lock:
                    now = time.monotonic()
                    self._take_back_unused(now)
                    self._hand_on(now)
                    pause = min([turn.next_look(now) for turn in self._held.values()], default=_LOOK_SOON)
        finally:
            self._forget()

    def _take_back_unused(self, now: float) -> None:
        at_once = len(self._held)
        for thread, turn in tuple(self._held.items()):
            if turn.is_unused(now):
                self._take_back(thread, turn, now, at_once)
                self._known.discard(thread)
                self._lost = {**{thread: lost for thread, lost in self._lost.items() if now < lost.end + _BACK}, thread: turn}
            elif now >= turn.end:
                self.going.pop(thread, None)  # it is to ask, and hand on

    def _forget(self) -> None:
        """There are no turns any more, and nobody waits."""
        with self._lock:
            self._is_watched = False
            self._held.clear()
            self._known.clear()
            self.going.clear()
            while self._queue:
                self._queue.popleft().woken.release()


_turns: Final = Turns()
going: Final = _turns.going
"""Threads that need not ask before a run."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_turns.reset)


def in_turn(load: Load, run: Callable[..., _Result], *arguments: Any) -> _Result:
    """`run(*arguments)` by a thread that is not `going`, when it is its turn."""
    if load.is_long():
        return run(*arguments)
    _turns.ask(load.cost)
    begun = time.thread_time()
    try:
        return run(*arguments)
    finally:
        load.note(time.thread_time() - begun)
        _turns.ran()
