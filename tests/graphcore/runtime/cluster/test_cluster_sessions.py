"""Sessions on a Dask cluster give what sessions of one process give."""

from __future__ import annotations

import gc as collector
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import dask
import ml_dtypes
import numpy as np
import pytest

import graphcore as gc
from graphcore.runtime.cluster.task import Task
from graphcore.runtime.core.tokens import is_transfer
from widgets.scene.steps import steps_of
from widgets.scene.values import values_of

train: Any = import_module("graphcore.train")
make_queue: Any = gc.FIFOQueue  # type: ignore[attr-defined]  # found on demand
PS, FIRST, SECOND = "/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1"
X = np.arange(6, dtype=np.float32).reshape(2, 3)


class Model:
    """A variable on `ps`, a product on the first worker, and what follows on the second."""

    def __init__(self) -> None:
        self.graph = gc.Graph()
        with self.graph.as_default():
            self.x = gc.placeholder(gc.float32, [None, 3], name="x")
            with gc.device(PS):
                self.weights = gc.Variable(gc.ones([3, 2]), name="weights")
                self.step = self.weights.assign_add(gc.fill([3, 2], 0.5))
            with gc.device(FIRST):
                self.product = gc.matmul(self.x, self.weights, name="product")
            with gc.device(SECOND):
                self.y = gc.tanh(self.product, name="y")
            self.start = gc.initialize_all_variables()


def test_a_step_over_three_tasks_gives_what_one_process_gives(cluster: gc.DaskCluster) -> None:
    model = Model()
    with gc.Session(model.graph, cluster=cluster) as spread, gc.Session(model.graph, options=gc.SessionOptions()) as one:
        for session in (spread, one):
            session.run(model.start)
            session.run(model.step)
        for fetches in (model.y, [model.y, model.weights, model.product], {"y": model.y, "x": model.x}, model.start):
            found, expected = spread.run(fetches, {model.x: X}), one.run(fetches, {model.x: X})
            assert repr(found) == repr(expected)
        assert repr(spread) == "<gc.Session on <gc.LocalCluster of 2 worker, 1 ps> 1 variables initialised>"
        assert spread.make_callable(model.y, [model.x])(X).tolist() == one.run(model.y, {model.x: X}).tolist()


def test_the_trace_and_the_values_of_a_step_are_those_of_one_process_with_the_same_devices(cluster: gc.DaskCluster) -> None:
    model = Model()
    records = []
    for place in ({"cluster": cluster}, {"devices": cluster.devices}):
        with gc.Session(model.graph, **place) as session:
            session.run(model.start)
            metadata = gc.RunMetadata()
            begun = time.perf_counter_ns()
            session.run(model.y, {model.x: X}, gc.RunOptions(trace=True, values="y"), metadata)
            trace = metadata.trace
            assert trace is not None
            assert trace.values is not None
            events = Counter([(event.kind, event.node, event.device, event.bytes) for event in trace.events])
            keys = {
                node.name: (node.attr["tensor_name"], node.attr["send_device"], node.attr["recv_device"])
                for node in trace.nodes
                if is_transfer(node)
            }
            values = {each.node: (each.shape, each.mean, each.detail is not None) for each in trace.values.stats}
            records.append((events, keys, values, {stats.device for stats in trace.step_stats().dev_stats}))
            assert begun <= trace.events[0].ns <= trace.events[-1].ns <= time.perf_counter_ns()
    assert records[0] == records[1]


