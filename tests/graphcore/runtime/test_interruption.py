"""Interrupted kernels and runs: control returns at once, and all state is intact."""

from __future__ import annotations

import gc as collector
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import DeadlineExceededError, InvalidArgumentError
from graphcore.kernel_context import KernelContext
from graphcore.opset.numerics import philox
from graphcore.placement.node_costs import cost_by_first_input
from graphcore.registry import OpRegistration, op_registry
from graphcore.runtime.core.interruptible_call import AbandonedCallError, InterruptibleCall, call_interruptibly
from graphcore.runtime.plan import parallel
from tests.graphcore.runtime.loop_graphs import op, while_loop
from tests.support.threads import LiveThreads

SIZE = 6_000
LIMIT = 500
"""Milliseconds of a run whose kernel does not end: enough for it to begin on a machine that has other work."""
ENGINES = pytest.mark.parametrize("engine", ["plan", "dataflow"])
_behaviour: dict[str, Callable[[Any], Any]] = {}


def _now(x: Any) -> Any:
    return _behaviour["now"](x)


def _kernel(_context: KernelContext) -> Callable[[Any], Any]:
    return _now


def _same_shape(c: gc.InferenceContext) -> None:
    c.set_output(0, c.input(0))


@pytest.fixture(scope="module", autouse=True)
def held_ops() -> Iterator[None]:
    """Two ops with kernels controlled by a test, one of them stateful."""
    for name in ("HeldKernel", "HeldState"):
        builder = gc.OpDefBuilder(name).input("x: float").output("y: float")
        entry = OpRegistration((builder.set_is_stateful() if name == "HeldState" else builder).finalize(), _same_shape)
        entry.kernel = _kernel
        op_registry.register(entry)
    yield
    for name in ("HeldKernel", "HeldState"):
        del op_registry._by_name[name]  # sweeps over all ops exclude these


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


@pytest.fixture
def no_finalisers() -> Iterator[None]:
    """Errors that end a call are lost in finalisers, by Python's rules; none run here."""
    collector.collect()
    collector.disable()
    yield
    collector.enable()


class Held:
    """A variable updated before and after a kernel that lasts until `gate` is set."""

    def __init__(self, engine: str, op: str = "HeldKernel") -> None:
        self.gate, self.begun, self.ended = threading.Event(), threading.Event(), threading.Event()
        self.x = gc.placeholder(gc.float32, [SIZE], name="x")
        self.w = gc.Variable(np.zeros(SIZE, np.float32), name="w")
        before = self.w.assign_add(self.x)
        with gc.control_dependencies([before]):
            held = gc.get_default_graph().apply_op(op, [self.x], name="held").outputs[0]
        self.step = self.w.assign_add(held * 10.0)
        self.session = gc.Session(engine=engine)
        self.feeds = {self.x: np.ones(SIZE, np.float32)}
        self.session.run(self.w.initializer)
        _behaviour["now"] = lambda x: x
        self.run(timeout_in_ms=60_000)  # planned before, it starts at once
        self.session.run(self.w.initializer)
        self.threads = LiveThreads()
        _behaviour["now"] = self._wait

    def _wait(self, x: Any) -> Any:
        self.begun.set()
        assert self.gate.wait(60)
        self.ended.set()
        return x

    def run(self, **options: Any) -> Any:
        return self.session.run(self.step, self.feeds, gc.RunOptions(**options) if options else None)

    def check_afterwards(self) -> None:
        """Check that only the first update was made, and that the thread ends with its kernel."""
        assert set(self.session.run(self.w)) == {1.0}
        _behaviour["now"] = lambda x: x
        assert set(self.run()) == {12.0}
        self.check_threads()
        assert set(self.session.run(self.w)) == {12.0}

    def check_threads(self) -> None:
        """Check that no thread is left once the kernel has ended."""
        self.gate.set()
        self.threads.check_none_is_left(within=30)


