"""Asynchronous training: each replica changes the shared variables without waiting for the others."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from graphcore.brief import brief
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Node, Tensor, get_default_graph
from graphcore.runtime import Session
from graphcore.tf1.variables.variables import Variable

_LIMITS: Final = {"int32": 2**31 - 1, "int64": 2**63 - 1}
Feeds = Mapping[Any, Any] | Callable[[int, int], Mapping[Any, Any]] | None


def counted(global_step: Variable) -> Tensor:
    """Count a step; the number of steps before it, which no other step gets. -> before: a scalar of the dtype of the variable."""
    op = "ResourceCountUpTo" if global_step.is_resource else "CountUpTo"
    attrs: dict[str, Any] = {"limit": _LIMITS[global_step.dtype.text], "T": global_step.dtype}
    return get_default_graph().apply_op(op, [global_step.handle], attrs, "count").outputs[0]


def checked_step(global_step: Any) -> Variable:
    """Require a variable that counts steps.

    Raises:
        InvalidArgumentError: something else, or another dtype than int32 and int64.
    """
    if not isinstance(global_step, Variable) or global_step.dtype.text not in _LIMITS:
        raise InvalidArgumentError(f"global_step: required a variable of int32 or int64, got {brief(global_step)}")
    return global_step


class AsyncRun(msgspec.Struct, frozen=True, eq=False):
    """The steps of an asynchronous training, by replica.

    Args:
        losses: the loss of each step.
        staleness: the number of steps of other replicas between the read of the variables and their change, for each step.
    """

    losses: list[list[float]]
    staleness: list[list[int]]

    def __repr__(self) -> str:
        lines = ["<gc.train.AsyncRun"]
        for replica, (losses, staleness) in enumerate(zip(self.losses, self.staleness, strict=True)):
            text = f"  replica {replica}: {len(losses)} steps"
            if losses:
                mean = sum(staleness) / len(staleness)
                text += f", last loss {losses[-1]:.4g}, staleness {min(staleness)} to {max(staleness)}, on average {mean:.2f}"
            lines.append(text)
        return "\n".join(lines) + ">"


def run_async(
    losses: Sequence[Tensor], staleness: Sequence[Tensor], train_ops: Sequence[Node], session: Session, steps: int, feeds: Feeds
) -> AsyncRun:
    """Run `steps` steps of each replica, each replica in a thread of its own; see `Replicated.run_async`."""
    stop = threading.Event()
    run = AsyncRun([[] for _ in train_ops], [[] for _ in train_ops])
    failures: list[BaseException] = []

    def work(replica: int) -> None:
        fetches = [losses[replica], staleness[replica], train_ops[replica]]
        try:
            for step in range(steps):
                if stop.is_set():
                    return
                loss, stale, _ = session.run(fetches, feeds(replica, step) if callable(feeds) else feeds)
                run.losses[replica].append(float(loss))
                run.staleness[replica].append(int(stale))
        except BaseException as error:  # noqa: BLE001 - it is raised again in the thread of the caller
            failures.append(error)
            stop.set()

    threads = [threading.Thread(target=work, args=(replica,), name=f"graphcore-replica-{replica}") for replica in range(len(train_ops))]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        stop.set()  # after Ctrl-C each replica ends with its step
        for thread in threads:
            if thread.ident is not None:
                thread.join()
    if failures:
        raise failures[0]
    return run
