"""Sessions on GPUs, with a stand-in for CuPy that refuses what would be wrong on a real device."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.runtime.gpu.gpu import Gpu
from tests.support.strict_cupy import StrictCupy

tf: Any = gc  # names that are loaded on demand
GPU = "/job:localhost/replica:0/task:0/device:GPU:0"


def test_a_session_on_a_gpu_trains_as_one_on_the_cpu_does(cupy: StrictCupy) -> None:
    x = gc.placeholder(gc.float32, [None, 3])
    y = gc.placeholder(gc.int32, [None])
    w = gc.Variable(np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4), name="w")
    b = gc.Variable(np.zeros(4, np.float32), name="b")
    logits = gc.matmul(gc.tanh(x), w) + b
    loss = gc.reduce_mean(gc.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    step = tf.train.AdamOptimizer(0.1).minimize(loss)
    feeds = {x: np.arange(15, dtype=np.float32).reshape(5, 3) / 7, y: np.array([0, 1, 2, 3, 1], np.int32)}
    losses = []
    for devices in (None, "gpu"):
        with gc.Session(devices=devices) as session:
            session.run(gc.global_variables_initializer())
            losses.append([session.run([loss, step], feeds)[0] for _ in range(4)])
            if devices:
                assert session.devices is not None
                assert [device.device_type for device in session.devices][:2] == ["CPU", "GPU"]
                assert w.op.assigned_device == GPU
                assert isinstance(session.run(w), np.ndarray)
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-5)
    assert losses[0][-1] < losses[0][0]


def test_the_package_and_a_session_on_the_cpu_load_no_cupy() -> None:
    code = "import sys, graphcore as gc; gc.Session().run(gc.constant(1.0)); assert 'cupy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("devices", "text"),
    [
        (None, "GPUs need the package CuPy, which cannot be imported"),
        (-1, "there is none: CUDA cannot be used: cudaErrorInsufficientDriver"),
        (0, "there is none: CUDA finds no device"),
    ],
    ids=["no CuPy", "no driver", "no device"],
)
def test_a_session_that_asks_for_a_gpu_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, devices: int | None, text: str) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None if devices is None else StrictCupy(devices))
    with pytest.raises(gc.errors.FailedPreconditionError, match=text) as refused:
        gc.Session(devices="gpu")
    assert "nvidia-smi" in refused.value.suggestion
    with gc.Session(gc.Graph()) as session:  # a session that asks for none is not concerned
        assert session.devices is None


def test_a_device_that_cuda_does_not_have_is_refused_when_the_session_is_made(cupy: StrictCupy) -> None:
    with pytest.raises(gc.errors.FailedPreconditionError, match=r"GPU:7' cannot be used: cudaErrorInvalidDevice"):
        gc.Session(devices=[gc.Device("/gpu:7", cuda=7)])


def test_an_allocation_beyond_the_limit_of_memory_is_an_error_of_its_node(cupy: StrictCupy) -> None:
    x = gc.placeholder(gc.float32, [None])
    y = gc.negative(x)
    with gc.Session(devices=gc.gpu_devices(memory_limit=1000)) as session:
        assert session.run(y, {x: np.ones(250, np.float32)}).sum() == -250
        with pytest.raises(gc.errors.ResourceExhaustedError, match="limit set to: 1,000 bytes"):
            session.run(y, {x: np.ones(251, np.float32)})
    with pytest.raises(gc.errors.InvalidArgumentError, match="memory_limit"):
        gc.gpu_devices(memory_limit=-1)


def test_nodes_of_the_cpu_and_of_two_gpus_exchange_values(cupy: StrictCupy) -> None:
    x = gc.placeholder(gc.float32, [2, 2])
    with gc.device("/gpu:1"):
        a = gc.matmul(x, x)
    with gc.device("/cpu:0"):
        b = a + 1.0
    with gc.device("/gpu:0"):
        c = gc.tanh(b) * a
    given = np.array([[0.1, 0.2], [0.3, 0.4]], np.float32)
    product = given @ given
    with gc.Session(devices="gpu") as session:
        np.testing.assert_allclose(session.run(c, {x: given}), np.tanh(product + 1) * product, rtol=1e-6)
        session.run(c, {x: given}, gc.RunOptions(trace=True, values=True))
        assert session.trace is not None
        devices = {event.device.rpartition(":")[0][-3:] + event.device[-1] for event in session.trace.events}
        assert devices == {"CPU0", "GPU0", "GPU1"}
        assert not session.trace.simulated
        assert session.trace.values is not None


def test_values_go_straight_from_one_gpu_to_another(cupy: StrictCupy) -> None:
    x = gc.placeholder(gc.float32, [2, 2])
    with gc.device("/gpu:1"):
        a = gc.matmul(x, x)
        turned = gc.transpose(a)  # no contiguous array
        empty = a[:0]
        total = gc.reduce_sum(a)
        listed = gc.get_default_graph().apply_op("TensorListFromTensor", [a, gc.constant([2])]).outputs[0]
    with gc.device("/gpu:0"):
        rows = gc.get_default_graph().apply_op("TensorListStack", [listed, gc.constant(-1)], {"element_dtype": gc.float32}).outputs[0]
        results = [gc.tanh(a) * total + turned, gc.exp(empty), gc.cond(total > 0.0, lambda: rows + 1.0, lambda: -rows)]
    feeds = {x: np.array([[0.1, 0.2], [0.3, 0.4]], np.float32)}
    with gc.Session() as session:
        expected = session.run(results, feeds)
    with gc.Session(devices="gpu") as session:
        for _ in range(3):
            for found, wanted in zip(session.run(results, feeds), expected, strict=True):
                np.testing.assert_allclose(found, wanted, rtol=1e-6)
        if isinstance(cupy, StrictCupy):
            before = cupy.copies, cupy.uploads, cupy.downloads
            session.run(results[0], feeds)
            assert (cupy.copies, cupy.uploads, cupy.downloads) == (before[0] + 3, before[1] + 1, before[2] + 1)


def test_two_names_of_one_gpu_exchange_values_in_order(cupy: StrictCupy) -> None:
    x = gc.placeholder(gc.float32, [2, 2])
    with gc.device("/gpu:1"):
        a = gc.matmul(x, x)
    with gc.device("/gpu:0"):
        y = gc.tanh(a)
    with gc.Session(devices=[gc.Device("/cpu:0"), gc.Device("/gpu:0", cuda=0), gc.Device("/gpu:1", cuda=0)]) as session:
        assert session.run(y, {x: np.eye(2, dtype=np.float32)}).tolist() == np.tanh(np.eye(2, dtype=np.float32)).tolist()


def test_functions_loops_lists_and_queues_on_a_gpu_give_what_they_give_on_the_cpu(cupy: StrictCupy) -> None:
    x = gc.placeholder(gc.float32, [4])

    @gc.function
    def squared(v: gc.Tensor) -> gc.Tensor:
        return gc.square(v) + gc.reduce_sum(v)

    looped = gc.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, squared(v) * 0.5), [gc.constant(0), x])[1]
    array = gc.TensorArray(gc.float32, 4).unstack(x).stack()
    mapped = gc.map_fn(lambda v: v * v + 1.0, x)
    branch = gc.cond(gc.reduce_sum(x) > 0, lambda: x * 2.0, lambda: -x)
    queue = tf.FIFOQueue(3, [gc.float32], [[4]])
    with gc.control_dependencies([queue.enqueue([x])]):
        queued = queue.dequeue()
    picked = gc.gather(x, gc.argsort(x))
    words = tf.as_string(gc.cast(x * 10.0, gc.int32))
    fetches = [squared(x), looped, array, mapped, branch, queued, picked, *gc.gradients(gc.reduce_sum(looped + mapped + branch), [x])]
    value = np.array([0.5, -0.25, 0.125, 1.0], np.float32)
    results = []
    for devices in (None, "gpu"):
        with gc.Session(devices=devices) as session:
            results.append(session.run(fetches, {x: value}))
            assert list(session.run(words, {x: value})) == [b"5", b"-2", b"1", b"10"]
    for found, wanted in zip(*results[::-1], strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("capture", [False, True])
def test_a_list_that_was_fetched_can_be_fed(cupy: StrictCupy, capture: bool) -> None:
    x = gc.placeholder(gc.float32, [2, 2])
    handle = gc.get_default_graph().apply_op("TensorListFromTensor", [x * 2.0, gc.constant([2])]).outputs[0]
    rows = gc.get_default_graph().apply_op("TensorListStack", [handle, gc.constant(-1)], {"element_dtype": gc.float32}).outputs[0]
    with gc.Session(devices="gpu", options=gc.SessionOptions(capture_on_gpu=capture)) as session:
        value = session.run(handle, {x: np.eye(2, dtype=np.float32)})
        assert all(isinstance(item, np.ndarray) for item in value.items)
        for _ in range(4):
            assert session.run(rows, {handle: value}).tolist() == [[2.0, 0.0], [0.0, 2.0]]


def test_values_of_variables_on_a_gpu_are_saved_and_restored_on_the_host(cupy: StrictCupy, tmp_path: Path) -> None:
    w = gc.Variable(np.arange(3, dtype=np.float32), name="w")
    steps = gc.Variable(0, name="steps")
    more = [gc.assign_add(w, [1.0, 1.0, 1.0]), gc.assign_add(steps, 1)]
    with gc.Session(devices="gpu") as session:
        session.run(gc.global_variables_initializer())
        session.run(more)
        saver = tf.train.Saver()
        path = saver.save(session, str(tmp_path / "model"))
        assert isinstance(session.resources.value_of("", "w"), np.ndarray)
        session.run(more)
        saver.restore(session, path)
        assert session.run(w).tolist() == [1.0, 2.0, 3.0]
        gc.save_variables(session, tmp_path / "values")
        session.run(more)
        gc.restore_variables(session, tmp_path / "values")
        assert session.run([w, steps])[0].tolist() == [1.0, 2.0, 3.0]
        session.run(more)
        assert session.run([w, steps])[0].tolist() == [2.0, 3.0, 4.0]
        assert session.run(steps) == 2


def test_the_plan_of_a_run_on_a_gpu_can_be_read_and_an_error_names_its_node(cupy: StrictCupy) -> None:
    x = gc.placeholder(gc.float32, [None, 2], name="x")
    y = gc.matmul(x, gc.reshape(x, [2, -1]), name="product")
    wrong = gc.reshape(x, [3, -1], name="wrong")
    with gc.Session(devices="gpu") as session:
        assert "product" in session.plan(y, {x: np.ones((2, 2), np.float32)}).source
        with pytest.raises(gc.errors.InvalidArgumentError, match="wrong"):
            session.run(wrong, {x: np.ones((2, 2), np.float32)})


@pytest.mark.parametrize("cannot_fuse", ["", "cupy.fuse has no such function"], ids=["fused", "one by one"])
def test_a_chain_of_elementwise_operations_is_one_kernel(cupy: StrictCupy, cannot_fuse: str) -> None:
    x = gc.placeholder(gc.float32, [None, 3])
    w = gc.Variable(np.array([1.0, 2.0, 4.0], np.float32))
    product = x * w
    y = gc.tanh(gc.square(product + 1.0) - x / 2.0) * gc.exp(-x)
    shared = gc.matmul(y, y, transpose_b=True) + y[:, :1]
    feeds = {x: np.array([[0.5, -0.25, 0.125], [0.75, 1.0, -1.0]], np.float32)}
    with gc.Session() as session:
        session.run(w.initializer)
        expected = session.run([shared, product], feeds)
    cupy.cannot_fuse = cannot_fuse
    with gc.Session(devices="gpu") as session:
        session.run(w.initializer)
        for _ in range(3):
            for found, wanted in zip(session.run([shared, product], feeds), expected, strict=True):
                np.testing.assert_allclose(found, wanted, rtol=1e-6)
        assert cupy.fused == (0 if cannot_fuse else 3), "one chain, which ends where its values are used twice or fetched"
        session.run(shared, feeds, gc.RunOptions(trace=True))
        assert session.trace is not None
        assert {"Tanh", "Square", "Exp", "Neg"} <= {node.op for node in session.trace.nodes}


def test_results_that_are_kept_hold_no_pinned_memory(cupy: StrictCupy) -> None:
    x = gc.placeholder(gc.float32, [None])
    w = gc.Variable(np.zeros(3, np.float32))
    with gc.device("/cpu:0"):
        y = gc.identity(gc.exp(x)) * 2.0
    with gc.Session(devices="gpu") as session:
        session.run(w.initializer)
        for fetches in ([gc.tanh(x), w], [y, gc.tanh(x), gc.exp(x)]):
            for result in session.run(fetches, {x: np.ones(3, np.float32)}):
                assert result.base is None, "the memory is that of the array"


def test_a_feed_that_the_run_does_not_need_leaves_the_run_on_its_gpu(cupy: StrictCupy) -> None:
    x, unused = gc.placeholder(gc.float32, [3]), gc.placeholder(gc.float32, [3])
    y = gc.tanh(gc.exp(x))
    with gc.Session(devices="gpu") as session:
        feeds = {x: np.zeros(3, np.float32), unused: np.zeros(3, np.float32)}
        np.testing.assert_allclose(session.run(y, feeds), np.tanh(np.ones(3, np.float32)), rtol=1e-6)
        assert cupy.fused == 1
        assert session.run([unused, y], feeds)[0].tolist() == [0.0, 0.0, 0.0]
        assert session.run(unused, feeds).tolist() == [0.0, 0.0, 0.0]


def test_an_error_in_a_chain_names_its_node(cupy: StrictCupy) -> None:
    x, y = gc.placeholder(gc.float32, [None]), gc.placeholder(gc.float32, [None])
    z = gc.tanh(gc.add(gc.exp(x), y, name="misfit"))
    with gc.Session(devices="gpu") as session, pytest.raises(gc.errors.InvalidArgumentError, match="node misfit") as refused:
        session.run(z, {x: np.ones(2, np.float32), y: np.ones(3, np.float32)})
    assert refused.value.node == "misfit"


def test_a_run_ends_when_its_kernels_have_ended(cupy: StrictCupy) -> None:
    w = gc.Variable(np.zeros(3, np.float32))
    with gc.device("/cpu:0"):
        other = gc.Variable(np.zeros(3, np.float32))
    both = gc.group(w.assign_add([1.0, 1.0, 1.0]), other.assign_add([1.0, 1.0, 1.0]))
    with gc.Session(devices="gpu") as session:
        session.run(gc.global_variables_initializer())
        for step in (w.assign_add([1.0, 1.0, 1.0]).op, both):
            session.run(step)
            assert all(stream.ended == stream.launched for stream in cupy.streams)


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("engine", ["auto", "dataflow"])
def test_restored_values_are_copied_to_the_device_once(cupy: StrictCupy, tmp_path: Path, use_resource: bool, engine: str) -> None:
    w = gc.Variable(np.arange(4, dtype=np.float32).reshape(2, 2), use_resource=use_resource)
    x = gc.placeholder(gc.float32, [2, 2])
    y = gc.matmul(x, w)
    with gc.Session() as session:
        session.run(w.initializer)
        gc.save_variables(session, tmp_path / "values")
    with gc.Session(devices="gpu", engine=engine) as session:
        gc.restore_variables(session, tmp_path / "values")
        uploads = []
        for _ in range(2):
            before = cupy.uploads
            assert session.run(y, {x: np.eye(2, dtype=np.float32)}).tolist() == [[0.0, 1.0], [2.0, 3.0]]
            uploads.append(cupy.uploads - before)
        assert uploads == [2, 1]


def test_a_device_is_used_again_within_the_use_of_another(cupy: StrictCupy) -> None:
    first, second = (Gpu(device) for device in gc.gpu_devices().devices[1:])
    with first.within():
        with second.within():
            assert cupy.place.device == 1
            with first.within():
                assert cupy.place.device == 0
            assert cupy.place.device == 1
        assert cupy.place.device == 0
        assert len(cupy.place.streams) == 1


def test_each_kernel_of_a_recorded_run_is_waited_for(cupy: StrictCupy) -> None:
    x = gc.placeholder(gc.float32, [2, 2])
    y = gc.tanh(gc.matmul(gc.exp(gc.matmul(x, x)), x))
    with gc.Session(devices="gpu") as session:
        feeds = {x: np.ones((2, 2), np.float32)}
        counts = []
        for options in (None, gc.RunOptions(trace=True)):
            before = cupy.streams[0].synchronized
            session.run(y, feeds, options)
            counts.append(cupy.streams[0].synchronized - before)
        assert counts == [1, 5]
        assert session.trace is not None
        assert {event.device for event in session.trace.events} == {GPU}


def test_an_error_of_cuda_is_internal_and_names_the_node_that_met_it(cupy: StrictCupy, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Any) -> Any:
        raise cupy.cuda.runtime.CUDARuntimeError("cudaErrorIllegalAddress: an illegal memory access was encountered")

    monkeypatch.setattr(cupy, "tanh", fail, raising=False)
    x = gc.placeholder(gc.float32, [2])
    y = gc.tanh(x, name="bend")
    with (
        gc.Session(devices="gpu") as session,
        pytest.raises(gc.errors.InternalError, match="CUDA reports: cudaErrorIllegalAddress") as failed,
    ):
        session.run(y, {x: np.ones(2, np.float32)})
    assert failed.value.node == "bend"


@pytest.mark.parametrize("engine", ["auto", "dataflow"])
def test_a_recorded_run_counts_the_arrays_of_the_device_but_not_values_of_variables(cupy: StrictCupy, engine: str) -> None:
    x = gc.placeholder(gc.float32, [2, 2])
    y = gc.tanh(gc.matmul(gc.exp(gc.matmul(x, x)), x))
    w = gc.Variable(np.zeros((2, 2), np.float32))
    changes = [w.assign_add(gc.exp(x)).op, w.assign(gc.exp(x)).op, w.assign(gc.exp(x) + x).op]
    feeds = {x: np.ones((2, 2), np.float32)}
    peaks: list[list[tuple[int, int]]] = []
    for devices, chosen in ((None, "dataflow"), ("gpu", engine)):
        with gc.Session(devices=devices, engine=chosen) as session:
            session.run(w.initializer)
            peaks.append([])
            for fetch in (y, *changes):
                session.run(fetch, feeds, gc.RunOptions(trace=True))
                assert session.trace is not None
                peaks[-1].append((session.trace.peak_bytes, len(session.trace.arrays)))
    assert peaks[1] == peaks[0]
    assert peaks[0][0] == (2 * 16, 4), "the input and the output of a kernel"


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "int64", "float16", "float32", "float64", "complex64"])
def test_repeated_rows_of_every_type_are_combined_on_a_gpu_as_on_the_cpu(cupy: Any, dtype: str) -> None:
    ops = [tf.tensor_scatter_nd_add, tf.tensor_scatter_nd_sub]
    if dtype not in {"bool", "complex64"}:
        ops += [gc.ops.tensor_scatter_max, gc.ops.tensor_scatter_min]
    start, more = np.arange(6).reshape(3, 2).astype(dtype), (np.arange(12).reshape(6, 2) % 5).astype(dtype)
    if start.dtype.kind == "f":
        start[2, 0] = more[1, 1] = np.nan
    rows = [[0], [2], [0], [0], [2], [0]]
    found = [op(gc.constant(start), rows, gc.constant(more)) for op in ops]
    found += [op(gc.constant(start[:, 0].copy()), rows, gc.constant(more[:, 0].copy())) for op in ops]
    results: list[list[Any]] = []
    for devices in (None, "gpu"):
        with gc.Session(devices=devices) as session:
            results.append(session.run(found))
    for mine, other in zip(*results, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-3)
