"""Random sends, receives, cancellations and aborts agree with a model of one list a key (rules RV)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import graphcore as gc
from graphcore.errors import AbortedError, GraphError

KEYS = [gc.create_key("/device:CPU:0", 1, "/device:CPU:1", name) for name in ("a", "b")]
CANCELLED = "[_Derived_]RecvAsync is cancelled."


class Model(RuleBasedStateMachine):
    """The model: `expected[i]` is the expected result of receive i so far."""

    def __init__(self) -> None:
        super().__init__()
        self.rendezvous = gc.Rendezvous()
        self.managers = [gc.CancellationManager(), gc.CancellationManager()]
        self.cancelled: set[int] = set()
        self.aborted: str | None = None
        self.sent: dict[str, list[tuple[Any, bool]]] = {key: [] for key in KEYS}
        self.waiting: dict[str, list[tuple[int, int | None]]] = {key: [] for key in KEYS}
        self.told: dict[int, list[Any]] = {}
        self.expected: dict[int, list[Any]] = {}
        self.count = 0

    @rule(key=st.sampled_from(KEYS), dead=st.booleans())
    def send(self, key: str, dead: bool) -> None:
        self.count += 1
        if self.aborted is not None:
            with pytest.raises(AbortedError, match=f"^{self.aborted}$"):
                self.rendezvous.send(key, None, self.count, dead)
            return
        self.rendezvous.send(key, None, self.count, dead)
        if self.waiting[key]:
            number, _ = self.waiting[key].pop(0)
            self.expected[number] = [(self.count, dead)]
        else:
            self.sent[key].append((self.count, dead))

    @rule(key=st.sampled_from(KEYS), manager=st.sampled_from([None, 0, 1]))
    def receive(self, key: str, manager: int | None) -> None:
        number = len(self.told)
        told = self.told[number] = []
        self.expected[number] = []

        def done(status: GraphError | None, _sent: Any, _own: Any, value: Any, dead: bool) -> None:
            told.append((value, dead) if status is None else status.message)

        if self.aborted is not None:
            self.expected[number] = [self.aborted]
        elif self.sent[key]:
            self.expected[number] = [self.sent[key].pop(0)]
        elif manager in self.cancelled:
            self.expected[number] = [CANCELLED]
        else:
            self.waiting[key].append((number, manager))
        self.rendezvous.recv_async(key, gc.RendezvousArgs(cancellation_manager=None if manager is None else self.managers[manager]), done)

    @rule(manager=st.sampled_from([0, 1]))
    def cancel(self, manager: int) -> None:
        self.cancelled.add(manager)
        for key in KEYS:
            for number, of in self.waiting[key]:
                if of == manager:
                    self.expected[number] = [CANCELLED]
            self.waiting[key] = [item for item in self.waiting[key] if item[1] != manager]
        self.managers[manager].start_cancel()

    @precondition(lambda self: self.count > 4)
    @rule()
    def abort(self) -> None:
        text = self.aborted or f"aborted after {self.count}"
        for key in KEYS:
            for number, _ in self.waiting[key]:
                self.expected[number] = [text]
            self.waiting[key], self.sent[key] = [], []
        self.rendezvous.start_abort(AbortedError(f"aborted after {self.count}"))
        self.aborted = text

    @invariant()
    def every_receive_was_told_what_the_model_says(self) -> None:
        assert self.told == self.expected


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
