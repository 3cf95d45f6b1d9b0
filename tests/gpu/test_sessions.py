"""Sessions on the GPU: the tests that run elsewhere on a stand-in, transfers, times and memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.runtime.gpu.gpu import Gpu
from tests.gpu.device import find_cupy
from tests.graphcore.runtime.gpu import test_capture, test_fusing, test_gpu_sessions, test_random_graphs_on_gpus

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
test_fed_lists = test_gpu_sessions.test_a_list_that_was_fetched_can_be_fed
test_fused_training = test_fusing.test_a_training_step_with_fused_chains_gives_what_it_gives_on_the_cpu
test_fused_shapes = test_fusing.test_results_within_a_chain_that_others_need_have_their_own_shapes
test_fused_sums = test_fusing.test_a_sum_in_a_chain_requires_equal_shapes_as_alone
test_errors_in_networks = test_fusing.test_an_error_of_a_network_within_a_chain_names_its_node
test_random_graphs = test_random_graphs_on_gpus.test_random_graphs_give_on_a_gpu_what_they_give_on_the_cpu
test_captured_training = test_capture.test_a_captured_training_step_gives_the_losses_and_variables_of_the_cpu
test_captured_values = test_capture.test_a_captured_run_leaves_values_that_were_read_before_as_they_are
test_what_is_not_captured = test_capture.test_what_cannot_be_captured_runs_as_before
test_captured_products = test_capture.test_captured_products_of_all_forms_are_those_of_the_cpu
test_captured_convolutions = test_capture.test_a_captured_convolution_and_its_gradients_are_those_of_the_cpu
test_repeated_rows = test_gpu_sessions.test_repeated_rows_of_every_type_are_combined_on_a_gpu_as_on_the_cpu
test_captured_variables = test_capture.test_a_captured_run_reads_feeds_and_variables_anew_and_keeps_variables_apart
test_captured_random_graphs = test_capture.test_random_graphs_that_run_again_and_again_give_the_same_when_captured


@pytest.mark.skipif(module.cuda.runtime.getDeviceCount() < 2, reason="there is one GPU")
def test_values_go_straight_from_one_gpu_to_another(cupy: Any) -> None:
    test_gpu_sessions.test_values_go_straight_from_one_gpu_to_another(cupy)


def test_a_repeated_step_is_captured(caplog: pytest.LogCaptureFixture) -> None:
    with gc.Graph().as_default():
        x = gc.placeholder(gc.float32, [None, 3])
        w = gc.Variable(np.ones((3, 2), np.float32))
        more = w.assign_add(gc.matmul(x, gc.tanh(gc.matmul(x, w)), transpose_a=True))
        with gc.Session(devices="gpu", options=gc.SessionOptions(capture_on_gpu=True)) as session, caplog.at_level("INFO", "graphcore.gpu"):
            session.run(w.initializer)
            for _ in range(5):
                session.run(more, {x: np.ones((4, 3), np.float32)})
    assert not caplog.records, "the log has the reason for which the step is not captured"


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
