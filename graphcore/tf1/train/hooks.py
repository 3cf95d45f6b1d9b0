"""`tf.train`: hooks that stop a training, and report on it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor, get_default_graph
from graphcore.tf1 import logging
from graphcore.tf1.train.global_steps import get_global_step
from graphcore.tf1.train.session_hooks import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from graphcore.tf1.variables.variables import Variable


class SecondOrStepTimer:
    """A clock for something that is due again after so many seconds, or so many steps.

    Args:
        every_secs: the seconds in between.
        every_steps: the steps in between.

    Raises:
        InvalidArgumentError: none or both are given.
    """

    def __init__(self, every_secs: float | None = None, every_steps: int | None = None) -> None:
        if (every_secs is None) == (every_steps is None):
            raise InvalidArgumentError(f"Required either every_secs or every_steps, got {every_secs} and {every_steps}")
        self._every_secs = every_secs
        self._every_steps = every_steps
        self.reset()

    def reset(self) -> None:
        """Forget when it was due last."""
        self._last_step: int | None = None
        self._last_time = 0.0

    def should_trigger_for_step(self, step: int) -> bool:
        """True iff it is due at this step; always at the first one."""
        if self._last_step is None:
            return True
        if step == self._last_step:
            return False
        if self._every_secs is not None:
            return time.monotonic() >= self._last_time + self._every_secs
        return step >= self._last_step + (self._every_steps or 1)

    def update_last_triggered_step(self, step: int) -> tuple[float | None, int | None]:
        """Note that it was done at this step. -> seconds and steps since the time before, None at the first."""
        now = time.monotonic()
        passed = (None, None) if self._last_step is None else (now - self._last_time, step - self._last_step)
        self._last_time, self._last_step = now, step
        return passed

    def last_triggered_step(self) -> int | None:
        """The step at which it was done last."""
        return self._last_step


def required_step(hook: SessionRunHook) -> Any:
    """The global step of the default graph.

    Raises:
        InvalidArgumentError: there is none.
    """
    step = get_global_step()
    if step is None:
        raise InvalidArgumentError(f"Global step should be created to use {type(hook).__name__}.")
    return step


class StopAtStepHook(SessionRunHook):
    """Ends a training at a step.

    Args:
        num_steps: the number of steps of this session.
        last_step: the global step to end at.

    Raises:
        InvalidArgumentError: none or both are given.
    """

    def __init__(self, num_steps: int | None = None, last_step: int | None = None) -> None:
        if (num_steps is None) == (last_step is None):
            raise InvalidArgumentError(f"Required either num_steps or last_step, got {num_steps} and {last_step}")
        self._num_steps = num_steps
        self._last_step = last_step
        self._step: Any = None

    def begin(self) -> None:
        """Find the global step."""
        self._step = required_step(self)

    def after_create_session(self, session: Any, coord: Any) -> None:  # noqa: ARG002 - an argument of all hooks
        """Count from the step that was restored."""
        if self._num_steps is not None:
            self._last_step = int(session.run(self._step)) + self._num_steps

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:  # noqa: ARG002 - an argument of all hooks
        """Ask for the step."""
        return SessionRunArgs(self._step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """End the training if it is the last one."""
        last = self._last_step or 0
        if int(run_values.results) + 1 >= last and int(run_context.session.run(self._step)) >= last:
            run_context.request_stop()


class LoggingTensorHook(SessionRunHook):
    """Logs the values of tensors.

    Args:
        tensors: tensors or their names, by the names to log; or a list of them.
        every_n_iter: log in every so many runs.
        every_n_secs: log after so many seconds.
        at_end: log at the end; alone, or besides.
        formatter: a function from the dict of values to the text.

    Raises:
        InvalidArgumentError: it is not clear when to log.
    """

    def __init__(
        self,
        tensors: Any,
        every_n_iter: int | None = None,
        every_n_secs: float | None = None,
        at_end: bool = False,
        formatter: Callable[[dict[str, Any]], str] | None = None,
    ) -> None:
        only_at_end = at_end and every_n_iter is None and every_n_secs is None
        if not only_at_end and (every_n_iter is None) == (every_n_secs is None):
            raise InvalidArgumentError("Required either at_end, or one of every_n_iter and every_n_secs")
        if every_n_iter is not None and every_n_iter <= 0:
            raise InvalidArgumentError(f"invalid every_n_iter={every_n_iter}.")
        self._order = [*tensors] if isinstance(tensors, Mapping) else [_tag(tensor) for tensor in tensors]
        self._tensors = dict(tensors) if isinstance(tensors, Mapping) else dict(zip(self._order, tensors, strict=True))
        self._timer = None if only_at_end else SecondOrStepTimer(every_n_secs, every_n_iter)
        self._at_end = at_end
        self._formatter = formatter
        self._count = 0
        self._is_due = False

    def begin(self) -> None:
        """Find tensors by their names."""
        if self._timer is not None:
            self._timer.reset()
        self._count = 0
        find = get_default_graph().as_graph_element
        self._tensors = {tag: find(tensor) if isinstance(tensor, str) else tensor for tag, tensor in self._tensors.items()}

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:  # noqa: ARG002 - an argument of all hooks
        """Ask for the values if they are due."""
        self._is_due = self._timer is not None and self._timer.should_trigger_for_step(self._count)
        return SessionRunArgs(self._tensors) if self._is_due else None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:  # noqa: ARG002 - an argument of all hooks
        """Log the values."""
        if self._is_due and self._timer is not None:
            seconds, _ = self._timer.update_last_triggered_step(self._count)
            self._log(run_values.results, seconds)
        self._count += 1

    def end(self, session: Any) -> None:
        """Log the values at the end if they are to be."""
        if self._at_end:
            self._log(session.run(self._tensors), None)

    def _log(self, values: dict[str, Any], seconds: float | None) -> None:
        if self._formatter is not None:
            logging.info(self._formatter(values))
            return
        text = ", ".join([f"{tag} = {values[tag]}" for tag in self._order])
        logging.info(text if seconds is None else f"{text} ({seconds:.3f} sec)")


def _tag(tensor: Any) -> str:
    return tensor if isinstance(tensor, str) else tensor.op.name if isinstance(tensor, Variable) else tensor.name


class NanLossDuringTrainingError(RuntimeError):
    """The loss is not a number."""

    def __init__(self) -> None:
        super().__init__("NaN loss during training.")


class NanTensorHook(SessionRunHook):
    """Ends a training when its loss is not a number.

    Args:
        loss_tensor: the loss.
        fail_on_nan_loss: raise NanLossDuringTrainingError; else the training ends.
    """

    def __init__(self, loss_tensor: Tensor, fail_on_nan_loss: bool = True) -> None:
        self._loss = loss_tensor
        self._fails = fail_on_nan_loss

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:  # noqa: ARG002 - an argument of all hooks
        """Ask for the loss."""
        return SessionRunArgs(self._loss)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Look at the loss.

        Raises:
            NanLossDuringTrainingError: it is not a number.
        """
        if not np.isnan(run_values.results).any():
            return
        text = "Model diverged with loss = NaN."
        if self._fails:
            logging.error(text)
            raise NanLossDuringTrainingError
        logging.warning(text)
        run_context.request_stop()