@ENGINES
def test_a_timeout_does_not_wait_for_the_end_of_one_long_call(engine: str) -> None:
    held = Held(engine)
    with pytest.raises(DeadlineExceededError) as caught:
        held.run(timeout_in_ms=LIMIT)
    assert not held.ended.is_set()
    assert (caught.value.node, caught.value.op) == ("held", "HeldKernel")
    assert f"{LIMIT} ms" in caught.value.message
    assert caught.value.source is not None
    held.check_afterwards()


@ENGINES
def test_a_timeout_ends_a_kernel_made_of_many_calls_where_it_is(engine: str) -> None:
    held = Held(engine)

    def endless(x: Any) -> Any:
        try:
            while True:
                x = np.tanh(x)
        finally:
            held.ended.set()

    _behaviour["now"] = endless
    with pytest.raises(DeadlineExceededError) as caught:
        held.run(timeout_in_ms=LIMIT)
    assert caught.value.node == "held"
    assert held.ended.wait(30)
    held.check_afterwards()


@ENGINES
def test_a_kernel_with_state_is_waited_for_when_the_time_is_over(engine: str) -> None:
    held = Held(engine, "HeldState")

    def open_late() -> None:
        assert held.begun.wait(30)
        time.sleep(1.2 * LIMIT / 1000)  # the limit began before
        held.gate.set()

    opener = threading.Thread(target=open_late)
    opener.start()
    with pytest.raises(DeadlineExceededError):
        held.run(timeout_in_ms=LIMIT)
    opener.join()
    assert held.ended.is_set()
    held.check_afterwards()


@ENGINES
def test_a_timeout_leaves_a_long_call_within_a_function(engine: str) -> None:
    held = Held(engine)

    @gc.function
    def body(x: gc.Tensor) -> gc.Tensor:
        return gc.exp(x.graph.apply_op("HeldKernel", [x], name="inner").outputs[0])

    y = body(held.x) + 1.0
    _behaviour["now"] = lambda x: x
    held.session.run(y, held.feeds)  # planned before, it starts at once
    _behaviour["now"] = held._wait
    with pytest.raises(DeadlineExceededError, match="HeldKernel"):
        held.session.run(y, held.feeds, gc.RunOptions(timeout_in_ms=LIMIT))
    assert not held.ended.is_set()
    held.check_threads()


@ENGINES
@pytest.mark.parametrize("timeout", [0, 60_000])
def test_ctrl_c_does_not_wait_for_the_end_of_one_long_kernel(timeout: int, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "LONG_FROM", 1.0)
    held, main = Held(engine), threading.main_thread().ident or 0

    def press() -> None:
        assert held.begun.wait(30)
        time.sleep(0.1)
        signal.pthread_kill(main, signal.SIGINT)  # a real signal: it wakes threads that wait for a lock

    presser = threading.Thread(target=press)
    presser.start()
    with pytest.raises(KeyboardInterrupt) as caught:
        held.run(**({"timeout_in_ms": timeout} if timeout else {}))
    presser.join()
    assert not held.ended.is_set()
    assert any("stopped while running" in note and "HeldKernel" in note for note in caught.value.__notes__)
    held.check_afterwards()


def endless_work(kind: str) -> tuple[gc.Tensor, dict[Any, Any]]:
    """Work of minutes, with its feeds: a slow kernel, or a loop of kernels within one node."""
    if kind == "while":
        start = gc.placeholder(gc.int32, [], name="start")
        return gc.while_loop(lambda i: i < 1_000_000_000, lambda i: [i + 1], start), {start: 0}
    count = 6_000
    values = gc.placeholder(gc.int64, [count], name="values")
    places = np.stack([np.zeros(count, np.int64), np.arange(count)], 1)
    sparse = [gc.constant(places), values, gc.constant(np.array([1, count]))]
    return gc.ops.edit_distance(*sparse, *sparse), {values: np.arange(count)}


