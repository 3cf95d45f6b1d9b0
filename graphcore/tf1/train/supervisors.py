"""`tf.train.Supervisor`: the older way to a session that initialises, restores and saves by itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from graphcore.errors import FailedPreconditionError, InvalidArgumentError, OutOfRangeError
from graphcore.graph import Graph, get_default_graph
from graphcore.runtime import Session
from graphcore.tf1.summary.writers import FileWriter
from graphcore.tf1.train.coordinators import Coordinator, LooperThread
from graphcore.tf1.train.global_steps import get_global_step
from graphcore.tf1.train.monitored import USE_DEFAULT, ChiefSessionCreator, Scaffold
from graphcore.tf1.train.queue_runners import start_queue_runners


class Supervisor:
    """Initialises or restores the variables of a graph, and saves them and its summaries in threads.

    The graph is read-only from then on, until the block of `managed_session` ends.

    Args:
        graph: the graph; the default graph if None.
        ready_op, ready_for_local_init_op, local_init_op, init_op, init_feed_dict: those of `Scaffold`.
        is_chief: False is refused, since there is one process.
        logdir: the folder of checkpoints and summaries; None for none.
        summary_op: the summaries; all of the graph by default, None for none.
        saver: the saver; one of all variables by default, None for none.
        global_step: the global step; that of the graph by default.
        save_summaries_secs, save_model_secs: the seconds between summaries, and between checkpoints; 0 for none.
        recovery_wait_secs, local_init_run_options: without effect in one process.
        stop_grace_secs: the time that threads have at the end.
        checkpoint_basename: the begin of the names of files.
        session_manager: not available.
        summary_writer: the writer; one in `logdir` by default, None for none.
        init_fn: called with the session after `init_op`.

    Raises:
        InvalidArgumentError: an argument that is not available.
    """

    def __init__(
        self,
        graph: Graph | None = None,
        ready_op: Any = USE_DEFAULT,
        ready_for_local_init_op: Any = USE_DEFAULT,
        is_chief: bool = True,
        init_op: Any = USE_DEFAULT,
        init_feed_dict: dict[Any, Any] | None = None,
        local_init_op: Any = USE_DEFAULT,
        logdir: str | os.PathLike[str] | None = None,
        summary_op: Any = USE_DEFAULT,
        saver: Any = USE_DEFAULT,
        global_step: Any = USE_DEFAULT,
        save_summaries_secs: float = 120,
        save_model_secs: float = 600,
        recovery_wait_secs: float = 30,  # noqa: ARG002 - of several processes
        stop_grace_secs: float = 120,
        checkpoint_basename: str = "model.ckpt",
        session_manager: Any = None,
        summary_writer: Any = USE_DEFAULT,
        init_fn: Callable[[Session], object] | None = None,
        local_init_run_options: Any = None,  # noqa: ARG002 - of several processes
    ) -> None:
        if not is_chief or session_manager is not None:
            raise InvalidArgumentError("Supervisor: is_chief=False and session_manager are for several processes, which are not here")
        self.graph = graph or get_default_graph()
        self.coord = Coordinator()
        self._folder = None if logdir is None else Path(logdir)
        self._secs = save_summaries_secs, save_model_secs
        self._grace = stop_grace_secs
        self.save_path = None if self._folder is None else str(self._folder / checkpoint_basename)
        self._was_final = self.graph.finalized
        wanted = {
            "ready_op": ready_op,
            "ready_for_local_init_op": ready_for_local_init_op,
            "init_op": init_op,
            "local_init_op": local_init_op,
            "summary_op": summary_op,
            "saver": saver,
        }
        with self.graph.as_default():
            self.global_step = get_global_step() if global_step is USE_DEFAULT else global_step
            self._scaffold = Scaffold(
                init_feed_dict=init_feed_dict,
                init_fn=None if init_fn is None else lambda _, session: init_fn(session),
                **{name: None if value is USE_DEFAULT else value for name, value in wanted.items()},
            )
            self._scaffold.add_missing()
        for name in ("ready_op", "summary_op", "saver"):
            if wanted[name] is None:
                setattr(self._scaffold, name, None)
        self.summary_writer = summary_writer
        if summary_writer is USE_DEFAULT:
            self.summary_writer = None if self._folder is None else FileWriter(self._folder)

    @property
    def saver(self) -> Any:
        """The saver, None for none."""
        return self._scaffold.saver

    @property
    def summary_op(self) -> Any:
        """The summaries, None for none."""
        return self._scaffold.summary_op

    @property
    def init_op(self) -> Any:
        """The node that initialises variables."""
        return self._scaffold.init_op

    @contextmanager
    def managed_session(
        self, master: str = "", config: Any = None, start_standard_services: bool = True, close_summary_writer: bool = True
    ) -> Iterator[Session]:
        """A session for a `with` block, with threads that save; at its end the threads are stopped.

        The end of input ends the block without an error.

        Args:
            master: "" or "local", for this process.
            config: options, see `gc.ConfigProto`.
            start_standard_services: save summaries and checkpoints meanwhile, and fill queues.
            close_summary_writer: close the writer at the end.
        """
        session = self.prepare_or_wait_for_session(master, config, start_standard_services=start_standard_services)
        try:
            with session.as_default():
                yield session
        except (OutOfRangeError, StopIteration) as error:
            self.coord.request_stop(error)
        except BaseException as error:
            self.coord.request_stop(error)
            raise
        finally:
            try:
                self.stop(close_summary_writer=close_summary_writer, ignore_live_threads=True)
            finally:
                session.close()
                self.graph.finalized = self._was_final

    def prepare_or_wait_for_session(
        self,
        master: str = "",
        config: Any = None,
        wait_for_checkpoint: bool = False,  # noqa: ARG002 - of several processes
        max_wait_secs: float = 7200,  # noqa: ARG002 - of several processes
        start_standard_services: bool = True,
    ) -> Session:
        """A session with all variables restored from the folder, or initialised."""
        self.coord.clear_stop()
        with self.graph.as_default():
            session = ChiefSessionCreator(self._scaffold, master, config, self._folder).create_session()
        if start_standard_services:
            self.start_standard_services(session)
        self.start_queue_runners(session)
        return session

    def start_standard_services(self, sess: Session) -> list[LooperThread]:
        """Start the threads that save summaries and checkpoints."""
        started = []
        summary_secs, model_secs = self._secs
        if self._folder is not None and model_secs and self.saver is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
            started.append(self.loop(model_secs, self._save, (sess,)))
        if self.summary_writer is not None and summary_secs and self.summary_op is not None:
            started.append(self.loop(summary_secs, self._summarize, (sess,)))
        return started

    def _save(self, session: Session) -> None:
        self.saver.save(session, self.save_path, global_step=self.global_step)

    def _summarize(self, session: Session) -> None:
        self.summary_computed(session, session.run(self.summary_op))

    def start_queue_runners(self, sess: Session, queue_runners: Sequence[Any] | None = None) -> list[Any]:
        """Start the threads of queue runners, those of the graph if None."""
        if queue_runners is None:
            return list(start_queue_runners(sess, self.coord, graph=self.graph))
        return [thread for runner in queue_runners for thread in runner.create_threads(sess, self.coord, daemon=True, start=True)]

    def loop(
        self, timer_interval_secs: float | None, target: Callable[..., object], args: Sequence[Any] = (), kwargs: Any = None
    ) -> LooperThread:
        """Start a thread that calls a function again and again."""
        return LooperThread.loop(self.coord, timer_interval_secs, target, args, kwargs)

    def summary_computed(self, sess: Session, summary: Any, global_step: int | None = None) -> None:
        """Write a summary.

        Raises:
            FailedPreconditionError: there is no writer.
        """
        if self.summary_writer is None:
            raise FailedPreconditionError("Writing a summary requires a summary writer.")
        if global_step is None and self.global_step is not None:
            global_step = int(sess.run(self.global_step))
        self.summary_writer.add_summary(summary, global_step)

    def should_stop(self) -> bool:
        """True once an end was asked for."""
        return self.coord.should_stop()

    def request_stop(self, ex: Any = None) -> None:
        """Ask for an end, because of an error if one is given."""
        self.coord.request_stop(ex)

    def wait_for_stop(self) -> None:
        """Wait until an end is asked for."""
        self.coord.wait_for_stop()

    def stop(self, threads: Sequence[Any] | None = None, close_summary_writer: bool = True, ignore_live_threads: bool = False) -> None:
        """Stop the threads.

        Args:
            threads: further threads to wait for.
            close_summary_writer: close the writer.
            ignore_live_threads: let those that do not end in time run.
        """
        self.coord.request_stop()
        try:
            self.coord.join(threads, stop_grace_period_secs=self._grace, ignore_live_threads=ignore_live_threads)
        finally:
            if close_summary_writer and self.summary_writer is not None:
                self.summary_writer.close()


def basic_train_loop(
    supervisor: Supervisor, train_step_fn: Callable[..., object], args: Sequence[Any] | None = None, kwargs: Any = None, master: str = ""
) -> None:
    """Call a function with a session until a supervisor says stop.

    Args:
        supervisor: makes the session.
        train_step_fn: takes the session and further arguments.
        args, kwargs: these.
        master: "" or "local", for this process.
    """
    with supervisor.managed_session(master) as session:
        _repeat(supervisor, partial(train_step_fn, session, *(args or ()), **(kwargs or {})))


def _repeat(supervisor: Supervisor, step: Callable[[], object]) -> None:
    while not supervisor.should_stop():
        step()
