"""Failing runs: errors name node, line and inputs; session, variables and threads stay intact."""

from __future__ import annotations

import _thread
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import (
    AbortedError,
    CancelledError,
    DeadlineExceededError,
    GraphError,
    InternalError,
    InvalidArgumentError,
    ResourceExhaustedError,
    UnimplementedError,
)
from graphcore.kernel_context import KernelContext, RefVariable
from graphcore.registry import OpRegistration, op_registry
from graphcore.runtime.core import timed_run as watching
from graphcore.runtime.core.program import current
from tests.support.threads import LiveThreads

LIMIT = 500
"""Milliseconds of a run that is to be stopped in the middle: enough for it to begin on a machine that has other work."""
Behaviour = Callable[[Any], Any]
_behaviour: dict[str, Behaviour] = {}


def _faulty_kernel(k: KernelContext) -> Callable[[Any], Any]:
    def kernel(x: Any) -> Any:
        return _behaviour["now"](x)  # the current behaviour, not that at the kernel's creation

    return kernel


def _same_shapes(c: gc.InferenceContext) -> None:
    for i in range(c.num_outputs):
        c.set_output(i, c.input(0))


@pytest.fixture(scope="module", autouse=True)
def faulty_ops() -> Iterator[None]:
    """Two ops with kernels controlled by a test."""
    ops = {"FaultyKernel": ("y",), "FaultyPair": ("y", "z")}
    for name, outputs in ops.items():
        builder = gc.OpDefBuilder(name).input("x: float")
        for output in outputs:
            builder = builder.output(f"{output}: float")
        entry = OpRegistration(builder.finalize(), _same_shapes)
        entry.kernel = _faulty_kernel
        op_registry.register(entry)
    yield
    for name in ops:
        del op_registry._by_name[name]  # sweeps over all ops exclude these


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


class Setting:
    """Two variables updated in sequence, with a faulty node between."""

    def __init__(self, behaviour: Behaviour, engine: str, op: str = "FaultyKernel") -> None:
        _behaviour["now"] = behaviour
        self.x = gc.placeholder(gc.float32, [3], name="x")
        self.first = gc.Variable(np.zeros(3, np.float32), name="first")
        self.second = gc.Variable(np.zeros(3, np.float32), name="second")
        before = self.first.assign_add(self.x)
        with gc.control_dependencies([before]):
            self.faulty = gc.get_default_graph().apply_op(op, [self.x], name="faulty").outputs[0]
        self.after = self.faulty + 1.0
        self.step = self.second.assign_add(self.after)
        self.session = gc.Session(engine=engine)
        self.session.run(gc.initialize_all_variables())
        self.threads = LiveThreads()

    def run(self, **options: Any) -> Any:
        return self.session.run(self.step, {self.x: [1, 2, 3]}, **options)

    def check_afterwards(self, first: list[float] | None = None) -> None:
        """Check that variables are whole, the session works, and no thread is left."""
        assert self.session.run(self.first).tolist() == (first or [1, 2, 3])
        assert self.session.run(self.second).tolist() == [0, 0, 0]
        _behaviour["now"] = lambda x: x * 2
        assert self.run().tolist() == [3, 5, 7]
        self.threads.check_none_is_left()


def its_time_ends(x: Any) -> Any:
    """A kernel during which the time limit of its run expires."""
    assert current.step is not None
    current.step.deadline = time.monotonic()
    return x


def until_cancelled(x: Any) -> Any:
    """A kernel that lasts until its run is cancelled."""
    assert current.step is not None
    assert current.step.cancellation is not None
    ended, until = current.step.cancellation, time.monotonic() + 60
    while not ended.is_cancelled():
        assert time.monotonic() < until
        time.sleep(0.001)
    return x


ENGINES = pytest.mark.parametrize("engine", ["plan", "dataflow"])


def raises(error: Exception) -> Behaviour:
    def kernel(_x: Any) -> Any:
        raise error

    return kernel


