"""Sessions on several devices: placement, errors, cancellation, caches."""

from __future__ import annotations

import threading
from typing import Final

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import FailedPreconditionError, InvalidArgumentError
from graphcore.runtime.partitions.partitioned_program import PartitionedProgram

CPU: Final = [f"/job:localhost/replica:0/task:0/device:CPU:{number}" for number in range(2)]


@pytest.fixture
def graph() -> gc.Graph:
    return gc.Graph()


def program_of(session: gc.Session) -> PartitionedProgram:
    """The program of the last prepared run."""
    program = list(session.planner.plans.values())[-1].program
    assert isinstance(program, PartitionedProgram)
    return program


def crossing(graph: gc.Graph) -> tuple[gc.Tensor, gc.Tensor]:
    """A placeholder and a value that goes to the second device and back."""
    with graph.as_default():
        x = gc.placeholder(gc.float32, [None], name="x")
        with gc.device("/cpu:1"):
            y = gc.sqrt(x, name="y")
        with gc.device("/cpu:0"):
            return x, gc.add(y, x, name="z")


def test_each_device_has_the_nodes_that_request_it(graph: gc.Graph) -> None:
    x, z = crossing(graph)
    with gc.Session(graph, devices=["/cpu:0", "/cpu:1"]) as session:
        np.testing.assert_array_equal(session.run(z, {x: [4.0]}), np.array([6.0], np.float32))
        names = {part.device: {node.name for node in part.table.nodes} for part in program_of(session).parts}
        assert set(names) == set(CPU)
        assert "z" in names[CPU[0]]
        assert "y" in names[CPU[1]]


def test_a_run_on_one_of_the_devices_is_not_divided(graph: gc.Graph) -> None:
    with graph.as_default():
        x = gc.placeholder(gc.float32, [])
        y = x * 3.0
    with gc.Session(graph, devices=CPU) as session:
        assert session.run(y, {x: 2.0}) == 6.0
        assert [node.op for node in session.plan(y, {x: 2.0}).nodes] == ["Mul"]


def test_a_gpu_by_name_alone_is_simulated_and_a_trace_says_so(graph: gc.Graph) -> None:
    with graph.as_default():
        x = gc.placeholder(gc.float32, [])
        with gc.device("/gpu:0"):
            y = x * 3.0
    with gc.Session(graph, devices=["/cpu:0", "/gpu:0"]) as session:
        assert str(session.devices) == f"<gc.DeviceSet [{CPU[0]}, {CPU[0].replace('CPU', 'GPU')} (simulated)]>"
        assert session.run(y, {x: 2.0}, options=gc.RunOptions(trace=True)) == 6.0
        assert session.trace is not None
        assert any("GPU:0 (simulated)" in str(event) for event in session.trace.chrome_trace()["traceEvents"])


@pytest.mark.parametrize("given", [CPU, ["/cpu:0", "/cpu:1"], [gc.Device(name) for name in CPU], gc.DeviceSet(CPU)])
def test_devices_are_given_as_a_set_or_as_a_list(graph: gc.Graph, given: gc.DeviceSet | list[gc.Device | str]) -> None:
    assert [device.name for device in gc.Session(graph, devices=given).list_devices()] == CPU


@pytest.mark.parametrize("given", ["/cpu:0", 3, [3]])
def test_devices_of_another_kind_are_refused(graph: gc.Graph, given: object) -> None:
    with pytest.raises(gc.errors.InvalidArgumentError, match=r"devices: required a gc\.DeviceSet, a list of devices"):
        gc.Session(graph, devices=given)  # type: ignore[arg-type]  # on purpose


def test_a_session_without_any_device_is_refused(graph: gc.Graph) -> None:
    with pytest.raises(gc.errors.FailedPreconditionError, match="required at least one device"):
        gc.Session(graph, devices=[])


def test_a_device_that_does_not_exist_is_an_error_that_lists_those_that_do(graph: gc.Graph) -> None:
    with graph.as_default(), gc.device("/cpu:7"):
        y = gc.constant(1.0, name="y")
    with gc.Session(graph, devices=CPU) as session, pytest.raises(gc.errors.InvalidArgumentError) as raised:
        session.run(y)
    assert raised.value.node == "y"
    assert all(name in str(raised.value) for name in CPU)


@pytest.mark.parametrize("pruned", [True, False])
def test_nodes_that_are_not_needed_are_placed_too_unless_the_graph_is_pruned_first(graph: gc.Graph, pruned: bool) -> None:
    x, z = crossing(graph)
    with graph.as_default(), gc.device("/cpu:7"):
        gc.constant(1.0)
    options = gc.SessionOptions(allow_soft_placement=False, place_pruned_graph=pruned)
    with gc.Session(graph, devices=CPU, options=options) as session:
        if pruned:
            assert session.run(z, {x: [4.0]}) == [6.0]
        else:
            with pytest.raises(gc.errors.InvalidArgumentError, match="available devices are"):
                session.run(z, {x: [4.0]})


