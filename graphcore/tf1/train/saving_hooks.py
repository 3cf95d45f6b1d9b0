"""`tf.train`: hooks that write checkpoints and summaries while a training runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graphcore.errors import InvalidArgumentError
from graphcore.tf1 import logging
from graphcore.tf1.summary.messages import Summary
from graphcore.tf1.summary.writers import FileWriterCache
from graphcore.tf1.train.hooks import SecondOrStepTimer, required_step
from graphcore.tf1.train.session_hooks import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues


class CheckpointSaverListener:
    """Calls before and after each checkpoint of a `CheckpointSaverHook`."""

    def begin(self) -> None:
        """Called before the session is made."""

    def before_save(self, session: Any, global_step_value: int) -> None:
        """Called before a checkpoint is written."""

    def after_save(self, session: Any, global_step_value: int) -> Any:
        """Called after a checkpoint is written. True ends the training."""

    def end(self, session: Any, global_step_value: int) -> None:
        """Called at the end of the training."""


class CheckpointSaverHook(SessionRunHook):
    """Writes a checkpoint at the begin and the end of a training, and in between.

    Args:
        checkpoint_dir: the folder.
        save_secs: write after so many seconds.
        save_steps: write after so many steps.
        saver: the saver; that of `scaffold` if None.
        checkpoint_basename: the begin of the names of files.
        scaffold: parts of the training, see `Scaffold`.
        listeners: what happens around each checkpoint.

    Raises:
        InvalidArgumentError: none or both of `save_secs` and `save_steps`, or of `saver` and `scaffold`, are given.
    """

    def __init__(
        self,
        checkpoint_dir: str | os.PathLike[str],
        save_secs: float | None = None,
        save_steps: int | None = None,
        saver: Any = None,
        checkpoint_basename: str = "model.ckpt",
        scaffold: Any = None,
        listeners: Sequence[CheckpointSaverListener] | None = None,
    ) -> None:
        if saver is not None and scaffold is not None:
            raise InvalidArgumentError("Required one of saver and scaffold, got both")
        self._saver = saver
        self._scaffold = scaffold
        self._path = Path(checkpoint_dir) / checkpoint_basename
        self._timer = SecondOrStepTimer(save_secs, save_steps)
        self._listeners = list(listeners or ())
        self._step: Any = None

    def begin(self) -> None:
        """Find the global step."""
        self._step = required_step(self)
        for listener in self._listeners:
            listener.begin()

    def after_create_session(self, session: Any, coord: Any) -> None:  # noqa: ARG002 - an argument of all hooks
        """Write the first checkpoint."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        step = int(session.run(self._step))
        self._save(session, step)
        self._timer.update_last_triggered_step(step)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:  # noqa: ARG002 - an argument of all hooks
        """Ask for the step."""
        return SessionRunArgs(self._step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Write a checkpoint if one is due."""
        if not self._timer.should_trigger_for_step(int(run_values.results) + 1):
            return
        step = int(run_context.session.run(self._step))
        if self._timer.should_trigger_for_step(step):
            self._timer.update_last_triggered_step(step)
            if self._save(run_context.session, step):
                run_context.request_stop()

    def end(self, session: Any) -> None:
        """Write the last checkpoint."""
        step = int(session.run(self._step))
        if step != self._timer.last_triggered_step():
            self._save(session, step)
        for listener in self._listeners:
            listener.end(session, step)

    def _save(self, session: Any, step: int) -> bool:
        for listener in self._listeners:
            listener.before_save(session, step)
        self._get_saver().save(session, self._path, global_step=step)
        logging.info("Saving checkpoints for %d into %s.", step, self._path)
        stops = [bool(listener.after_save(session, step)) for listener in self._listeners]
        return any(stops)

    def _get_saver(self) -> Any:
        if self._saver is not None:
            return self._saver
        saver = None if self._scaffold is None else self._scaffold.saver
        if saver is None:
            raise InvalidArgumentError("CheckpointSaverHook: required a saver, or a scaffold with one")
        return saver


class _Writing(SessionRunHook):
    """A hook that writes events.

    Args:
        output_dir: the folder of a writer of its own.
        summary_writer: the writer; None for one in `output_dir`, if there is one.
    """

    def __init__(self, output_dir: str | os.PathLike[str] | None, summary_writer: Any) -> None:
        self._folder = output_dir
        self._writer = summary_writer
        self._step: Any = None

    def begin(self) -> None:
        """Open the file of events, and find the global step."""
        self._step = required_step(self)
        if self._writer is None and self._folder is not None:
            self._writer = FileWriterCache.get(os.fspath(self._folder))

    def end(self, session: Any) -> None:  # noqa: ARG002 - an argument of all hooks
        """Write what is left."""
        if self._writer is not None:
            self._writer.flush()


class StepCounterHook(_Writing):
    """Logs the steps in a second, and writes them as a summary.

    Args:
        every_n_steps: report after so many steps.
        every_n_secs: report after so many seconds.
        output_dir: the folder of a writer of its own.
        summary_writer: the writer; None for one in `output_dir`, if there is one.
    """

    def __init__(
        self,
        every_n_steps: int | None = 100,
        every_n_secs: float | None = None,
        output_dir: str | os.PathLike[str] | None = None,
        summary_writer: Any = None,
    ) -> None:
        super().__init__(output_dir, summary_writer)
        self._timer = SecondOrStepTimer(every_n_secs, every_n_steps)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:  # noqa: ARG002 - an argument of all hooks
        """Ask for the step."""
        return SessionRunArgs(self._step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Report if it is due."""
        if not self._timer.should_trigger_for_step(int(run_values.results) + 1):
            return
        step = int(run_context.session.run(self._step))
        if not self._timer.should_trigger_for_step(step):
            return
        seconds, steps = self._timer.update_last_triggered_step(step)
        if seconds and steps is not None:
            rate = steps / seconds
            logging.info("global_step/sec: %g", rate)
            if self._writer is not None:
                name = f"{self._step.op.name if hasattr(self._step, 'initializer') else self._step.node.name}/sec"
                self._writer.add_summary(Summary(value=[Summary.Value(tag=name, simple_value=rate)]), step)


class SummarySaverHook(_Writing):
    """Writes summaries.

    Args:
        save_steps: write after so many steps.
        save_secs: write after so many seconds.
        output_dir: the folder of a writer of its own.
        summary_writer: the writer; None for one in `output_dir`.
        scaffold: parts of the training; its `summary_op` is written.
        summary_op: the summary, or a list of them.

    Raises:
        InvalidArgumentError: none or both of `save_steps` and `save_secs`, or of `scaffold` and `summary_op`, are given.
    """

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: str | os.PathLike[str] | None = None,
        summary_writer: Any = None,
        scaffold: Any = None,
        summary_op: Any = None,
    ) -> None:
        if (scaffold is None) == (summary_op is None):
            raise InvalidArgumentError("Exactly one of scaffold or summary_op must be provided.")
        super().__init__(output_dir, summary_writer)
        self._timer = SecondOrStepTimer(save_secs, save_steps)
        self._scaffold = scaffold
        self._summary_op = summary_op
        self._is_due = False

    def _summaries(self) -> list[Any]:
        summary_op = self._summary_op if self._scaffold is None else self._scaffold.summary_op
        return list(summary_op) if isinstance(summary_op, list | tuple) else [] if summary_op is None else [summary_op]

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:  # noqa: ARG002 - an argument of all hooks
        """Ask for the step, and for the summaries if they are due."""
        last = self._timer.last_triggered_step()
        self._is_due = last is None or self._timer.should_trigger_for_step(self._next)
        return SessionRunArgs({"step": self._step, "summaries": self._summaries() if self._is_due else []})

    def begin(self) -> None:
        """Open the file of events, and find the global step."""
        super().begin()
        self._next = 0
        self._timer.reset()

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Write the summaries."""
        step = int(run_values.results["step"]) + 1
        if self._is_due:
            step = int(run_context.session.run(self._step))
            self._timer.update_last_triggered_step(step)
            for summary in run_values.results["summaries"]:
                if self._writer is not None:
                    self._writer.add_summary(summary, step)
        self._next = step + 1
