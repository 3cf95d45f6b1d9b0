"""The budget of evaluation before a run.

A graph from a file is opened, shown, explained and compared without being run. Values that its shapes need are computed meanwhile, from
constants and by pure ops only. Each such computation is charged here before it takes memory, and afterwards for its time. A value that does
not fit into the budget stays unknown; nothing fails.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Final, ParamSpec, TypeVar

import msgspec

from graphcore.errors import InvalidArgumentError, ResourceExhaustedError
from graphcore.support.critical_section import critical_contextmanager

_P = ParamSpec("_P")
_T = TypeVar("_T")
MIB: Final = 1 << 20
FEW_OUTPUTS: Final = 1000
"""Nodes with more outputs are charged for them."""
_BYTES_OF_OUTPUT: Final = 128
_SECONDS_OF_STEP: Final = 2e-5
_SECONDS_OF_SLICE: Final = 5e-4
"""The time for which a thread hardly waits for the processor."""
_SECONDS: Final = "GRAPHLOUPE_EVALUATION_SECONDS"
_BYTES: Final = "GRAPHLOUPE_EVALUATION_BYTES"


class EvaluationLimits(msgspec.Struct, frozen=True):
    """The limits for values computed before a run.

    Args:
        seconds: of processor time, for all values of one graph that is opened, or of one that is shown, explained or compared.
        bytes: of memory, likewise; and for the values of a single op.
        nodes: of called functions, likewise: shapes in further calls are unknown.
    """

    seconds: float = 2.0
    bytes: int = 256 * MIB
    nodes: int = 100_000


class BudgetUsedUpError(ResourceExhaustedError):
    """A value is not computed before a run, because it does not fit into the budget."""


class Budget:
    """The remainder of the limits."""

    __slots__ = ("bytes", "limits", "nodes", "seconds")

    def __init__(self, limits: EvaluationLimits) -> None:
        self.limits = limits
        self.seconds = limits.seconds
        self.bytes = limits.bytes
        self.nodes = limits.nodes

    def charge(self, size: int) -> None:
        """Charge the memory of a value before it is computed.

        Raises:
            BudgetUsedUpError: it does not fit, or the time is used up.
        """
        if self.seconds <= 0:
            raise BudgetUsedUpError(f"the budget of {self.limits.seconds:g} s for values before a run is used up")
        if size > self.bytes:
            raise BudgetUsedUpError(
                f"its value can take {_in_words(size)}, and the budget for values before a run has {_in_words(self.bytes)} left"
            )
        self.bytes -= size

    def charge_nodes(self, count: int) -> bool:
        """Charge the nodes of a called function. False if they do not fit."""
        self.nodes -= count
        return self.nodes >= 0

    def charge_steps(self, count: int) -> bool:
        """Charge `count` steps from node to node in search of a value, of about equal time. False if the time is used up."""
        self.seconds -= count * _SECONDS_OF_STEP
        return self.seconds > 0

    def charge_since(self, start: float) -> None:
        """Charge the processor time since `start`, on the clock `time.perf_counter`.

        The clock of processor time takes as long to read as a small kernel to run. So it is read only if the thread may have waited for the
        processor meanwhile. What it ran since the last such time is charged then at most.
        """
        taken = time.perf_counter() - start
        if taken > _SECONDS_OF_SLICE:
            now = time.thread_time()
            taken, _state.looked = min(taken, now - _state.looked), now
        self.seconds -= taken


class _State(threading.local):
    budget: Budget | None = None
    looked: float = 0.0  # on the clock of processor time


_state: Final = _State()
_limits: list[EvaluationLimits] = []


def evaluation_limits() -> EvaluationLimits:
    """The limits in force: those that were set, else those of the environment, else the defaults.

    Raises:
        InvalidArgumentError: a limit in the environment is no number.
    """
    if not _limits:
        defaults = EvaluationLimits()
        seconds, size = _from_environment(_SECONDS, defaults.seconds), _from_environment(_BYTES, defaults.bytes)
        set_evaluation_limits(seconds, int(size))
    return _limits[0]


def set_evaluation_limits(seconds: float | None = None, bytes: int | None = None) -> EvaluationLimits:
    """Set the limits for values that are computed before a run.

    Such values are computed while a graph is built, opened, shown, explained or compared. A value beyond them is unknown until the graph runs, and so may be shapes that depend on it. Values that are unknown in a graph stay
    so: raise the limits first, then open the file. The environment variables `GRAPHLOUPE_EVALUATION_SECONDS` and
    `GRAPHLOUPE_EVALUATION_BYTES` set them for a whole process, such as `python -m graphcore view`.

    Args:
        seconds: processor time in seconds for opening one graph; unchanged if None. 2 by default.
        bytes: memory in bytes for opening one graph; unchanged if None. 256 MiB by default.

    Returns:
        The limits in force.

    Raises:
        InvalidArgumentError: a limit is negative.
    """
    before = _limits[0] if _limits else EvaluationLimits()
    limits = EvaluationLimits(before.seconds if seconds is None else float(seconds), before.bytes if bytes is None else int(bytes))
    if not limits.seconds >= 0 or limits.bytes < 0:
        raise InvalidArgumentError(f"Limits of evaluation must not be negative, got {limits.seconds} seconds and {limits.bytes} bytes")
    _limits[:] = [limits]
    return limits


@critical_contextmanager
def one_budget(budget: Budget | None = None) -> Iterator[Budget]:
    """Charge all evaluation within the block to one budget.

    That is the budget of a block around it, else `budget`, else a new one.
    """
    outer = _state.budget
    if outer is not None:
        yield outer
        return
    _state.budget = Budget(evaluation_limits()) if budget is None else budget
    try:
        yield _state.budget
    finally:
        _state.budget = None


def budget_of_block() -> Budget | None:
    """The budget of a block around, None outside of one."""
    return _state.budget


def within_one_budget(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Decorate a function: all evaluation during a call is charged to one budget; see `one_budget`."""

    @wraps(function)
    def charged(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        if _state.budget is not None:
            return function(*args, **kwargs)
        try:  # faster than `one_budget`; Ctrl-C comes at calls, and the clean-up has none
            _state.budget = Budget(evaluation_limits())
            return function(*args, **kwargs)
        finally:
            _state.budget = None

    return charged


def charge_outputs(node: str, count: int) -> None:
    """Charge the outputs of a node to the budget of a block around: a short attr can ask for millions.

    Raises:
        ResourceExhaustedError: they do not fit.
    """
    budget = _state.budget
    if count <= FEW_OUTPUTS or budget is None:
        return
    budget.bytes -= count * _BYTES_OF_OUTPUT
    if budget.bytes < 0:
        raise ResourceExhaustedError(
            f"Node '{node}' has {count:,} outputs, more than the budget for opening a graph allows; "
            "gc.set_evaluation_limits(bytes=...) raises it",
            node=node,
        )


def may_take_steps(count: int) -> bool:
    """Charge steps to the budget of a block around, if there is one. False if its time is used up."""
    budget = _state.budget
    return budget is None or budget.charge_steps(count)


def _from_environment(name: str, default: float) -> float:
    text = os.environ.get(name)
    if text is None:
        return default
    try:
        return float(text)
    except ValueError:
        raise InvalidArgumentError(f"The environment variable {name} must be a number, got {text!r}") from None


def _in_words(size: int) -> str:
    return f"{size / MIB:,.1f} MiB" if size >= MIB else f"{size:,} bytes"
