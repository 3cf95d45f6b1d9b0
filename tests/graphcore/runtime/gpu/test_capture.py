"""Plans that are launched as CUDA graphs, on a stand-in for CuPy that records and repeats them."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphcore as gc
from graphcore.kernel_context import on_host
from graphcore.runtime.gpu.gpu import Gpu
from tests.graphcore.runtime.gpu.test_random_graphs_on_gpus import X
from tests.graphcore.runtime.random_programs import NUMBERS, Program
from tests.support.strict_cupy import PinnedMemory, Stream, StrictCupy

tf: Any = gc  # names that are loaded on demand
CAPTURE = gc.SessionOptions(capture_on_gpu=True)


def feeds_of(number: int, x: gc.Tensor, y: gc.Tensor) -> dict[Any, Any]:
    rng = np.random.default_rng(number)
    return {x: rng.random((5, 3), dtype=np.float32), y: rng.integers(0, 4, 5, dtype=np.int32)}


@pytest.mark.parametrize("use_resource", [False, True])
def test_a_captured_training_step_gives_the_losses_and_variables_of_the_cpu(cupy: StrictCupy, use_resource: bool) -> None:
    x, y = gc.placeholder(gc.float32, [None, 3]), gc.placeholder(gc.int32, [None])
    w = gc.Variable(np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4), use_resource=use_resource)
    b = gc.Variable(np.zeros(4, np.float32), use_resource=use_resource)
    hot = gc.one_hot(y, 4)
    loss = gc.reduce_mean(gc.square(gc.tanh(gc.matmul(x, w) + b) - hot))
    step = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
    doubled = w.assign(w * 2.0)
    results: list[list[Any]] = []
    for devices in (None, "gpu"):
        with gc.Session(devices=devices, options=CAPTURE) as session:
            session.run(gc.global_variables_initializer())
            found = [session.run([loss, step], feeds_of(number, x, y))[0] for number in range(6)]
            session.run(doubled)
            kept = session.run([w, b])
            found += [session.run([loss, step], feeds_of(number, x, y))[0] for number in range(6)]
            assert session.run(w).tolist() != kept[0].tolist()
            found += [session.run(loss, {x: np.ones((2, 3), np.float32), y: np.zeros(2, np.int32)}), *kept, *session.run([w, b])]
            results.append(found)
    for found, wanted in zip(*results, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-7)
    if isinstance(cupy, StrictCupy):  # tests/gpu runs this with CuPy itself
        assert [graph.launches for graph in cupy.graphs] == [10]


def test_a_captured_run_leaves_values_that_were_read_before_as_they_are(cupy: StrictCupy) -> None:
    w = gc.Variable(np.zeros(3, np.float32), use_resource=True)
    more = w.assign_add([1.0, 2.0, 3.0])
    with gc.Session(devices="gpu", options=CAPTURE) as session:
        session.run(w.initializer)
        (variable,) = session.resources.variables.values()
        values: list[Any] = []
        for _ in range(6):
            session.run(more)
            values.append(variable.value)
        assert [on_host(value)[0] for value in values] == [1, 2, 3, 4, 5, 6]
        if isinstance(cupy, StrictCupy):
            assert cupy.graphs[0].launches == 4


def test_what_cannot_be_captured_runs_as_before(cupy: StrictCupy) -> None:
    x = gc.placeholder(gc.float32, [None])
    state = gc.Variable(0, name="state")  # an int32 stays on the host
    counted = state.assign_add(1)
    drawn = gc.random_uniform([3])
    positive = gc.boolean_mask(x, x > 0)  # its size is a value
    checked = tf.check_numerics(x, "a number")
    halved = x * 0.5
    with gc.Session(devices="gpu", options=CAPTURE) as session:
        session.run(gc.global_variables_initializer())
        feeds = {x: np.array([1.0, -2.0, 3.0], np.float32)}
        draws = []
        for number in range(5):
            assert session.run(counted) == number + 1
            draws.append(session.run(drawn).tolist())
            assert session.run(positive, feeds).tolist() == [1.0, 3.0]
            assert session.run(checked, feeds).tolist() == [1.0, -2.0, 3.0]
        assert len({tuple(draw) for draw in draws}) == 5
        if isinstance(cupy, StrictCupy):
            assert not any(graph.launches for graph in cupy.graphs)
        for _ in range(5):
            assert session.run(halved, feeds).tolist() == [0.5, -1.0, 1.5]
            assert session.run(halved, {x: np.ones(2, np.float32)}).tolist() == [0.5, 0.5]
        if isinstance(cupy, StrictCupy):
            assert [graph.launches for graph in cupy.graphs if graph.launches] == [3, 3], "one for each shape"
        with pytest.raises(gc.errors.InvalidArgumentError, match="NaN"):
            session.run(checked, {x: np.array([np.nan], np.float32)})


def test_a_variable_that_has_lost_its_value_is_an_error_also_of_a_captured_run(cupy: StrictCupy) -> None:
    w = gc.Variable(np.zeros(3, np.float32))
    more = w.assign_add([1.0, 2.0, 3.0])
    with gc.Session(devices="gpu", options=CAPTURE) as session:
        session.run(w.initializer)
        for _ in range(4):
            session.run(more)
        session.reset()
        with pytest.raises(gc.errors.FailedPreconditionError, match="uninitialized"):
            session.run(more)
        session.run(w.initializer)
        assert session.run(more).tolist() == [1.0, 2.0, 3.0]
    assert cupy.graphs[0].launches == 3


def test_random_graphs_that_run_again_and_again_give_the_same_when_captured(cupy: StrictCupy) -> None:
    @settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
    @given(NUMBERS, st.booleans())
    def check(numbers: list[int], flag: bool) -> None:
        program = Program(numbers)
        found = []
        for devices in (None, "gpu"):
            with gc.Session(program.graph, devices=devices, options=CAPTURE) as session:
                session.run(program.start)
                values = [{program.x: X * np.float32(number), program.p: flag} for number in range(1, 6)]
                found.append([[*session.run([*program.values, program.end], feeds), session.run(program.state)] for feeds in values])
        for mine, theirs in zip(*found, strict=True):
            for one, other in zip(mine, theirs, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)

    check()


def test_an_interrupt_while_a_run_is_captured_leaves_variables_and_later_runs_as_they_are(
    cupy: StrictCupy, monkeypatch: pytest.MonkeyPatch
) -> None:
    w = gc.Variable(np.zeros(3, np.float32))
    more = w.assign_add([1.0, 2.0, 3.0])
    end = Stream.end_capture
    for place in ("within the run", "at its end"):

        def interrupted(stream: Stream, at: str = place) -> Any:
            found = end(stream)
            if at == "at its end":
                raise KeyboardInterrupt
            return found

        def launched(array: Any) -> None:
            if cupy.captured is not None:
                raise KeyboardInterrupt

        with gc.Session(devices="gpu", options=CAPTURE) as session:
            session.run(w.initializer)
            for _ in range(2):
                session.run(more)
            with monkeypatch.context() as patched:
                patched.setattr(Stream, "end_capture", interrupted)
                if place == "within the run":
                    patched.setattr(cupy, "use", launched)
                with pytest.raises(KeyboardInterrupt):
                    session.run(more)
            assert not cupy.place.streams
            assert cupy.pinned is PinnedMemory, "transfers are allowed again"
            assert cupy.captured is None
            assert [session.run(more).tolist()[0] for _ in range(3)] == [3.0, 4.0, 5.0]
            assert cupy.graphs[-1].launches == 3


def test_captures_on_two_devices_at_once_refuse_transfers_until_each_has_ended(cupy: StrictCupy) -> None:
    first, second = (Gpu(device) for device in gc.gpu_devices().devices[1:])
    entered, leave = threading.Event(), threading.Event()

    def capture() -> None:
        with second.capturing():
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=capture)
    with first.capturing():
        thread.start()
        entered.wait(0.2)
        refusing = cupy.pinned
    entered.wait(10)
    assert cupy.pinned is not PinnedMemory, "the second device still captures"
    assert refusing is not PinnedMemory
    leave.set()
    thread.join()
    assert cupy.pinned is PinnedMemory


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("devices", [1, 2])
def test_a_run_is_captured_while_no_other_run_could_read_its_variables(
    cupy: StrictCupy, monkeypatch: pytest.MonkeyPatch, devices: int, use_resource: bool
) -> None:
    w = gc.Variable(np.zeros(3, np.float32), use_resource=use_resource)
    more = w.assign_add([1.0, 2.0, 3.0])
    value = w.value()
    with gc.device(f"/gpu:{devices - 1}"):
        doubled = value * 2.0
    found: list[Any] = []
    threads: list[threading.Thread] = []
    end = Stream.end_capture
    with gc.Session(devices="gpu", options=CAPTURE) as session:
        session.run(w.initializer)
        session.run(doubled)

        def failed(stream: Stream) -> Any:  # another thread runs as soon as variables have the results of the capture, which then fails
            end(stream)
            threads.append(threading.Thread(target=lambda: found.append(session.run(doubled, options=gc.RunOptions(trace=True)).tolist())))
            threads[0].start()
            threads[0].join(0.2)
            raise cupy.cuda.runtime.CUDARuntimeError("cudaErrorStreamCaptureInvalidated")

        for _ in range(2):
            session.run(more)
        with monkeypatch.context() as patched:
            patched.setattr(Stream, "end_capture", failed)
            session.run(more)
        threads[0].join()
    assert found in ([[4.0, 8.0, 12.0]], [[6.0, 12.0, 18.0]])


@pytest.mark.parametrize("value", [[10.0, 20.0, 30.0], None], ids=["set", "taken away"])
def test_a_value_that_is_set_while_a_run_is_captured_is_kept(
    cupy: StrictCupy, monkeypatch: pytest.MonkeyPatch, value: list[float] | None
) -> None:
    w = gc.Variable(np.zeros(3, np.float32), use_resource=True)
    more = w.assign_add([1.0, 2.0, 3.0])
    end = Stream.end_capture
    with gc.Session(devices="gpu", options=CAPTURE) as session:
        session.run(w.initializer)
        (variable,) = session.resources.variables.values()

        def restored(stream: Stream) -> Any:  # as by another thread
            variable.replace(None if value is None else np.array(value, np.float32))
            return end(stream)

        for _ in range(2):
            session.run(more)
        with monkeypatch.context() as patched:
            patched.setattr(Stream, "end_capture", restored)
            if value is None:
                with pytest.raises(gc.errors.FailedPreconditionError, match="uninitialized"):
                    session.run(more)
                return
            session.run(more)
        for number in range(1, 4):
            assert session.run(w)[0] == 10.0 + number
            session.run(more)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128", "int64"])
def test_captured_products_of_all_forms_are_those_of_the_cpu(cupy: StrictCupy, dtype: str) -> None:
    def placed(*shape: int) -> gc.Tensor:
        return gc.placeholder(dtype, shape)

    x, y, z, batch, row = placed(3, 4), placed(4, 5), placed(3, 5), placed(2, 3, 4), placed(1, 4)
    products = [
        gc.matmul(x, y),
        gc.matmul(x, z, transpose_a=True),
        gc.matmul(z, y, transpose_b=True),
        gc.matmul(y, x, transpose_a=True, transpose_b=True),
        gc.matmul(batch, y),
        gc.matmul(batch, batch, transpose_b=True),
        gc.matmul(batch, x, adjoint_b=True) if dtype != "int64" else gc.matmul(batch, y),
        gc.matmul(row, y),
        gc.matmul(row, row, transpose_a=True),
        gc.matmul(row, row, transpose_b=True),
        gc.matmul(x[:, :0], y[:0]),
        gc.matmul(x[:, 1:3], y[::2]),
        tf.einsum("bij,ik->bkj", batch, z),
    ]
    rng = np.random.default_rng(2)
    feeds = {
        each: (
            rng.random([int(size) for size in each.shape.as_list() or () if size is not None]) * 9 + (1j if dtype[0] == "c" else 0)
        ).astype(dtype)
        for each in (x, y, z, batch, row)
    }
    with gc.Session() as session:
        wanted = session.run(products, feeds)
    for product, value in zip(products, wanted, strict=True):
        with gc.Session(devices="gpu", options=CAPTURE) as session:
            found = [session.run(product, feeds) for _ in range(4)]
            np.testing.assert_allclose(found[-1], value, rtol=1e-5, err_msg=product.name)
    if isinstance(cupy, StrictCupy):  # tests/gpu runs this with CuPy itself
        assert sum(graph.launches for graph in cupy.graphs) == 2 * len(products), "a product is not captured"
        assert cupy.cublas.products == (0 if dtype == "int64" else len(products) - 1), "the empty product needs none"


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_a_captured_convolution_and_its_gradients_are_those_of_the_cpu(cupy: StrictCupy, padding: str) -> None:
    x, w = gc.placeholder(gc.float32, [2, 9, 9, 3]), gc.Variable(np.random.default_rng(3).random((3, 3, 3, 4), np.float32))
    y = gc.ops.max_pool(
        gc.relu(gc.ops.conv2d(x, w, padding=padding, strides=[1, 1, 1, 1])), ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding=padding
    )
    step = [gc.reduce_sum(y), *gc.gradients(gc.reduce_sum(y * y), [x, w])]
    feeds = {x: np.random.default_rng(4).random((2, 9, 9, 3), np.float32)}
    found = []
    for devices in (None, "gpu"):
        with gc.Session(devices=devices, options=CAPTURE) as session:
            session.run(w.initializer)
            found.append([session.run(step, feeds) for _ in range(4)][-1])
    for mine, wanted in zip(found[1], found[0], strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=1e-4)
    if isinstance(cupy, StrictCupy):
        assert [graph.launches for graph in cupy.graphs if graph.launches] == [2]


def test_a_captured_run_reads_feeds_and_variables_anew_and_keeps_variables_apart(cupy: StrictCupy) -> None:
    x = gc.placeholder(gc.float32, [2])
    a, b = (gc.Variable(np.full(2, value, np.float32)) for value in (1.0, 2.0))
    with gc.control_dependencies([a.read_value()]):
        turn = gc.tuple([a.read_value(), b.read_value()])
    exchange = gc.group(a.assign(turn[1] + x), b.assign(turn[0]))
    copied, more = b.assign(a.read_value()), a.assign_add(x)
    held: list[list[Any]] = []
    for devices in (None, "gpu"):
        with gc.Session(devices=devices) as session:
            session.run(gc.global_variables_initializer())
            found: list[Any] = []
            for number in range(6):
                session.run(exchange, {x: np.full(2, number, np.float32)})
                found.append(session.run([a, b]))
            for number in range(6):
                session.run(copied)
                session.run(more, {x: np.full(2, number, np.float32)})
                found.append(session.run([a, b]))
            held.append(found)
    np.testing.assert_array_equal(held[1], held[0])