def press_when_within(thread: int, functions: set[str]) -> None:
    """Press Ctrl-C while `thread` is in one of the functions, of an engine or kernel, for some time."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        frame, found = sys._current_frames().get(thread), set()
        while frame is not None:
            found.add("plan" if frame.f_code.co_filename.startswith("<graphcore plan") else frame.f_code.co_name)
            frame = frame.f_back
        if found & functions:
            time.sleep(0.2)
            signal.pthread_kill(thread, signal.SIGINT)
            return
        time.sleep(0.01)


@pytest.mark.slow
@ENGINES
@pytest.mark.usefixtures("no_finalisers")
@pytest.mark.parametrize("how", ["timeout", "ctrl-c"])
@pytest.mark.parametrize("kind", ["edit distance", "while"])
def test_work_of_many_calls_ends_where_it_is_and_leaves_no_thread(kind: str, how: str, engine: str) -> None:
    work, feeds = endless_work(kind)
    session, before, main = gc.Session(engine=engine), LiveThreads(), threading.main_thread().ident or 0
    if how == "timeout":
        with pytest.raises(DeadlineExceededError):
            session.run(work, feeds, options=gc.RunOptions(timeout_in_ms=LIMIT))
    else:
        presser = threading.Thread(target=press_when_within, args=(main, {"levenshtein"} if kind == "edit distance" else {"_turn", "plan"}))
        presser.start()
        with pytest.raises(KeyboardInterrupt):
            session.run(work, feeds)
        presser.join()
    before.check_none_is_left(within=30)
    assert session.run(gc.constant(3.0)) == 3.0


def endless_loop() -> gc.Tensor:
    """A loop that makes no calls."""
    return while_loop(lambda i: op("GreaterEqual", [i, i]), lambda i: [op("AddV2", [i, i])], [gc.constant(0)])[0]


def receiving() -> gc.Tensor:
    """A node that waits for a value that is never sent."""
    cpu = "/job:localhost/replica:0/task:0/device:CPU:0"
    attrs = {"tensor_type": gc.float32, "tensor_name": "v", "send_device": cpu, "send_device_incarnation": 1, "recv_device": cpu}
    return gc.get_default_graph().apply_op("_Recv", [], attrs, "received").outputs[0]


@ENGINES
@pytest.mark.parametrize("timeout", [0, 60_000], ids=["unlimited", "limited"])
@pytest.mark.parametrize(
    ("make", "ops"),
    [(endless_loop, {"GreaterEqual", "AddV2", "LoopCond", "Merge", "Switch", "NextIteration", "Exit", "Identity"}), (receiving, {"_Recv"})],
)
def test_ctrl_c_names_the_node_wherever_it_comes(make: Callable[[], gc.Tensor], ops: set[str], timeout: int, engine: str) -> None:
    endless = make()
    session, main = gc.Session(engine=engine), threading.main_thread().ident or 0
    options = gc.RunOptions(timeout_in_ms=timeout) if timeout else None
    presser = threading.Thread(target=press_when_within, args=(main, {"run", "_turn", "recv", "wait"}))
    presser.start()
    with pytest.raises(KeyboardInterrupt) as caught:
        session.run(endless, options=options)
    presser.join()
    [note] = caught.value.__notes__
    name = note.partition("'")[2].partition("'")[0]
    assert note.startswith("stopped while running")
    assert session.graph.get_operation_by_name(name).op in ops
    assert session.run(gc.constant(3.0)) == 3.0


@ENGINES
def test_a_timeout_does_not_wait_for_numbers_to_be_drawn(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, gate = threading.Event(), threading.Event()

    def normal(*_arguments: Any) -> Any:
        begun.set()
        assert gate.wait(60)

    x = gc.random_normal([SIZE], seed=1)
    session = gc.Session(engine=engine)
    session.run(x)
    second = gc.Session(engine=engine)
    threads = LiveThreads()
    with monkeypatch.context() as patch:
        patch.setattr(philox, "normal", normal)
        with pytest.raises(DeadlineExceededError) as caught:
            second.run(x, options=gc.RunOptions(timeout_in_ms=LIMIT))
    assert begun.is_set()
    assert caught.value.op == "RandomStandardNormal"
    gate.set()
    threads.check_none_is_left(within=30)
    assert (second.run(x) == session.run(x)).all()


def test_kernels_that_take_long_are_called_interruptibly_and_others_are_not() -> None:
    large = gc.placeholder(gc.float32, [4_000, 4_000], name="large")
    small = gc.placeholder(gc.float32, [100, 100], name="small")
    session = gc.Session()
    assert "interruptible(dot, feed0, feed0)" in session.plan(large @ large, {large: None}).source
    assert "interruptible" not in session.plan(small @ small, {small: None}).source
    assert "interruptible" not in session.plan(large + 1.0, {large: None}).source


def test_the_error_of_a_long_kernel_names_its_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "LONG_FROM", 1.0)

    def failing(_x: Any) -> Any:
        raise ValueError("no good")

    for engine in ("plan", "dataflow"):
        held = Held(engine)
        _behaviour["now"] = failing
        with pytest.raises(InvalidArgumentError, match="no good") as caught:
            held.run()
        assert caught.value.node == held.step.node.inputs[1].node.inputs[0].node.name
        held.check_afterwards()


def test_an_interruptible_call_returns_and_raises_as_its_function() -> None:
    assert call_interruptibly(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        call_interruptibly(divmod, 7, 0)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        call_interruptibly(np.exp, np.array([1e9]))


def test_leaving_a_call_that_is_over_or_about_to_end_harms_nobody() -> None:
    before = LiveThreads()
    for _ in range(200):
        call = InterruptibleCall(sum, range(50))
        call.abandon()
        try:
            assert call.result() == 1225
        except AbandonedCallError:
            continue
    over = InterruptibleCall(sum, [1, 2])
    assert over.wait(30)
    over.abandon()
    assert over.result() == 3
    before.check_none_is_left()


@ENGINES
@pytest.mark.parametrize("has_begun", [False, True])
def test_ctrl_c_while_the_thread_of_a_run_begins_ends_the_run_too(has_begun: bool, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held(engine)
    start, begun = threading.Thread.start, threading.Event()

    def interrupted(thread: threading.Thread) -> None:
        if thread.name != "graphcore-call" or begun.is_set():
            start(thread)
            return
        begun.set()
        if not has_begun:
            later = threading.Timer(0.3, start, (thread,))
            start(later)
        else:
            start(thread)
            assert held.begun.wait(30)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        held.run(timeout_in_ms=60_000)
    time.sleep(0.5)
    held.gate.set()
    held.check_threads()
    assert set(held.session.run(held.w)) == {float(has_begun)}  # the second update is never made


@ENGINES
@pytest.mark.parametrize("op", ["MatrixInverse", "FFT", "TopKV2", "Unique"])
def test_kernels_of_which_only_the_arrays_tell_that_they_take_long_are_called_interruptibly(
    op: str, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = gc.placeholder(gc.complex64 if op == "FFT" else gc.float32, [None, None] if op == "MatrixInverse" else [None], name="x")
    y = gc.get_default_graph().apply_op(op, [x, 1] if op == "TopKV2" else [x]).outputs[0]
    called: list[Any] = []

    def recorded(kernel: Callable[..., Any], *arguments: Any) -> Any:
        called.append(arguments[0].shape)
        return kernel(*arguments)

    monkeypatch.setattr(parallel, "call_interruptibly", recorded)
    session = gc.Session(engine=engine)
    small, large = (np.eye(size) if op == "MatrixInverse" else np.arange(float(size)) for size in (3, 40))
    monkeypatch.setattr(parallel, "LONG_FROM", cost_by_first_input(gc.op_registry.look_up(op).traits.cost, large.shape))
    expected = session.run(y, {x: small})
    assert called == []
    session.run(y, {x: large})
    assert called == [large.shape]
    np.testing.assert_array_equal(session.run(y, {x: small}), expected)


def test_a_kernel_of_known_shape_that_sorts_or_transforms_is_called_interruptibly_when_it_takes_long() -> None:
    session = gc.Session()
    for size, is_interruptible in ((100, False), (50_000_000, True)):
        x = gc.placeholder(gc.float32, [size])
        for y in (gc.get_default_graph().apply_op("TopKV2", [x, 1]), gc.get_default_graph().apply_op("Unique", [x])):
            assert ("interruptible(" in session.plan(y.outputs[0], {x: None}).source) is is_interruptible