def test_values_go_from_task_to_task_and_partitions_travel_once(cluster: gc.DaskCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    model, prepared, delivered, returned = Model(), list[str](), list[str](), list[Any]()
    prepare, deliver, run = Task.prepare, Task.deliver, Task.run

    async def noted_prepare(self: Task, parcel: Any) -> Any:
        prepared.append(parcel.content.device)
        return await prepare(self, parcel)

    async def noted_deliver(self: Task, parcel: Any) -> Any:
        delivered.append(parcel.content[1])
        return await deliver(self, parcel)

    async def noted_run(self: Task, parcel: Any) -> Any:
        ended = await run(self, parcel)
        returned.extend(ended.content.results)
        return ended

    with gc.Session(model.graph, cluster=cluster) as session:
        session.run(model.start)
        monkeypatch.setattr(Task, "prepare", noted_prepare)
        monkeypatch.setattr(Task, "deliver", noted_deliver)
        monkeypatch.setattr(Task, "run", noted_run)
        session.run(model.y, {model.x: X})
        assert sorted(prepared) == sorted(cluster.devices)
        assert sorted([key.split(";")[3].rpartition("_")[2] for key in delivered]) == ["product", "weights/read"] or len(delivered) == 2
        assert returned == [0]
        session.run(model.y, {model.x: X})
        with model.graph.as_default():
            gc.constant(3.0, name="later")
        session.run(model.y, {model.x: X})
        assert len(prepared) == 3
        with model.graph.as_default():
            other = gc.exp(model.product, name="other")
        session.run(other, {model.x: X})
        assert len(prepared) > 3


def test_errors_are_those_of_one_process_with_node_line_and_device(cluster: gc.DaskCluster) -> None:
    with gc.Graph().as_default() as graph:
        x = gc.placeholder(gc.int32, [None], name="x")
        with gc.device(FIRST):
            total = gc.reduce_sum(x, name="total")
        with gc.device(SECOND):
            part = gc.ops.floor_div(total, gc.reduce_max(x), name="part")
        with gc.device(FIRST):
            after = gc.identity(part, name="after")
            unset = gc.identity(gc.Variable(1.0, name="unset"), name="reader")
        errors = []
        for place in ({"cluster": cluster}, {"devices": cluster.devices}):
            with gc.Session(graph, **place) as session:
                for fetch, feed in ((after, [0, 0]), (unset, [1])):
                    with pytest.raises(gc.errors.GraphError) as raised:
                        session.run(fetch, {x: feed})
                    error = raised.value
                    assert error.source is not None
                    errors.append(
                        (type(error), error.message, error.node, error.op, error.source, error.suggestion, error.required, error.came)
                    )
                assert session.run(after, {x: [1, 2]}) == 1  # a failed step leaves nothing behind
        assert errors[:2] == errors[2:]
        session = gc.Session(graph, cluster=cluster)
        with pytest.raises(gc.errors.InvalidArgumentError, match="division by zero") as failed:
            session.run(after, {x: [0, 0]})
        assert failed.value.device == "/job:worker/replica:0/task:1/device:CPU:0"


def test_loops_branches_functions_and_queues_work_across_tasks(cluster: gc.DaskCluster) -> None:
    with gc.Graph().as_default() as graph:
        x = gc.placeholder(gc.float32, [], name="x")

        @gc.function
        def scaled(a: Any) -> Any:
            return a * 2.0

        with gc.device(FIRST):
            count = gc.constant(4)
            _, looped = gc.while_loop(lambda i, _: i < count, lambda i, v: [i + 1, scaled(v)], [gc.constant(0), x])
        with gc.device(SECOND):
            chosen = gc.cond(looped > 10.0, lambda: looped - 10.0, lambda: scaled(looped))
            queue = make_queue(4, [gc.float32], shapes=[[]])
            put = queue.enqueue([chosen])
        with gc.device(FIRST):
            got = queue.dequeue() + 1.0
        with gc.Session(graph, cluster=cluster) as session, gc.Session(graph, options=gc.SessionOptions()) as one:
            for value in (0.25, 3.0):
                assert session.run([looped, chosen], {x: value}) == one.run([looped, chosen], {x: value})
                session.run(put, {x: value})
                assert session.run(got) == one.run(chosen, {x: value}) + 1.0

            @gc.function
            def scaled(a: Any) -> Any:
                return a * 3.0

            again = scaled(x)
            assert session.run(again, {x: 2.0}) == 6.0


def test_an_initialized_value_leaves_a_trained_one_on_its_task(cluster: gc.DaskCluster) -> None:
    with gc.Graph().as_default() as graph:
        with gc.device(PS):
            w = gc.Variable(3.0, name="w")
        with gc.device(FIRST):
            doubled = w.initialized_value() * 2.0
    with gc.Session(graph=graph, cluster=cluster) as session:
        session.run(w.assign(7.0))
        assert (session.run(doubled), session.run(w)) == (14, 7)
        session.run(w.initializer)
        assert session.run(w) == 3


def test_functions_that_are_replaced_are_replaced_on_the_tasks(cluster: gc.DaskCluster) -> None:
    with gc.Graph().as_default() as graph:
        twice = gc.parse_function("Inner(x:float) -> (y:float) {\n  y = Add[T=float](x, x)\n  return y = y:z:0\n}")
        square = gc.parse_function("Inner(x:float) -> (y:float) {\n  y = Mul[T=float](x, x)\n  return y = y:z:0\n}")
        outer = gc.parse_function("Outer(x:float) -> (y:float) {\n  y = Inner(x)\n  return y = y:y:0\n}", graph.library.look_up_op_def)
        graph.library.add_function_def(twice)
        graph.library.add_function_def(outer)
        x = gc.placeholder(gc.float32, [], name="x")
        with gc.device(SECOND):
            y = graph.apply_op("Outer", [x]).outputs[0]
        with gc.device(FIRST):
            z = gc.identity(y)
        session = gc.Session(cluster=cluster)
        for function, expected in ((twice, 10.0), (square, 25.0), (twice, 10.0), (square, 25.0)):
            graph.library.replace_function("Inner", function)
            for fetch in (y, z) if function is twice else (z, y):
                assert session.run(fetch, {x: 5.0}) == expected
        session.close()


@pytest.mark.parametrize(
    "value",
    [
        np.array([b"a", b"\x00\xff"], object),
        np.array([[1.5, -2.0]], ml_dtypes.bfloat16),
        np.array([1 + 2j], np.complex64),
        np.array(True),
        np.zeros([0, 3], np.int8),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    ],
    ids=lambda value: str(value.dtype),
)
def test_values_of_each_dtype_reach_other_tasks_unchanged(cluster: gc.DaskCluster, value: Any) -> None:
    with gc.Graph().as_default() as graph:
        x = gc.placeholder(gc.as_dtype(value.dtype) if not value.dtype.hasobject else gc.string, value.shape)
        with gc.device(FIRST):
            held = gc.Variable(x, name="held")
        with gc.device(SECOND):
            y = gc.identity(held)
        with gc.Session(graph, cluster=cluster) as session:
            session.run(held.initializer, {x: value})
            found = np.asarray(session.run(y))
            assert found.dtype == value.dtype
            np.testing.assert_array_equal(found, value)


def test_what_a_cluster_does_not_do_is_refused_with_the_reason(cluster: gc.DaskCluster) -> None:
    model = Model()
    with model.graph.as_default():
        with gc.device(FIRST):
            handle = gc.Variable(1.0, name="resource", use_resource=True).handle
        with gc.Session(cluster=cluster) as session:
            with pytest.raises(gc.errors.UnimplementedError, match="only arrays can leave"):
                session.run(handle)
            with pytest.raises(gc.errors.UnimplementedError, match="several steps"):
                session.partial_run_setup(model.y, [model.x])
            with gc.device("/job:worker/task:7"):
                far = gc.constant(1.0) + 1.0
            with pytest.raises(gc.errors.InvalidArgumentError, match="job:worker/task:7"):
                session.run(far)
        with pytest.raises(gc.errors.InvalidArgumentError, match="devices: required None"):
            gc.Session(cluster=cluster, devices=["/cpu:0"])
        with pytest.raises(gc.errors.InvalidArgumentError, match="cluster: required"):
            gc.Session(cluster="tcp://somewhere")  # type: ignore[arg-type]
        with gc.Session() as local, pytest.raises(gc.errors.FailedPreconditionError, match="a session on a cluster"):
            local.recover("nothing.npz")


@pytest.mark.parametrize(
    ("tasks", "text"),
    [
        ({"worker": ["nobody"]}, "lists worker 'nobody', which the cluster does not have; it has '0'"),
        ({"worker": [0, "0"]}, "listed for .*task:0.* and for .*task:1"),
        ({"worker": []}, "at least one worker"),
        ({"worker": "0"}, "a list of workers for job 'worker'"),
        ({"worker": [0.5]}, "names or addresses"),
        (["worker"], "a mapping from jobs"),
        ({"no job": [0]}, "no job"),
    ],
)
def test_tasks_that_do_not_fit_the_cluster_are_refused(cluster: gc.DaskCluster, tasks: Any, text: str) -> None:
    with pytest.raises(gc.errors.InvalidArgumentError, match=text):
        gc.DaskCluster(cluster.client, tasks)


def test_workers_that_fail_to_start_are_tried_again_and_then_reported_with_the_reason(tmp_path: Path) -> None:
    log, code = tmp_path / "log", tmp_path / "preloaded.py"
    note = f"with open({str(log)!r}, 'a+') as log:\n    log.write('x'); log.seek(0); count = len(log.read())\n"
    with dask.config.set({"distributed.worker.preload": [str(code)]}):
        code.write_text(f"{note}import missing_module")
        with pytest.raises(
            gc.errors.FailedPreconditionError, match=r"The 1 workers .* did not start: ModuleNotFoundError: .*missing"
        ) as raised:
            gc.LocalCluster(workers=1, processes=False)
        assert "__main__" in raised.value.suggestion
        assert log.read_text() == "xx"
        code.write_text(f"{note}if count == 3:\n    raise OSError('too busy')")
        with gc.LocalCluster(workers=1, processes=False) as made:
            assert len(made.devices) == 1
        assert len(log.read_text()) > 3


def test_a_cluster_starts_where_the_main_module_has_been_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    main = ModuleType("__main__")
    del main.__spec__
    monkeypatch.setitem(sys.modules, "__main__", main)
    with gc.LocalCluster(1) as cluster:
        assert list(cluster.tasks) == ["worker"]


def test_a_cluster_takes_addresses_of_schedulers_and_workers(cluster: gc.DaskCluster) -> None:
    address = str(cluster.client.scheduler_info()["address"])
    first, key = cluster.places()[0].address, cluster.client.security
    with gc.Graph().as_default(), gc.DaskCluster(address, {"ps": [first], "worker": ["1"]}, security=key) as other:
        with gc.device(PS):
            here = gc.Variable(2.0)
        with gc.device(FIRST):
            there = here * 2.0
        with gc.Session(cluster=other) as session:
            session.run(here.initializer)
            assert session.run(there) == 4.0
        assert repr(other) == "<gc.DaskCluster of 1 ps, 1 worker>"
        assert "<td>/job:worker/task:0</td><td>1</td>" in other._repr_html_()
    assert "lost its scheduler (it is closed)" in other._repr_html_()


def test_a_time_limit_ends_a_step_on_all_tasks(cluster: gc.DaskCluster) -> None:
    with gc.Graph().as_default():
        with gc.device(SECOND):
            queue = make_queue(1, [gc.float32], shapes=[[]])
            waiting = queue.dequeue(name="waiting")
        with gc.device(FIRST):
            after = waiting + 1.0
            other = gc.constant(1.0) * 2.0
        put = queue.enqueue([1.0])
        with gc.Session(cluster=cluster, options=gc.SessionOptions(operation_timeout_in_ms=3_000)) as session:
            with pytest.raises(gc.errors.DeadlineExceededError, match=r"within 3000 ms.*stopped at node 'waiting'") as raised:
                session.run(after)
            assert raised.value.node == "waiting"
            assert session.run(other) == 2.0
            session.run(put)
            assert session.run(after) == 2.0  # the value was not taken by the step that was stopped


@pytest.mark.parametrize("kind", ["waiting", "running"])
def test_ctrl_c_ends_a_step_on_all_tasks_and_leaves_the_session_usable(cluster: gc.DaskCluster, kind: str) -> None:
    with gc.Graph().as_default():
        with gc.device(SECOND):
            queue = make_queue(1, [gc.float32], shapes=[[]])
            turns = gc.placeholder_with_default(10**9, [])
            loop = gc.while_loop(lambda i: i < turns, lambda i: i + 1, [gc.constant(0)])
            work = queue.dequeue(name="waiting") if kind == "waiting" else gc.cast(loop, gc.float32)
            count = gc.Variable(0.0, name="count")
        with gc.device(FIRST):
            after = work + 1.0
        change = count.assign_add(after)
        put = queue.enqueue([1.0])
        with gc.Session(cluster=cluster) as session:
            session.run(count.initializer)
            moment: list[float] = []

            def press() -> None:
                moment.append(time.monotonic())
                signal.pthread_kill(main, signal.SIGINT)

            main = threading.main_thread().ident or 0
            timer = threading.Timer(0.5, press)
            timer.start()
            with pytest.raises(KeyboardInterrupt):
                session.run(change)
            assert time.monotonic() - moment[0] < 5
            timer.join()
            assert session.run(count) == 0.0
            session.run(put)
            expected = 2.0 if kind == "waiting" else 4.0
            assert session.run(change, {turns: 3}) == expected


def test_variables_are_saved_and_recovered_with_all_tasks(cluster: gc.DaskCluster, tmp_path: Path) -> None:
    model = Model()
    with gc.Session(model.graph, cluster=cluster) as session:
        session.run(model.start)
        saver = train.CheckpointSaver(session, tmp_path / "checkpoints", every_n_steps=2, max_to_keep=2)
        with pytest.raises(gc.errors.FailedPreconditionError, match="no checkpoint"):
            saver.recover()
        paths = []
        for _ in range(7):
            session.run(model.step)
            paths.append(saver.step())
        assert [path is None for path in paths] == [True, False] * 3 + [True]
        assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == ["step-4.npz", "step-6.npz"]
        saver.recover()
        assert saver.steps == 6
        assert session.run(model.weights).tolist() == [[4.0, 4.0]] * 3
        assert train.CheckpointSaver(session, tmp_path / "checkpoints").steps == 6
        prefix = gc_saver(model).save(session, tmp_path / "model", write_meta_graph=False)
        session.run(model.step)
        session.recover(prefix)
        assert session.run(model.weights).tolist() == [[4.0, 4.0]] * 3
        with pytest.raises(gc.errors.NotFoundError, match="missing"):
            session.recover(tmp_path / "missing.npz")
        assert session.run(model.weights).tolist() == [[4.0, 4.0]] * 3
        node = model.graph.find("weights")
        assert node is not None
        shown = values_of(node)
        assert shown is not None
        assert "The value in the" in shown.note
        session.reset()
        with pytest.raises(gc.errors.FailedPreconditionError, match="uninitialized value weights"):
            session.run(model.weights)


def gc_saver(model: Model) -> Any:
    with model.graph.as_default():
        return train.Saver()


def test_sessions_have_tasks_of_their_own_which_end_with_them(cluster: gc.DaskCluster) -> None:
    others = frozenset(cluster.client.run_on_scheduler(_tasks))  # of sessions of other tests, which were not closed
    model = Model()
    first, second = gc.Session(model.graph, cluster=cluster), gc.Session(model.graph, cluster=cluster)
    first.run(model.start)
    with pytest.raises(gc.errors.FailedPreconditionError, match="uninitialized value weights"):
        second.run(model.weights)
    dropped = gc.Session(model.graph, cluster=cluster)
    dropped.run(model.start)
    del dropped
    for session in (first, second):
        session.close()
        with pytest.raises(gc.errors.FailedPreconditionError, match="closed Session"):
            session.run(model.weights)
    assert wait_for(lambda: collector.collect() >= 0 and others.issuperset(cluster.client.run_on_scheduler(_tasks)))


def wait_for(test: Callable[[], bool]) -> bool:
    """True as soon as `test` holds, False if that takes longer than 10 seconds."""
    deadline = time.monotonic() + 10
    while not test() and time.monotonic() < deadline:
        time.sleep(0.02)
    return test()


def _tasks(dask_scheduler: Any) -> list[str]:
    return list(dask_scheduler.tasks)


def test_the_stepper_shows_a_run_on_a_cluster_like_one_in_one_process(cluster: gc.DaskCluster) -> None:
    model, shown = Model(), []
    for place in ({"cluster": cluster}, {"devices": cluster.devices}):
        session = gc.Session(model.graph, **place)
        session.run(model.start)
        session.run(model.y, {model.x: X}, gc.RunOptions(trace=True, values=True))
        steps = steps_of(model.graph)
        assert steps is not None
        runs, taken = steps.runs, iter(steps.runs.takes)
        names = [steps.nodes[label] for label in runs.labels]
        sources = [sorted([names[next(taken)] for _ in range(count)]) for count in runs.counts]
        shown.append(sorted(zip(names, runs.states, sources, map(str, runs.means), strict=True)))
        session.close()
    assert shown[0] == shown[1]
    assert {"x", "weights", "product", "y"} <= {name for name, *_ in shown[0]}


def test_a_run_on_a_cluster_goes_on_one_node_at_a_time(cluster: gc.DaskCluster) -> None:
    model, ran = Model(), []
    for place in ({"cluster": cluster}, {"devices": cluster.devices}):
        session = gc.Session(model.graph, **place)
        session.run(model.start)
        run = session.step_through(model.y, {model.x: X})
        names = []
        while not run.is_over:
            names += [node.name for node in run.advance()]
        np.testing.assert_allclose(run.finish(), np.tanh(X @ np.ones((3, 2), np.float32)), rtol=1e-6)
        ran.append((sorted(names), sorted([(each.node, each.mean) for each in run.values.stats])))
        run = session.step_through(model.y, {model.x: X})
        found = run.run_until("product")
        assert found is not None
        assert found.values[0].mean == 7.5
        run.close()
        assert run.is_over
        assert session.run(model.weights).tolist() == [[1.0, 1.0]] * 3
        session.close()
    assert ran[0] == ran[1]
    assert "product" in ran[0][0]
