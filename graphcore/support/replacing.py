"""Atomic replacement of files: written beside the target, flushed, and then renamed.

A symbolic link is followed. Devices and pipes, which cannot be replaced, are written into. The writer locks its temporary file; the
operating system releases the lock if the process dies. So the next writer can distinguish abandoned files from those that
another process, on this machine or another, is still writing.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import closing, suppress
from importlib import import_module
from pathlib import Path
from secrets import token_hex
from typing import IO, Any, Final

from graphcore.errors import FailedPreconditionError
from graphcore.support.critical_section import critical_contextmanager
from graphcore.support.files import checked_path

_TEMPORARY: Final = re.compile(r"\..*\.\d+\.[0-9a-f]{16}\.part", re.ASCII | re.DOTALL)
_MOST_OF_NAME: Final = 40
"""Characters of the target's name in that of its temporary file, whose length is limited too."""
fcntl: Any = import_module("fcntl") if os.name == "posix" else None
"""Locks. On Windows an open file can be neither moved nor removed: nothing is cleared up there."""


def write_file(path: Path, data: bytes) -> None:
    """Write `data` to a file, as `replacing` does.

    Raises:
        FailedPreconditionError: the file cannot be written.
    """
    with replacing(path) as file:
        file.write(data)


@critical_contextmanager
def replacing(path: Path, *, like: Path | None = None) -> Iterator[IO[bytes]]:
    """A file to write to, which takes the place of `path` at the end of the block.

    If the block fails, nothing has changed. The mode of an existing file is kept. Abandoned temporary files beside it are removed.

    Args:
        path: the file.
        like: the file whose mode is kept if there is none at `path`.

    Raises:
        InvalidArgumentError: no file can have this name.
        FailedPreconditionError: the file cannot be written: a folder is missing, the disk is full.
    """
    checked_path(path)
    try:
        target = Path(os.path.realpath(path))
        existing = next((candidate for candidate in (target, like) if candidate is not None and os.path.lexists(candidate)), None)
        mode = None if existing is None else existing.lstat().st_mode
        is_file = existing != target or mode is None or stat.S_ISREG(mode)
        with _beside(target, mode) if is_file else target.open("wb") as file:
            yield file
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError) and not path.parent.exists()
        why = f"there is no folder '{path.parent}'" if is_missing else error.strerror or str(error)
        raise FailedPreconditionError(f"Cannot write '{path}': {why}") from error


@critical_contextmanager
def _beside(target: Path, mode: int | None) -> Iterator[IO[bytes]]:
    """A temporary file beside `target`; it gets `mode` and replaces the target at the end of the block."""
    _clear_up(target)
    file, beside = _opened(target)
    try:
        if mode is not None:
            beside.chmod(stat.S_IMODE(mode))
        yield file
        file.flush()
        os.fsync(file.fileno())
        if fcntl is None:
            file.close()
        beside.replace(target)
    finally:
        if fcntl is None:
            file.close()
        with closing(file):  # renamed or removed before it is closed, since closing releases the lock
            beside.unlink(missing_ok=True)
    _flush_folder(target.parent)


def _opened(target: Path) -> tuple[IO[bytes], Path]:
    """Create and lock a temporary file beside `target`. Returns the file and its name."""
    while True:
        path = target.with_name(f".{target.name[:_MOST_OF_NAME]}.{os.getpid()}.{token_hex(8)}.part")
        file = path.open("xb")
        try:
            is_locked = _lock(file)
            if is_locked is None or (is_locked and path.exists()):
                return file, path
        except BaseException:
            file.close()
            raise
        file.close()  # another process took it for abandoned before it was locked, and removes it


def _lock(file: IO[bytes]) -> bool | None:
    """Lock a file unless another process has; None on file systems without locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return None
    return True


def _clear_up(target: Path) -> None:
    """Remove abandoned temporary files in the folder of `target`, of whatever target. Files that cannot be checked or removed are left."""
    with suppress(OSError):
        for left in [path for path in target.parent.iterdir() if _TEMPORARY.fullmatch(path.name)]:
            with suppress(OSError), left.open("r+b") as file:
                if _lock(file):
                    left.unlink()


def _flush_folder(folder: Path) -> None:
    """Flush the folder, so that the new name is durable, on systems that can."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
