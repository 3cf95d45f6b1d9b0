"""`tf.train`: what hooks add to the runs of a monitored session."""

from __future__ import annotations

from typing import Any, NamedTuple

from graphcore.errors import InvalidArgumentError


class SessionRunArgs(NamedTuple):
    """The arguments of a run: fetches, feeds and options."""

    fetches: Any
    feed_dict: dict[Any, Any] | None = None
    options: Any = None


class SessionRunValues(NamedTuple):
    """The values of the fetches of a hook, and the options and statistics of the run."""

    results: Any
    options: Any
    run_metadata: Any


class SessionRunContext:
    """A run of a monitored session, as its hooks see it.

    Args:
        original_args: what the program runs.
        session: the session below the monitored one.
    """

    def __init__(self, original_args: SessionRunArgs, session: Any) -> None:
        self.original_args = original_args
        self.session = session
        self._stops = False

    @property
    def stop_requested(self) -> bool:
        """True once a hook has asked for the end of the training."""
        return self._stops

    def request_stop(self) -> None:
        """Ask for the end of the training: `should_stop` of the session is True from now on."""
        self._stops = True


class SessionRunHook:
    """Calls at the begin and the end of a training, and before and after each run."""

    def begin(self) -> None:
        """Called before the session is made; the last chance to add nodes."""

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Called once variables are initialised or restored."""

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Called before each run.

        Returns:
            What the run is to compute besides, or None.
        """

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Called after each run with the values of what `before_run` asked for."""

    def end(self, session: Any) -> None:
        """Called at the end of the training, unless an error has ended it."""


def merged_feeds(hooks: dict[SessionRunHook, SessionRunArgs], feeds: dict[Any, Any] | None) -> dict[Any, Any]:
    """The feeds of a run with those of its hooks.

    Raises:
        InvalidArgumentError: two of them feed the same.
    """
    merged = dict(feeds or {})
    for hook, asked in hooks.items():
        for key, value in (asked.feed_dict or {}).items():
            if key in merged:
                raise InvalidArgumentError(f"{type(hook).__name__} feeds {key!r}, which the run or another hook feeds as well")
            merged[key] = value
    return merged
