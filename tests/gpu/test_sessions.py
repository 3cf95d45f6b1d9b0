"""Sessions on the GPU: the tests that run elsewhere on a stand-in, transfers, times and memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.runtime.gpu.gpu import Gpu
from tests.gpu.device import find_cupy
from tests.graphcore.runtime.gpu import test_gpu_sessions, test_random_graphs_on_gpus

module, why_not = find_cupy()
if module is None:
    pytest.skip(why_not, allow_module_level=True)


@pytest.fixture
def cupy() -> Iterator[Any]:
    """CuPy itself."""
    with gc.Graph().as_default():
        yield module


test_training = test_gpu_sessions.test_a_session_on_a_gpu_trains_as_one_on_the_cpu_does
test_functions = test_gpu_sessions.test_functions_loops_lists_and_queues_on_a_gpu_give_what_they_give_on_the_cpu
test_files = test_gpu_sessions.test_values_of_variables_on_a_gpu_are_saved_and_restored_on_the_host
test_errors = test_gpu_sessions.test_the_plan_of_a_run_on_a_gpu_can_be_read_and_an_error_names_its_node
test_errors_in_chains = test_gpu_sessions.test_an_error_in_a_chain_names_its_node
test_random_graphs = test_random_graphs_on_gpus.test_random_graphs_give_on_a_gpu_what_they_give_on_the_cpu


@pytest.mark.parametrize("shape", [(), (0, 3), (7,), (1000, 1000)])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32", "complex128"])
def test_transfers_keep_values(shape: tuple[int, ...], dtype: str) -> None:
    gpu = Gpu(gc.gpu_devices().devices[1])
    value = np.random.default_rng(1).integers(0, 2, shape).astype(dtype)
    copies = [gpu.to_device(value) for _ in range(20)]  # the memory of the host is used again
    for copy in copies:
        assert gpu.holds(copy)
        np.testing.assert_array_equal(gpu.to_host(copy), value)


def test_a_session_allocates_no_more_than_its_limit() -> None:
    with gc.Graph().as_default():
        x = gc.placeholder(gc.float32, [None])
        y = gc.reduce_sum(x)
        with gc.Session(devices=gc.gpu_devices(memory_limit=1 << 20)) as session:
            assert session.run(y, {x: np.ones(1 << 10, np.float32)}) == 1 << 10
            with pytest.raises(gc.errors.ResourceExhaustedError):
                session.run(y, {x: np.ones(1 << 20, np.float32)})
            assert session.run(y, {x: np.ones(1 << 10, np.float32)}) == 1 << 10


def test_a_recorded_run_has_the_times_of_the_device() -> None:
    with gc.Graph().as_default():
        x = gc.placeholder(gc.float32, [4000, 4000])
        y = gc.reduce_sum(gc.matmul(gc.matmul(x, x, name="first"), x))
        with gc.Session(devices="gpu") as session:
            feeds = {x: np.zeros((4000, 4000), np.float32)}
            session.run(y, feeds)
            session.run(y, feeds, gc.RunOptions(trace=True))
            assert session.trace is not None
            ends = {(event.node, event.kind): event.ns for event in session.trace.events}
            assert ends["first", "end"] - ends["first", "start"] > 100_000, "128 billion operations take a tenth of a millisecond at least"
