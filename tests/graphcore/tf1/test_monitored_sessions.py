"""Monitored sessions: initialised, restored, watched by hooks, and ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import FailedPreconditionError, InvalidArgumentError, OutOfRangeError
from graphcore.tf1 import logging
from graphcore.tf1.names.lookup import namespace

train: Any = namespace("train")
summary: Any = namespace("summary")


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr(logging, "info", lambda text, *args: found.append(str(text) % args))
    return found


def model() -> tuple[gc.Variable, gc.Tensor, gc.Node]:
    w = gc.Variable(8.0, name="w")
    loss = gc.square(w, name="loss")
    return w, loss, gc.GradientDescentOptimizer(0.25).minimize(loss, train.get_or_create_global_step())


def test_a_training_stops_saves_reports_and_goes_on_where_it_was(tmp_path: Path, logged: list[str]) -> None:
    w, loss, step = model()
    summary.scalar("losses", loss)
    saved: list[int] = []

    class Listener(train.CheckpointSaverListener):  # type: ignore[misc]  # found at run time
        def after_save(self, session: Any, global_step_value: int) -> None:
            saved.append(global_step_value)

    hooks = [
        train.StopAtStepHook(num_steps=5),
        train.LoggingTensorHook({"loss": "loss:0"}, every_n_iter=2),
        train.CheckpointSaverHook(tmp_path / "own", save_steps=2, saver=gc.train.Saver(), listeners=[Listener()]),  # type: ignore[attr-defined]  # found at run time
        train.FinalOpsHook(w),
    ]
    with train.MonitoredTrainingSession(checkpoint_dir=tmp_path, hooks=hooks, save_summaries_steps=2, log_step_count_steps=2) as session:
        assert session.graph.finalized
        count = 0
        while not session.should_stop():
            session.run(step)
            count += 1
        with pytest.raises(FailedPreconditionError, match="Run called even after should_stop requested"):
            session.run(step)
    assert (count, saved) == (5, [0, 2, 4, 5])
    assert float(hooks[-1].final_ops_values) == 8.0 / 2**5
    losses = [text.partition(" (")[0] for text in logged if text.startswith("loss = ")]
    assert losses == ["loss = 64.0", "loss = 4.0", "loss = 0.25"]
    assert any(text.startswith("global_step/sec: ") for text in logged)
    assert not w.graph.finalized
    assert train.latest_checkpoint(tmp_path) == str(tmp_path / "model.ckpt-5")
    (events,) = tmp_path.glob("events.out.tfevents.*")
    values = [(value.tag, event.step) for event in train.summary_iterator(str(events)) for value in event.summary.value]
    assert [step for tag, step in values if tag == "losses"] == [1, 3, 5]
    with train.SingularMonitoredSession(checkpoint_dir=tmp_path, hooks=[train.StopAtStepHook(last_step=7)]) as session:
        while not session.should_stop():
            session.run(step)
        assert float(session.raw_session().run(w)) == 8.0 / 2**7


def test_hooks_see_each_run_and_add_fetches_and_feeds(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [], name="x")
    w = gc.Variable(2.0, name="w")
    y = gc.multiply(w, x, name="y")
    seen: list[Any] = []

    class Watch(train.SessionRunHook):  # type: ignore[misc]  # found at run time
        def begin(self) -> None:
            seen.append("begin")
            self.more = gc.identity(y + 1.0, name="more")

        def after_create_session(self, session: Any, coord: Any) -> None:
            seen.append(("made", session.graph is graph, coord.should_stop()))

        def before_run(self, run_context: Any) -> Any:
            assert run_context.original_args.fetches is y
            return train.SessionRunArgs({"more": self.more}, {x: 5.0})

        def after_run(self, run_context: Any, run_values: Any) -> None:
            seen.append(run_values.results)
            run_context.request_stop()

        def end(self, session: Any) -> None:
            seen.append(("end", float(session.run(w))))

    with train.MonitoredSession(hooks=[Watch()]) as session:
        assert session.run(y) == 10.0
        assert session.should_stop()
    assert seen == ["begin", ("made", True, False), {"more": 11.0}, ("end", 2.0)]
    with (
        train.MonitoredSession(hooks=[train.FeedFnHook(lambda: {x: 1.0})]) as session,
        pytest.raises(InvalidArgumentError, match=r"FeedFnHook feeds .*, which the run or another hook feeds as well"),
    ):
        session.run(y, {x: 2.0})


def test_a_loss_that_is_not_a_number_ends_a_training() -> None:
    loss = gc.log(gc.Variable(-1.0)) * 1.0
    with pytest.raises(train.NanLossDuringTrainingError), train.MonitoredSession(hooks=[train.NanTensorHook(loss)]) as session:
        session.run(loss)
    with train.MonitoredSession(hooks=[train.NanTensorHook(loss, fail_on_nan_loss=False)]) as session:
        assert np.isnan(session.run(loss))
        assert session.should_stop()


def test_the_end_of_input_ends_the_block_and_other_errors_pass_it(graph: gc.Graph) -> None:
    model()

    def no_more_input(_: object) -> None:
        raise OutOfRangeError("no more input")

    with train.MonitoredSession() as session:
        session.run_step_fn(no_more_input)
    assert session.should_stop()
    with pytest.raises(KeyError), train.MonitoredSession() as session:
        raise KeyError
    with train.MonitoredSession() as session:
        assert session.run_step_fn(lambda context: float(context.run_with_hooks("loss:0"))) == 64.0
        session.run_step_fn(lambda context: context.request_stop())
    assert not graph.finalized


def test_a_scaffold_may_leave_variables_without_a_value_which_is_refused() -> None:
    _, loss, _ = model()
    with pytest.raises(FailedPreconditionError, match="Init operations did not make model ready; variables without a value: w"):
        train.MonitoredSession(train.ChiefSessionCreator(train.Scaffold(init_op=train.get_global_step().initializer)))
    started: list[Any] = []
    scaffold = train.Scaffold(init_fn=lambda made, session: started.append((made, session.run(loss))))
    with train.SingularMonitoredSession(scaffold=scaffold):
        assert started == [(scaffold, 64.0)]


def test_hooks_with_unclear_arguments_are_refused() -> None:
    gc.Variable(1.0)
    with pytest.raises(InvalidArgumentError, match="Global step should be created to use StopAtStepHook"):
        train.MonitoredSession(hooks=[train.StopAtStepHook(last_step=1)])
    makers: list[Callable[[], object]] = [
        train.StopAtStepHook,
        lambda: train.LoggingTensorHook(["a"]),
        lambda: train.SecondOrStepTimer(1.0, 1),
        lambda: train.CheckpointSaverHook("folder"),
        lambda: train.SummarySaverHook(1, output_dir="folder"),
        lambda: train.MonitoredSession(hooks=["hook"]),
    ]
    for make in makers:
        with pytest.raises(InvalidArgumentError, match=r"[Rr]equired|Exactly one"):
            make()


def test_a_coordinator_ends_threads_and_raises_their_error() -> None:
    coord = train.Coordinator()
    counts: list[int] = []
    looper = train.LooperThread.loop(coord, 0.001, counts.append, [1])

    def fail() -> None:
        with coord.stop_on_exception():
            while len(counts) < 3:
                coord.wait_for_stop(0.001)
            raise ValueError("enough")

    thread = threading.Thread(target=fail)
    thread.start()
    with pytest.raises(ValueError, match="enough"):
        coord.join([thread])
    assert coord.should_stop()
    assert coord.joined
    assert not looper.is_alive()
    coord.clear_stop()
    coord.request_stop(OutOfRangeError("no more input"))
    coord.join()


def test_a_supervisor_restores_what_it_has_saved_and_stops_its_threads(tmp_path: Path) -> None:
    w, loss, step = model()
    summary.scalar("losses", loss)
    supervisor = train.Supervisor(logdir=tmp_path, save_summaries_secs=0.01)
    with supervisor.managed_session() as session:
        found: Any = gc.get_default_session()
        assert found is session
        assert supervisor.graph.finalized
        end = time.monotonic() + 20
        while train.latest_checkpoint(tmp_path) is None and time.monotonic() < end:
            time.sleep(0.01)  # the supervisor's thread begins with a checkpoint of its own
        for _ in range(3):
            session.run(step)
        supervisor.saver.save(session, supervisor.save_path, global_step=supervisor.global_step)
    assert supervisor.should_stop()
    assert not supervisor.graph.finalized
    assert train.latest_checkpoint(tmp_path) == str(tmp_path / "model.ckpt-3")
    counts: list[int] = []

    def one(session: Any, most: int) -> None:
        counts.append(int(session.run(supervisor.global_step)))
        session.run(step)
        if len(counts) == most:
            raise OutOfRangeError("no more input")

    train.basic_train_loop(train.Supervisor(logdir=tmp_path, summary_op=None, save_model_secs=0), one, [2])
    assert counts == [3, 4]
    with train.Supervisor(summary_op=None).managed_session() as session:
        assert float(session.run(w)) == 8.0, "nothing is restored without a folder"
    with pytest.raises(InvalidArgumentError, match="is_chief=False and session_manager are for several processes"):
        train.Supervisor(is_chief=False)
