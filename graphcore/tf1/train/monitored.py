"""`tf.train`: sessions that initialise, restore, save and report by themselves."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

from graphcore.errors import FailedPreconditionError, InvalidArgumentError, OutOfRangeError
from graphcore.graph import Graph, get_default_graph
from graphcore.runtime import Session
from graphcore.tf1.framework import group
from graphcore.tf1.summary.nodes import merge_all
from graphcore.tf1.train.coordinators import Coordinator
from graphcore.tf1.train.hooks import checked_hooks
from graphcore.tf1.train.queue_runners import start_queue_runners
from graphcore.tf1.train.saving.checkpoint_states import latest_checkpoint
from graphcore.tf1.train.saving.saver import Saver
from graphcore.tf1.train.saving_hooks import CheckpointSaverHook, StepCounterHook, SummarySaverHook
from graphcore.tf1.train.session_hooks import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues, merged_feeds
from graphcore.tf1.variables.collections import GraphKeys
from graphcore.tf1.variables.listing import global_variables_initializer, local_variables_initializer, tables_initializer
from graphcore.tf1.variables.saving import report_uninitialized_variables

USE_DEFAULT = object()
"""Stands for the default of an argument that may be None."""


class Scaffold:
    """The parts of a training around its model; what is not given is made by `finalize`.

    Args:
        init_op: initialises what is not restored from a checkpoint.
        init_feed_dict: the feeds of `init_op`.
        init_fn: called with the scaffold and the session after `init_op`.
        ready_op: the names of variables without a value; empty when all have one.
        ready_for_local_init_op: the same for `local_init_op`.
        local_init_op: initialises what no checkpoint holds.
        summary_op: all summaries.
        saver: writes and reads checkpoints.
        copy_from_scaffold: a scaffold that provides what is not given.
        local_init_feed_dict: the feeds of `local_init_op`.
    """

    def __init__(
        self,
        init_op: Any = None,
        init_feed_dict: dict[Any, Any] | None = None,
        init_fn: Callable[[Scaffold, Session], object] | None = None,
        ready_op: Any = None,
        ready_for_local_init_op: Any = None,
        local_init_op: Any = None,
        summary_op: Any = None,
        saver: Any = None,
        copy_from_scaffold: Scaffold | None = None,
        local_init_feed_dict: dict[Any, Any] | None = None,
    ) -> None:
        self.init_op = init_op
        self.init_feed_dict = init_feed_dict
        self.init_fn = init_fn
        self.ready_op = ready_op
        self.ready_for_local_init_op = ready_for_local_init_op
        self.local_init_op = local_init_op
        self.local_init_feed_dict = local_init_feed_dict
        self.summary_op = summary_op
        self.saver = saver
        if copy_from_scaffold is not None:
            self.__dict__.update({name: value for name, value in vars(copy_from_scaffold).items() if getattr(self, name) is None})

    def finalize(self) -> Self:
        """Add what is not given to the default graph, and make the graph read-only."""
        self.add_missing()
        get_default_graph().finalize()
        return self

    def add_missing(self) -> None:
        """Add what is not given to the default graph; of a read-only graph nothing changes."""
        graph = get_default_graph()
        if graph.finalized:
            return
        if self.init_op is None:
            self.init_op = Scaffold.get_or_default(
                "init_op", GraphKeys.INIT_OP, lambda: group(global_variables_initializer(), name="init_all")
            )
        if self.ready_op is None:
            self.ready_op = Scaffold.get_or_default("ready_op", GraphKeys.READY_OP, report_uninitialized_variables)
        if self.local_init_op is None:
            self.local_init_op = Scaffold.get_or_default("local_init_op", GraphKeys.LOCAL_INIT_OP, Scaffold.default_local_init_op)
        if self.summary_op is None:
            self.summary_op = Scaffold.get_or_default("summary_op", GraphKeys.SUMMARY_OP, merge_all)
        if self.saver is None and graph.get_collection(GraphKeys.GLOBAL_VARIABLES):
            self.saver = Scaffold.get_or_default("saver", GraphKeys.SAVERS, Saver)

    @staticmethod
    def get_or_default(arg_name: str, collection_key: str, default_constructor: Callable[[], Any]) -> Any:
        """The item of a collection, or a new one, which is put there.

        Raises:
            InvalidArgumentError: the collection has several.
        """
        graph = get_default_graph()
        items = graph.get_collection(collection_key)
        if len(items) > 1:
            raise InvalidArgumentError(f"Graph has more than one {collection_key!r}; {arg_name} must be given")
        if items:
            return items[0]
        default = default_constructor()
        if default is not None:
            graph.add_to_collection(collection_key, default)
        return default

    @staticmethod
    def default_local_init_op() -> Any:
        """A node that initialises local variables and tables."""
        return group(local_variables_initializer(), tables_initializer(), name="init_local")


class SessionCreator:
    """Makes the session below a monitored one."""

    def create_session(self) -> Session:
        """A session with all variables initialised.

        Raises:
            InvalidArgumentError: always, in this base class.
        """
        raise InvalidArgumentError(f"{type(self).__name__} defines no create_session")


class ChiefSessionCreator(SessionCreator):
    """Makes sessions that restore the latest checkpoint, or initialise all variables.

    Args:
        scaffold: parts of the training.
        master: "" or "local", for this process.
        config: options, see `gc.ConfigProto`.
        checkpoint_dir: the folder with checkpoints.
        checkpoint_filename_with_path: a checkpoint, instead.
    """

    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: Any = None,
        checkpoint_dir: str | os.PathLike[str] | None = None,
        checkpoint_filename_with_path: str | os.PathLike[str] | None = None,
    ) -> None:
        self._scaffold = scaffold or Scaffold()
        self._master = master
        self._config = config
        self._folder = checkpoint_dir
        self._file = checkpoint_filename_with_path

    def create_session(self) -> Session:
        """A session with all variables restored or initialised.

        Raises:
            FailedPreconditionError: some have no value then.
        """
        scaffold = self._scaffold.finalize()
        session = Session(get_default_graph(), target=self._master, config=self._config)
        path = self._file if self._file is not None else None if self._folder is None else latest_checkpoint(self._folder)
        if path is not None and scaffold.saver is not None:
            scaffold.saver.restore(session, path)
        else:
            if scaffold.init_op is not None:
                session.run(scaffold.init_op, scaffold.init_feed_dict)
            if scaffold.init_fn is not None:
                scaffold.init_fn(scaffold, session)
        if scaffold.local_init_op is not None:
            session.run(scaffold.local_init_op, scaffold.local_init_feed_dict)
        missing = [] if scaffold.ready_op is None else [name.decode() for name in session.run(scaffold.ready_op).reshape(-1)]
        if missing:
            raise FailedPreconditionError(
                f"Init operations did not make model ready; variables without a value: {', '.join(missing)}", node=missing[0]
            )
        return session


class WorkerSessionCreator(ChiefSessionCreator):
    """Makes sessions of one process, where the chief is the only worker."""

    def __init__(self, scaffold: Scaffold | None = None, master: str = "", config: Any = None, max_wait_secs: float = 1800) -> None:
        del max_wait_secs
        super().__init__(scaffold, master, config)


class MonitoredSession:
    """A session that initialises its variables, calls hooks around its runs, and ends cleanly.

    The graph is read-only until it is closed. An end of input within its `with` block ends the block without an error.

    Args:
        session_creator: makes the session below; a `ChiefSessionCreator` if None.
        hooks: what happens besides.
        stop_grace_period_secs: the time that threads have at the end.
    """

    def __init__(
        self,
        session_creator: SessionCreator | None = None,
        hooks: Sequence[SessionRunHook] | None = None,
        stop_grace_period_secs: float = 120,
    ) -> None:
        self._hooks = checked_hooks(hooks)
        self._grace = stop_grace_period_secs
        self._graph = get_default_graph()
        self._was_final = self._graph.finalized
        self._coord = Coordinator()
        self._stops = False
        for hook in self._hooks:
            hook.begin()
        try:
            session = (session_creator or ChiefSessionCreator()).create_session()
            self._session: Session | None = session
            start_queue_runners(session, self._coord, graph=self._graph)
            for hook in self._hooks:
                hook.after_create_session(session, self._coord)
        except BaseException:
            self._graph.finalized = self._was_final
            raise

    @property
    def graph(self) -> Graph:
        """The graph that it runs."""
        return self._graph

    def _opened(self) -> Session:
        if self._session is None:
            raise FailedPreconditionError("The monitored session is closed")
        return self._session

    def raw_session(self) -> Session:
        """The session below, whose runs call no hooks."""
        return self._opened()

    def run(self, fetches: Any, feed_dict: dict[Any, Any] | None = None, options: Any = None, run_metadata: Any = None) -> Any:
        """Like `gc.Session.run`, with what the hooks add.

        Raises:
            FailedPreconditionError: the session is closed, or was asked to stop.
        """
        session = self._opened()
        if self.should_stop():
            self._coord.raise_requested_exception()
            raise FailedPreconditionError("Run called even after should_stop requested.")
        context = SessionRunContext(SessionRunArgs(fetches, feed_dict, options), session)
        asked = {hook: args for hook in self._hooks if (args := hook.before_run(context)) is not None}
        feeds = merged_feeds(asked, feed_dict)
        wanted = {number: args.fetches for number, args in enumerate(asked.values()) if args.fetches is not None}
        values = session.run({"run": fetches, "hooks": wanted}, feeds or None, options=options, run_metadata=run_metadata)
        results = {hook: values["hooks"].get(number) for number, hook in enumerate(asked)}
        for hook in self._hooks:
            hook.after_run(context, SessionRunValues(results.get(hook), options, run_metadata))
        self._stops = self._stops or context.stop_requested
        return values["run"]

    def run_step_fn(self, step_fn: Callable[..., Any]) -> Any:
        """Call a function with a context that has `session`, `run_with_hooks` and `request_stop`.

        Args:
            step_fn: takes the context as its last argument.
        """
        return step_fn(_StepContext(self))

    def should_stop(self) -> bool:
        """True once a hook or a thread has asked for an end, or the session is closed."""
        return self._session is None or self._stops or self._coord.should_stop()

    def close(self) -> None:
        """End the training: call `end` of all hooks, and stop the threads."""
        self._close(is_clean=True)

    def _close(self, *, is_clean: bool) -> None:
        session = self._session
        if session is None:
            return
        try:
            if is_clean:
                for hook in self._hooks:
                    hook.end(session)
        finally:
            self._session = None
            self._graph.finalized = self._was_final
            try:
                self._coord.request_stop()
                self._coord.join(stop_grace_period_secs=self._grace, ignore_live_threads=True)
            finally:
                session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> bool:
        is_end = kind is not None and issubclass(kind, OutOfRangeError | StopIteration)
        self._close(is_clean=kind is None or is_end)
        return is_end


class _StepContext:
    """The argument of the function of `run_step_fn`."""

    def __init__(self, monitored: MonitoredSession) -> None:
        self._monitored = monitored

    @property
    def session(self) -> Session:
        """The session below."""
        return self._monitored.raw_session()

    def run_with_hooks(self, *args: Any, **kwargs: Any) -> Any:
        """A run with hooks."""
        return self._monitored.run(*args, **kwargs)

    def request_stop(self) -> None:
        """End the `with` block.

        Raises:
            StopIteration: always.
        """
        raise StopIteration("step_fn has requested the iterations to stop.")


class SingularMonitoredSession(MonitoredSession):
    """A monitored session whose session below programs may use.

    Args:
        hooks: what happens besides.
        scaffold: parts of the training.
        master: "" or "local", for this process.
        config: options, see `gc.ConfigProto`.
        checkpoint_dir: the folder with checkpoints to restore from.
        stop_grace_period_secs: the time that threads have at the end.
        checkpoint_filename_with_path: a checkpoint to restore, instead.
    """

    def __init__(
        self,
        hooks: Sequence[SessionRunHook] | None = None,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: Any = None,
        checkpoint_dir: str | os.PathLike[str] | None = None,
        stop_grace_period_secs: float = 120,
        checkpoint_filename_with_path: str | os.PathLike[str] | None = None,
    ) -> None:
        creator = ChiefSessionCreator(scaffold, master, config, checkpoint_dir, checkpoint_filename_with_path)
        super().__init__(creator, hooks, stop_grace_period_secs)


def MonitoredTrainingSession(  # noqa: N802 - TF1's name
    master: str = "",
    is_chief: bool = True,
    checkpoint_dir: str | os.PathLike[str] | None = None,
    scaffold: Scaffold | None = None,
    hooks: Sequence[SessionRunHook] | None = None,
    chief_only_hooks: Sequence[SessionRunHook] | None = None,
    save_checkpoint_secs: Any = USE_DEFAULT,
    save_summaries_steps: Any = USE_DEFAULT,
    save_summaries_secs: Any = USE_DEFAULT,
    config: Any = None,
    stop_grace_period_secs: float = 120,
    log_step_count_steps: int | None = 100,
    max_wait_secs: float = 7200,
    save_checkpoint_steps: Any = USE_DEFAULT,
    summary_dir: str | os.PathLike[str] | None = None,
) -> MonitoredSession:
    """A monitored session that restores, saves, and writes summaries.

    Args:
        master: "" or "local", for this process.
        is_chief: without effect in one process.
        checkpoint_dir: the folder of checkpoints and summaries; None for none.
        scaffold: parts of the training.
        hooks, chief_only_hooks: what happens besides.
        save_checkpoint_secs, save_checkpoint_steps: when to write checkpoints; after each 600 seconds by default.
        save_summaries_steps, save_summaries_secs: when to write summaries; after each 100 steps by default.
        config: options, see `gc.ConfigProto`.
        stop_grace_period_secs: the time that threads have at the end.
        log_step_count_steps: log the steps in a second after so many steps.
        max_wait_secs: without effect in one process.
        summary_dir: the folder of summaries, if it is another.
    """
    del is_chief, max_wait_secs
    save_secs, save_steps = _default(save_checkpoint_secs, save_checkpoint_steps, (600, None))
    summary_steps, summary_secs = _default(save_summaries_steps, save_summaries_secs, (100, None))
    scaffold = scaffold or Scaffold()
    every = checked_hooks(chief_only_hooks)
    folder = summary_dir or checkpoint_dir
    if folder is not None:
        if log_step_count_steps:
            every.append(StepCounterHook(log_step_count_steps, output_dir=folder))
        if summary_steps or summary_secs:
            every.append(SummarySaverHook(summary_steps or None, summary_secs or None, folder, scaffold=scaffold))
    if checkpoint_dir is not None and (save_secs or save_steps):
        every.append(CheckpointSaverHook(checkpoint_dir, save_secs or None, save_steps or None, scaffold=scaffold))
    creator = ChiefSessionCreator(scaffold, master, config, checkpoint_dir)
    return MonitoredSession(creator, [*every, *checked_hooks(hooks)], stop_grace_period_secs)


def _default(first: Any, second: Any, both: tuple[Any, Any]) -> tuple[Any, Any]:
    """Two arguments of which one is given, or the defaults of both."""
    if first is USE_DEFAULT and second is USE_DEFAULT:
        return both
    return None if first is USE_DEFAULT else first, None if second is USE_DEFAULT else second
