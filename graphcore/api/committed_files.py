"""Files as a commit of Git has them: `model.onnx@HEAD~1`."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from graphcore.errors import FailedPreconditionError, NotFoundError

_SECONDS: Final = 60
_POINTER: Final = b"version https://git-lfs.github.com/spec/"


def is_committed(text: str) -> bool:
    """True for the name of a file, `@` and a commit, where no file has this whole name."""
    path, at, commit = text.rpartition("@")
    return bool(path and at and commit and not commit.startswith("-")) and Path(path).parent.is_dir() and not Path(text).exists()


@contextmanager
def committed_file(text: str) -> Iterator[Path]:
    """A file as a commit has it, in a temporary folder that is removed afterwards.

    Args:
        text: the path of the file, `@`, and a commit in Git's words: `model.onnx@HEAD~1`.

    Raises:
        NotFoundError: there is no such commit, or it has no such file.
        FailedPreconditionError: there is no Git, or the commit has only a pointer to the file.
    """
    content = _content(text)
    path, _, commit = text.rpartition("@")
    if content.startswith(_POINTER):
        raise FailedPreconditionError(f"Commit {commit} has only a pointer of Git LFS for '{path}': required the file itself")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, Path(path).name)
        file.write_bytes(content)
        yield file


def _content(text: str) -> bytes:
    path, _, commit = text.rpartition("@")
    # cat-file runs no filters and no programs that a repository configures.
    command = ["git", "-C", str(Path(path).parent.resolve()), "cat-file", "blob", f"{commit}:./{Path(path).name}"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)  # noqa: S603 - no shell; the commit begins with no dash
    except FileNotFoundError:
        raise FailedPreconditionError(f"'{text}' needs Git, which is not installed") from None
    except subprocess.TimeoutExpired:
        raise FailedPreconditionError(f"Git did not give '{text}' within {_SECONDS} s") from None
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().removeprefix("fatal: ").partition("\n")[0]
        raise NotFoundError(f"There is no '{Path(path).name}' in commit '{commit}': {said}")
    return done.stdout