class FinalOpsHook(SessionRunHook):
    """Runs something at the end of a training.

    Args:
        final_ops: the fetches.
        final_ops_feed_dict: their feeds.
    """

    def __init__(self, final_ops: Any, final_ops_feed_dict: dict[Any, Any] | None = None) -> None:
        self._fetches = final_ops
        self._feeds = final_ops_feed_dict
        self.final_ops_values: Any = None
        """The values of the fetches, None before the end."""

    def end(self, session: Any) -> None:
        """Run the fetches."""
        if self._fetches is not None:
            self.final_ops_values = session.run(self._fetches, self._feeds)


class FeedFnHook(SessionRunHook):
    """Feeds each run with what a function returns.

    Args:
        feed_fn: returns a feed dict.
    """

    def __init__(self, feed_fn: Callable[[], dict[Any, Any]]) -> None:
        self.feed_fn = feed_fn

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:  # noqa: ARG002 - an argument of all hooks
        """Ask the function for feeds."""
        return SessionRunArgs(None, self.feed_fn())


def checked_hooks(hooks: Iterable[Any] | None) -> list[SessionRunHook]:
    """The hooks as a list.

    Raises:
        InvalidArgumentError: one is no hook.
    """
    listed = list(hooks or ())
    wrong = [hook for hook in listed if not isinstance(hook, SessionRunHook)]
    if wrong:
        raise InvalidArgumentError(f"hooks: required gc.train.SessionRunHook, got {wrong[0]!r}")
    return listed