@ENGINES
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ValueError("no good"), InvalidArgumentError),
        (ZeroDivisionError("by zero"), GraphError),
        (MemoryError("Unable to allocate"), ResourceExhaustedError),
        (InternalError("broken"), InternalError),
    ],
)
def test_an_exception_in_a_kernel_names_node_line_and_inputs(error: Exception, kind: type[GraphError], engine: str) -> None:
    setting = Setting(raises(error), engine)
    with pytest.raises(kind) as caught:
        setting.run()
    assert (caught.value.node, caught.value.op) == ("faulty", "FaultyKernel")
    assert caught.value.source is not None
    assert "apply_op(op" in caught.value.source.text
    if not isinstance(error, GraphError):
        assert "x:0 float [3]" in caught.value.message
        assert caught.value.__cause__ is error
    setting.check_afterwards()


@ENGINES
@pytest.mark.parametrize(
    ("behaviour", "got"),
    [
        (lambda x: x.astype(np.float64), "float64 [3]"),
        (lambda x: x[:2], "float32 [2]"),
        (lambda x: x.reshape(3, 1), "float32 [3,1]"),
        (lambda _: None, "nothing"),
        (lambda _: 1.0, "float"),
    ],
    ids=["dtype", "size", "rank", "unset", "no array"],
)
def test_a_kernel_that_gives_another_type_or_shape_than_declared_is_an_internal_error(behaviour: Behaviour, got: str, engine: str) -> None:
    setting = Setting(behaviour, engine)
    with pytest.raises(InternalError) as caught:
        setting.run()
    assert caught.value.node == "faulty"
    assert got in caught.value.message
    setting.check_afterwards()


@ENGINES
@pytest.mark.parametrize("behaviour", [lambda x: (x,), lambda x: (x, x, x), lambda x: (x, None), lambda _: None])
def test_a_kernel_that_leaves_a_declared_output_unset_is_an_internal_error(behaviour: Behaviour, engine: str) -> None:
    setting = Setting(behaviour, engine, "FaultyPair")
    with pytest.raises(InternalError) as caught:
        setting.run()
    assert caught.value.node == "faulty"
    _behaviour["now"] = lambda x: (x * 2, x)
    assert setting.run().tolist() == [3, 5, 7]


@ENGINES
@pytest.mark.parametrize(
    ("slow", "limit"), [(its_time_ends, 60_000), (until_cancelled, LIMIT)], ids=["the run notices", "who waits notices"]
)
def test_a_run_that_takes_too_long_is_stopped_before_the_next_node(
    slow: Behaviour, limit: int, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "PATIENCE", 30.0)  # the kernel ends by itself, however busy the machine is
    setting = Setting(lambda x: x, engine)
    setting.run()  # planned before, it starts at once
    setting.session.run(gc.initialize_all_variables())
    _behaviour["now"] = slow
    with pytest.raises(DeadlineExceededError) as caught:
        setting.run(options=gc.RunOptions(timeout_in_ms=limit))
    assert f"{limit} ms" in caught.value.message
    assert (caught.value.node, caught.value.op) == (setting.after.node.name, "AddV2")
    setting.check_afterwards()


def test_a_time_limit_is_no_negative_number() -> None:
    with pytest.raises(InvalidArgumentError, match="timeout_in_ms: required milliseconds, or 0 for as long as it takes, got -5"):
        gc.RunOptions(timeout_in_ms=-5)
    with pytest.raises(InvalidArgumentError, match="operation_timeout_in_ms"):
        gc.SessionOptions(operation_timeout_in_ms=-1)


def test_a_session_may_limit_all_its_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "PATIENCE", 30.0)
    setting = Setting(until_cancelled, "auto")
    session = gc.Session(options=gc.SessionOptions(operation_timeout_in_ms=LIMIT))
    session.run(gc.initialize_all_variables())
    with pytest.raises(DeadlineExceededError, match=f"{LIMIT} ms"):
        session.run(setting.step, {setting.x: [1, 2, 3]})


@ENGINES
def test_a_run_in_time_is_not_stopped(engine: str) -> None:
    setting = Setting(lambda x: x, engine)
    assert setting.run(options=gc.RunOptions(timeout_in_ms=20_000)).tolist() == [2, 3, 4]
    setting.threads.check_none_is_left()