def test_soft_placement_replaces_a_device_that_does_not_exist(graph: gc.Graph) -> None:
    with graph.as_default(), gc.device("/gpu:0"):
        y = gc.constant(1.0)
    with gc.Session(graph, devices=CPU, options=gc.SessionOptions(allow_soft_placement=True)) as session:
        assert session.run(y) == 1.0


def test_an_edit_of_the_graph_places_it_again(graph: gc.Graph) -> None:
    x, z = crossing(graph)
    with gc.Session(graph, devices=CPU) as session:
        session.run(z, {x: [4.0]})
        before = program_of(session)
        session.run(z, {x: [9.0]})
        assert program_of(session) is before
        with graph.as_default():
            gc.constant(1.0)
        assert session.run(z, {x: [9.0]}) == [12.0]
        assert program_of(session) is not before


def test_sessions_on_other_devices_place_the_graph_anew(graph: gc.Graph) -> None:
    x, z = crossing(graph)
    with gc.Session(graph, devices=CPU) as first, gc.Session(graph, devices=[name.replace("localhost", "w") for name in CPU]) as second:
        for session in (first, second, first):
            assert session.run(z, {x: [4.0]}) == [6.0]
        assert z.node.assigned_device.startswith("/job:w/")
        assert str(gc.explain_placement(z.node))


def test_a_device_that_the_user_has_assigned_is_kept(graph: gc.Graph) -> None:
    x, z = crossing(graph)
    x.node.assigned_device = CPU[1]
    graph.get_operation_by_name("y").assigned_device = CPU[0]
    with gc.Session(graph, devices=CPU) as session:
        for _ in range(2):
            assert session.run(z, {x: [4.0]}) == [6.0]
            with graph.as_default():
                gc.constant(1.0)
        assert graph.get_operation_by_name("y").assigned_device == CPU[0]


@pytest.mark.parametrize("concurrent", [True, False])
def test_an_error_names_the_node_and_its_device_and_stops_the_others(graph: gc.Graph, concurrent: bool) -> None:
    with graph.as_default():
        x = gc.placeholder(gc.int32, [], name="x")
        with gc.device("/cpu:1"):
            y = graph.apply_op("FloorDiv", [gc.constant(1), x], name="divided").outputs[0]
        with gc.device("/cpu:0"):
            z = gc.identity(y, name="z")
    with gc.Session(graph, devices=CPU) as session:
        assert session.run(z, {x: 1}) == 1
        program_of(session).concurrent = concurrent
        with pytest.raises(gc.errors.InvalidArgumentError) as raised:
            session.run(z, {x: 0})
        assert raised.value.node == "divided"
        assert raised.value.device == CPU[1]
        assert f"on device {CPU[1]}" in str(raised.value)
        assert "test_sessions_on_devices.py" in str(raised.value)
        assert session.run(z, {x: 1}) == 1


@pytest.mark.parametrize("concurrent", [True, False])
def test_a_time_limit_ends_all_partitions(graph: gc.Graph, concurrent: bool) -> None:
    with graph.as_default():
        queue = gc.apply_op("FIFOQueueV2", attrs={"component_types": [gc.float32], "shared_name": "q"})
        put = graph.apply_op("QueueEnqueueV2", [queue, [gc.constant(1.0)]])
        with gc.device("/cpu:1"):
            taken = graph.apply_op("QueueDequeueV2", [queue], {"component_types": [gc.float32]}).outputs[0]
            doubled = taken * 2.0
        with gc.device("/cpu:0"):
            z = gc.identity(doubled) + 1.0
            other = gc.constant(3.0) * 2.0
    with gc.Session(graph, devices=CPU, options=gc.SessionOptions()) as session:
        session.run(put)
        assert session.run([z, other]) == [3.0, 6.0]
        program_of(session).concurrent = concurrent
        before = threading.active_count()
        with pytest.raises(gc.errors.DeadlineExceededError):
            session.run([z, other], options=gc.RunOptions(timeout_in_ms=100))
        assert session.run(other) == 6.0
        assert threading.active_count() <= before + 3


def test_a_trace_names_the_device_of_each_node(graph: gc.Graph) -> None:
    x, z = crossing(graph)
    with gc.Session(graph, devices=CPU) as session:
        session.run(z, {x: [4.0]}, gc.RunOptions(trace=True))
        assert session.trace is not None
        devices = {event.node: event.device for event in session.trace.events}
        assert (devices["y"], devices["z"]) == (CPU[1], CPU[0])
        assert {entry.device for entry in session.trace.step_stats().dev_stats} == set(CPU)
        assert {event.kind for event in session.trace.events} >= {"sent", "received"}


def test_variables_keep_their_values_on_their_devices(graph: gc.Graph) -> None:
    with graph.as_default():
        with gc.device("/cpu:1"):
            v = gc.Variable(1.0, name="v")
        with gc.device("/cpu:0"):
            doubled = v * 2.0
        step = v.assign_add(1.0)
        start = gc.initialize_all_variables()
    with gc.Session(graph, devices=CPU) as session:
        session.run(start)
        session.run(step)
        assert session.run(doubled) == 4.0


