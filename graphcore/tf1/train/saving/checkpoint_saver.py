"""Checkpoints every so many steps."""

from __future__ import annotations

import os
import re
from numbers import Integral
from pathlib import Path
from typing import Any, Final

from graphcore.errors import FailedPreconditionError
from graphcore.graph.model.argument_errors import refuse
from graphcore.runtime import Session
from graphcore.tf1.variables.saving import save_variables

_NAME: Final = re.compile(r"step-(\d+)\.npz")


class CheckpointSaver:
    """Saves the variables of a session every n steps, for `Session.recover` and `gc.restore_variables`.

        saver = gc.train.CheckpointSaver(session, "checkpoints", every_n_steps=100)
        for features, labels in batches:
            session.run(train, {x: features, t: labels})
            saver.step()

    Each checkpoint is one file, `step-<n>.npz`, written by `gc.save_variables` beside its place and renamed: it is whole or not there, whenever
    the process ends. Old ones are removed after that. A folder with checkpoints is continued: `steps` begins with the number of the last one.

    Args:
        session: the session.
        folder: the folder, which is made if it is missing.
        every_n_steps: the number of steps from one checkpoint to the next.
        max_to_keep: the number of checkpoints to keep; None for all.

    Raises:
        InvalidArgumentError: an argument of another kind.
        FailedPreconditionError: the folder cannot be made.

    Attributes:
        steps: the number of steps so far.
    """

    def __init__(self, session: Session, folder: str | os.PathLike[str], every_n_steps: int = 100, max_to_keep: int | None = 5) -> None:
        if not isinstance(session, Session):
            refuse("session", "a gc.Session", session)
        self._session = session
        self._folder = Path(folder)
        self._every = _checked_count("every_n_steps", every_n_steps)
        self._kept = None if max_to_keep is None else _checked_count("max_to_keep", max_to_keep)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FailedPreconditionError(f"Cannot make the folder '{folder}': {error.strerror}") from error
        self.steps = max(self._saved(), default=0)

    def __repr__(self) -> str:
        return f"<gc.train.CheckpointSaver every {self._every} steps, {self.steps} so far, in '{self._folder}'>"

    @property
    def latest(self) -> str | None:
        """The path of the last checkpoint in the folder, None if there is none."""
        saved = self._saved()
        return str(saved[max(saved)]) if saved else None

    def step(self) -> str | None:
        """Count a step, and save if a checkpoint is due.

        Returns:
            The path of the checkpoint, None if none was due.

        Raises:
            FailedPreconditionError: a variable has no value, or the file cannot be written. The step counts; the next call saves again.
            AbortedError: a task of the cluster is lost.
        """
        self.steps += 1
        return self.save() if self.steps - max(self._saved(), default=0) >= self._every else None

    def save(self) -> str:
        """Save now.

        Returns:
            The path of the checkpoint.

        Raises:
            FailedPreconditionError, AbortedError: as `step`.
        """
        path = self._folder / f"step-{self.steps}.npz"
        save_variables(self._session, path)
        saved = self._saved()
        for number in sorted(saved)[: -self._kept] if self._kept else ():
            saved[number].unlink(missing_ok=True)
        return str(path)

    def recover(self, cluster: Any = None) -> None:
        """Let the session begin again at the last checkpoint after a loss, and count from its step on.

        Args:
            cluster: that of `Session.recover`.

        Raises:
            FailedPreconditionError: there is no checkpoint.
            GraphError: as `Session.recover`.
        """
        latest = self.latest
        if latest is None:
            raise FailedPreconditionError(f"There is no checkpoint in '{self._folder}' to recover from")
        self._session.recover(latest, cluster)
        self.steps = max(self._saved())

    def _saved(self) -> dict[int, Path]:
        """The checkpoints in the folder, by their steps."""
        matches = {path: _NAME.fullmatch(path.name) for path in self._folder.iterdir()} if self._folder.is_dir() else {}
        return {int(match[1]): path for path, match in matches.items() if match is not None}


def _checked_count(name: str, value: Any) -> int:
    if not isinstance(value, Integral) or value < 1:
        refuse(name, "a positive number", value)
    return int(value)