@ENGINES
def test_ctrl_c_in_a_kernel_stops_the_run(engine: str) -> None:
    setting = Setting(raises(KeyboardInterrupt()), engine)  # type: ignore[arg-type]  # KeyboardInterrupt is no Exception
    with pytest.raises(KeyboardInterrupt):
        setting.run()
    setting.check_afterwards()


def test_ctrl_c_in_a_long_sequence_of_kernels_names_the_node() -> None:
    x = gc.placeholder(gc.float32, [50, 50], name="x")
    w = gc.Variable(np.ones((50, 50), np.float32), name="w")
    y = x
    for _ in range(1000):
        y = gc.tanh(y @ x)
    step = w.assign(y)
    session = gc.Session()
    session.run(w.initializer)
    feeds = {x: np.eye(50, dtype=np.float32)}
    session.run(step, feeds)
    threads = LiveThreads()
    until = time.monotonic() + 20

    def run_until_stopped() -> None:
        while time.monotonic() < until:
            session.run(step, feeds)

    timer = threading.Timer(0.2, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt) as caught:
        run_until_stopped()
    timer.join()
    notes = "\n".join(getattr(caught.value, "__notes__", []))
    assert not notes or "stopped while running" in notes  # between two runs there is no node to name
    threads.check_none_is_left()
    assert session.run(w).shape == (50, 50)
    session.run(step, feeds)


def test_a_tensor_that_can_never_fit_is_refused_with_its_size_before_it_is_made() -> None:
    x = gc.placeholder(gc.float32, [1_000_000, 1], name="x")
    huge = gc.matmul(x, x, transpose_b=True, name="huge")
    with pytest.raises(ResourceExhaustedError) as caught:
        gc.Session().run(huge, {x: np.zeros((1_000_000, 1), np.float32)})
    assert "3725.29 GiB" in caught.value.message
    assert (caught.value.node, caught.value.op) == ("huge", "MatMul")
    assert caught.value.source is not None
    assert "[1000000,1]" in caught.value.message


@ENGINES
@pytest.mark.parametrize("op", ["Fill", "RandomUniform", "BroadcastTo", "add"])
def test_a_size_known_only_when_it_runs_is_refused_too(op: str, engine: str) -> None:
    n = gc.placeholder(gc.int32, [2], name="n")
    a = gc.placeholder(gc.float32, [None, 1], name="a")
    feeds: dict[Any, Any] = {n: [1_000_000, 1_000_000]}
    if op == "Fill":
        huge = gc.ops.fill(n, 1.0)
    elif op == "RandomUniform":
        huge = gc.random_uniform(n)
    elif op == "BroadcastTo":
        huge = gc.negative(gc.ops.broadcast_to(gc.constant(1.0), n))
    else:
        huge = a + gc.transpose(a, [1, 0])
        feeds = {a: np.zeros((1_000_000, 1), np.float32)}
    session = gc.Session(engine=engine)
    with pytest.raises(ResourceExhaustedError, match="GiB"):
        session.run(huge, feeds)
    small = {n: [2, 2]} if n in feeds else {a: np.zeros((2, 1), np.float32)}
    assert session.run(huge, small).shape == (2, 2)


def test_a_reference_that_gets_another_type_is_an_internal_error() -> None:
    w = gc.Variable(np.zeros(3, np.float32), name="w")
    session = gc.Session()
    session.run(w.initializer)
    (storage,) = session.resources.variables.values()
    with pytest.raises(InternalError, match="float64"):
        storage.assign(np.zeros(3, np.float64))
    assert session.run(w).tolist() == [0, 0, 0]


@ENGINES
def test_a_variable_that_is_fed_cannot_be_assigned(engine: str) -> None:
    w = gc.Variable(np.zeros(3, np.float32), name="w")
    step = w.assign_add([1.0, 1.0, 1.0])
    with pytest.raises(InvalidArgumentError) as caught:
        gc.Session(engine=engine).run(step, {w: [0, 0, 0]})
    assert caught.value.node == "AssignAdd"


DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"


def receiving() -> tuple[gc.Tensor, str]:
    attrs = {"tensor_type": gc.float32, "tensor_name": "v", "send_device": DEVICE, "send_device_incarnation": 1, "recv_device": DEVICE}
    received = gc.get_default_graph().apply_op("_Recv", [], attrs, "received").outputs[0]
    return gc.exp(received), gc.create_key(DEVICE, 1, DEVICE, "v")


@ENGINES
def test_a_received_value_of_the_wrong_type_aborts_the_rendezvous_with_that_error(engine: str) -> None:
    y, key = receiving()
    session = gc.Session(engine=engine)
    met = session.rendezvous
    met.send(key, None, np.zeros(2, np.int32))
    with pytest.raises(InternalError, match="expected to receive float"):
        session.run(y)
    with pytest.raises(InternalError, match="expected to receive float"):
        met.recv("other")
    session.rendezvous.send(key, None, np.zeros(2, np.float32))
    assert session.run(y).tolist() == [1, 1]


@ENGINES
def test_a_produced_value_of_the_wrong_type_aborts_the_rendezvous_with_that_error(engine: str) -> None:
    _behaviour["now"] = lambda x: x.astype(np.float64)
    x = gc.placeholder(gc.float32, [2], name="x")
    bad = gc.get_default_graph().apply_op("FaultyKernel", [x], name="bad").outputs[0]
    attrs = {"tensor_name": "v", "send_device": DEVICE, "send_device_incarnation": 1, "recv_device": DEVICE}
    sending = gc.get_default_graph().apply_op("_Send", [bad], attrs)
    session = gc.Session(engine=engine)
    met = session.rendezvous
    with pytest.raises(InternalError, match=r"double does not match declared output type float for node \{\{node bad\}\}"):
        session.run(sending, {x: [1.0, 2.0]})
    with pytest.raises(InternalError, match="does not match declared output type"):
        met.recv(gc.create_key(DEVICE, 1, DEVICE, "v"), timeout=5)


def test_a_plan_is_refused_if_a_node_receives_from_the_same_run() -> None:
    y, _key = receiving()
    x = gc.placeholder(gc.float32, [2], name="x")
    attrs = {"tensor_name": "v", "send_device": DEVICE, "send_device_incarnation": 1, "recv_device": DEVICE}
    sending = gc.get_default_graph().apply_op("_Send", [x], attrs, "sending")
    with pytest.raises(UnimplementedError, match=r"'received' \(op _Recv\) waits for what 'sending' \(op _Send\) of the same run sends"):
        gc.Session(engine="plan").run([y, sending], {x: [0.0, 0.0]})
    for engine in ("auto", "dataflow"):
        assert gc.Session(engine=engine).run([y, sending], {x: [0.0, 0.0]})[0].tolist() == [1, 1]


@ENGINES
def test_a_run_that_waits_for_a_value_ends_when_its_time_is_over(engine: str) -> None:
    y, key = receiving()
    session = gc.Session(engine=engine)
    threads = LiveThreads()
    with pytest.raises(DeadlineExceededError) as caught:
        session.run(y, options=gc.RunOptions(timeout_in_ms=LIMIT))
    assert (caught.value.node, caught.value.op) == ("received", "_Recv")
    assert caught.value.source is not None
    threads.check_none_is_left()
    session.rendezvous.send(key, None, np.zeros(2, np.float32))
    assert session.run(y).tolist() == [1, 1]


@ENGINES
def test_closing_a_session_ends_its_runs_that_wait(engine: str) -> None:
    y, _key = receiving()
    session = gc.Session(engine=engine)
    caught: list[BaseException] = []

    def run() -> None:
        try:
            session.run(y)
        except GraphError as error:
            caught.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.05)
    session.close()
    thread.join(5)
    assert not thread.is_alive()
    assert isinstance(caught[0], CancelledError)