def test_the_plan_engine_refuses_to_divide_a_run(graph: gc.Graph) -> None:
    x, z = crossing(graph)
    with gc.Session(graph, devices=CPU, engine="plan") as session, pytest.raises(gc.errors.UnimplementedError, match="one device"):
        session.run(z, {x: [4.0]})


def test_several_threads_may_run_a_session_on_devices(graph: gc.Graph) -> None:
    x, z = crossing(graph)
    with gc.Session(graph, devices=CPU) as session:
        session.run(z, {x: [4.0]})
        found: list[bool] = []

        def work(number: int) -> None:
            value = float(number)
            found.extend([session.run(z, {x: [value * value]})[0] == value * value + value for _ in range(50)])

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 200
        assert all(found)


def test_simulated_devices_run_in_one_thread(graph: gc.Graph) -> None:
    with graph.as_default():
        with gc.device("/job:worker/task:0/cpu:0"):
            x = gc.constant(np.ones((300, 300), np.float32))
        with gc.device("/job:worker/task:1/cpu:0"):
            y = gc.matmul(x, x)
    with gc.Session(graph, devices=gc.simulated_devices("2 tasks x (1 cpu)")) as session:
        assert session.run(y)[0, 0] == 300.0
        assert not program_of(session).concurrent
        assert "simulated" in str(session.list_devices()[0])


def test_what_requests_no_device_goes_to_the_first_of_the_best_type(graph: gc.Graph) -> None:
    with graph.as_default():
        total = gc.add(gc.placeholder(gc.float32, [2], name="x"), 1.0, name="total")
    session = gc.Session(graph=graph, devices=gc.simulated_devices("1 cpu, 2 gpu"))
    assert session.run(total, {"x:0": [1, 2]}).tolist() == [2, 3]
    assert total.node.assigned_device == "/job:worker/replica:0/task:0/device:GPU:0"


def test_a_request_that_changes_moves_the_node_before_the_next_run() -> None:
    graph = gc.Graph()
    with graph.as_default():
        node = gc.constant(2.0, name="c")
        total = gc.add(node, 1.0, name="total")
    machine = gc.simulated_devices("2 cpu")
    session = gc.Session(graph=graph, devices=machine)
    assert session.run(total) == 3
    assert total.node.assigned_device.endswith("CPU:0")
    total.node.set_requested_device("/cpu:1")
    assert total.node.device == "/device:CPU:1"
    assert session.run(total) == 3
    assert total.node.assigned_device.endswith("CPU:1")
    with pytest.raises(InvalidArgumentError):
        total.node.set_requested_device("/cpu:one")
    assert total.node.device == "/device:CPU:1"
    graph.finalize()
    with pytest.raises(FailedPreconditionError, match="finalized"):
        total.node.set_requested_device("")


def test_a_partial_run_is_divided_and_names_the_device_of_an_error() -> None:
    graph = gc.Graph()
    with graph.as_default():
        x, y = gc.placeholder(gc.int32, [], name="x"), gc.placeholder(gc.int32, [], name="y")
        with gc.device("/cpu:1"):
            quotient = gc.apply_op("FloorDiv", [x, y], name="quotient")
        with gc.device("/cpu:0"):
            total = gc.add(quotient, x, name="total")
    session = gc.Session(graph=graph, devices=CPU)
    handle = session.partial_run_setup([total], [x, y])
    session.partial_run(handle, [], {x: 7})
    assert session.partial_run(handle, total, {y: 2}) == 10
    handle = session.partial_run_setup([total], [x, y])
    with pytest.raises(InvalidArgumentError) as caught:
        session.partial_run(handle, total, {x: 7, y: 0})
    assert caught.value.device == CPU[1]
    with pytest.raises(InvalidArgumentError, match="Must run 'setup'"):
        session.partial_run(handle, total)


def test_a_partial_run_refuses_a_device_that_does_not_exist() -> None:
    graph = gc.Graph()
    with graph.as_default(), gc.device("/gpu:7"):
        node = gc.constant(1.0, name="far")
    for session in (gc.Session(graph=graph, options=gc.SessionOptions(allow_soft_placement=False)), gc.Session(graph=graph, devices=CPU)):
        with pytest.raises(InvalidArgumentError, match="GPU:7"):
            session.partial_run_setup([node])


def test_a_request_does_not_change_the_initial_value_of_a_variable() -> None:
    graph = gc.Graph()
    with graph.as_default():
        variable = gc.Variable(gc.ones([2]), name="v")
    session = gc.Session(graph=graph, devices=gc.simulated_devices("2 cpu"))
    session.run(variable.initializer)
    for node in graph.nodes:
        node.set_requested_device("/cpu:1")
    assert session.variables_with_other_initial_values() == []
    assert session.run(variable.value()).tolist() == [1, 1]
    assert variable.op.assigned_device.endswith("CPU:1")
