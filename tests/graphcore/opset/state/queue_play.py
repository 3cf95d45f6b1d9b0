"""Plays the scenarios of queues in a session of this project."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import graphcore as gc
from tests.support.queue_scenarios import SCENARIOS

_MOST = 30.0


class Side:
    """See `queue_scenarios.Side`."""

    def __init__(self, session: gc.Session) -> None:
        self.session = session

    def node(self, op: str, inputs: Sequence[Any], attrs: dict[str, Any], name: str) -> Any:
        chosen = dict(attrs)
        if "shapes" in chosen:
            chosen["shapes"] = [gc.Shape(shape) for shape in chosen["shapes"]]
        node = self.session.graph.apply_op(op, list(inputs), chosen, name)
        return node.outputs[0] if node.outputs else node

    def outputs(self, node: Any) -> Any:
        return list(node.node.outputs)

    def run(self, what: Any) -> Any:
        return self.session.run(what)

    def text(self, error: Exception) -> str:
        return str(getattr(error, "message", error)).split("\n")[0]

    def wait_until_blocked(self, queue: Any, enqueues: int, dequeues: int) -> None:
        wait_until_blocked(self.session, queue, enqueues, dequeues)


def wait_until_blocked(session: gc.Session, handle: Any, enqueues: int, dequeues: int) -> None:
    """Wait until so many enqueues (or closes) and dequeues are blocked at a queue."""
    end = time.monotonic() + _MOST
    found = None
    while found != (enqueues, dequeues):
        held = session.run(handle)
        found = getattr(held, "waiting", None)
        assert time.monotonic() < end, f"{found} wait, required {(enqueues, dequeues)}"
        time.sleep(0.002)


def play(name: str) -> Any:
    """The outcome of a scenario here."""
    with gc.Graph().as_default(), gc.Session() as session:
        return SCENARIOS[name](Side(session))