@ENGINES
def test_a_timeout_reaches_into_functions(engine: str) -> None:
    _behaviour["now"] = its_time_ends

    @gc.function
    def slow(x: gc.Tensor) -> gc.Tensor:
        y = x.graph.apply_op("FaultyKernel", [x]).outputs[0]
        return gc.exp(y)

    x = gc.placeholder(gc.float32, [3], name="x")
    session = gc.Session(engine=engine)
    with pytest.raises(DeadlineExceededError) as caught:
        session.run(slow(x) + 1.0, {x: [1, 2, 3]}, options=gc.RunOptions(timeout_in_ms=60_000))
    assert caught.value.op == "Exp"


@ENGINES
def test_ex_a_value_of_the_wrong_type_that_a_kernel_gives_aborts_the_rendezvous_with_that_error(engine: str) -> None:
    y, key = receiving()
    broken = gc.get_default_graph().apply_op("FaultyKernel", [y], name="faulty").outputs[0]
    _behaviour["now"] = lambda x: x.astype(np.float64)
    session = gc.Session(engine=engine)
    met = session.rendezvous
    met.send(key, None, np.zeros(2, np.float32))
    with pytest.raises(InternalError, match="does not match declared output type float") as caught:
        session.run(broken)
    assert caught.value.node == "faulty"
    with pytest.raises(InternalError, match="does not match declared output type float"):
        met.recv("other")
    _behaviour["now"] = lambda x: x * 2
    session.rendezvous.send(key, None, np.zeros(2, np.float32))
    assert session.run(broken).tolist() == [2, 2]


@pytest.mark.parametrize("engine", ["auto", "plan", "dataflow"])
def test_ex_a_reference_that_gets_another_type_ends_the_run_and_aborts_the_rendezvous(engine: str) -> None:
    other = RefVariable("other", gc.float64, gc.Shape([]))
    other.assign(np.array(1.0))
    entry = OpRegistration(gc.OpDefBuilder("FaultyVariable").output("v: Ref(float)").finalize(), lambda c: c.set_output(0, c.scalar()))
    entry.kernel = lambda _: lambda: other
    op_registry.register(entry)
    try:
        bad = gc.get_default_graph().apply_op("FaultyVariable", [], name="bad").outputs[0]
        attrs = {"tensor_name": "v", "send_device": DEVICE, "send_device_incarnation": 1, "recv_device": DEVICE}
        sending = gc.get_default_graph().apply_op("_Send", [gc.identity(bad)], attrs)
        session = gc.Session(engine=engine)
        met = session.rendezvous
        text = r"Output 0 of type double_ref does not match declared output type float_ref for node \{\{node bad\}\}"
        with pytest.raises(InternalError, match=text):
            session.run(sending)
        with pytest.raises(InternalError, match=text):
            met.recv(gc.create_key(DEVICE, 1, DEVICE, "v"), timeout=5)
    finally:
        del op_registry._by_name["FaultyVariable"]


@pytest.mark.parametrize("engine", ["auto", "plan", "dataflow"])
def test_ex_aborting_while_a_run_waits_ends_it_and_every_later_receive_with_that_status(engine: str) -> None:
    y, key = receiving()
    session = gc.Session(engine=engine)
    met = session.rendezvous
    timer = threading.Timer(0.05, lambda: met.start_abort(AbortedError("enough")))
    timer.start()
    with pytest.raises(AbortedError, match="enough") as caught:
        session.run(y)
    timer.join()
    assert caught.value.node == "received"
    with pytest.raises(AbortedError, match="enough"):
        met.recv(key, timeout=5)


def test_ex_a_session_takes_the_dataflow_engine_if_a_dead_value_may_be_received() -> None:
    y, key = receiving()
    attrs = {"tensor_name": "out", "send_device": DEVICE, "send_device_incarnation": 1, "recv_device": DEVICE}
    sending = gc.get_default_graph().apply_op("_Send", [y], attrs)
    session = gc.Session()
    session.rendezvous.send(key, None, None, is_dead=True)
    session.run(sending)
    assert session.rendezvous.recv(gc.create_key(DEVICE, 1, DEVICE, "out"), timeout=5).is_dead
