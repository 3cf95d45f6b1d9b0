"""`tf.gfile`: files of this machine, under TensorFlow's names."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from graphcore.errors import AlreadyExistsError, NotFoundError
from graphcore.support.files import checked_path, file_errors, is_folder, is_there, matching, open_file
from graphcore.support.replacing import replacing
from graphcore.tf1.compat import as_bytes, as_text

__all__ = [
    "Copy",
    "DeleteRecursively",
    "Exists",
    "FastGFile",
    "GFile",
    "Glob",
    "IsDirectory",
    "ListDirectory",
    "MakeDirs",
    "MkDir",
    "Open",
    "Remove",
    "Rename",
    "Stat",
    "Walk",
]


@contextmanager
def _errors(path: str, doing: str = "read") -> Iterator[None]:
    """Errors of the operating system as GraphErrors, that of a missing file in TensorFlow's words."""
    try:
        with file_errors(path, doing):
            yield
    except NotFoundError:
        raise NotFoundError(f"{path}; No such file or directory") from None


class GFile:
    """A file, opened when it is first read or written.

    Args:
        name: the path.
        mode: as for `open`. Texts and bytes can be written in any mode; what is read is bytes in a mode with "b", and else text in UTF-8.
    """

    def __init__(self, name: str, mode: str = "r") -> None:
        self._name = name
        self._mode = mode
        self._file: Any = None

    def _opened(self) -> Any:
        if self._file is None:
            with _errors(self._name, "open"):
                self._file = Path(self._name).open(self._mode.replace("t", "").replace("b", "") + "b")  # noqa: SIM115 - closed by `close`
        return self._file

    @property
    def name(self) -> str:
        """The path."""
        return self._name

    @property
    def mode(self) -> str:
        """The mode."""
        return self._mode

    def size(self) -> int:
        """The size in bytes."""
        return int(Stat(self._name).st_size)

    def read(self, n: int = -1) -> Any:
        """The next `n` bytes; all that are left for -1."""
        with _errors(self._name):
            return self._given(self._opened().read(n))

    def readline(self) -> Any:
        """The next line with its end; an empty text at the end of the file."""
        with _errors(self._name):
            return self._given(self._opened().readline())

    def readlines(self) -> list[Any]:
        """The lines that are left, each with its end."""
        with _errors(self._name):
            return [self._given(line) for line in self._opened()]

    def write(self, file_content: Any) -> None:
        """Append a text or bytes to what was written."""
        data = as_bytes(file_content)
        with _errors(self._name, "write"):
            self._opened().write(data)

    def seek(self, offset: int = 0, whence: int = 0) -> None:
        """Go on at `offset`."""
        self._opened().seek(offset, whence)

    def tell(self) -> int:
        """The current place."""
        return int(self._opened().tell())

    def flush(self) -> None:
        """Write what is still in memory."""
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __del__(self) -> None:
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        return map(self._given, self._opened())

    def _given(self, data: bytes) -> str | bytes:
        """The form in which the caller gets the value read."""
        return data if "b" in self._mode else as_text(data)


FastGFile = Open = GFile


def Exists(filename: str) -> bool:
    """True iff there is a file or folder of this name."""
    return is_there(filename)


def IsDirectory(dirname: str) -> bool:
    """True iff it is a folder."""
    return is_folder(dirname)


def Glob(filename: str | list[str]) -> list[str]:
    """The files that match a pattern, or one of several."""
    patterns = [filename] if isinstance(filename, str) else filename
    return [name for pattern in patterns for name in sorted(matching(pattern))]


def ListDirectory(dirname: str) -> list[str]:
    """The names of the entries of a folder.

    Raises:
        NotFoundError: there is none.
    """
    if not is_folder(checked_path(dirname)):
        raise NotFoundError(f"Could not find directory {dirname}")
    with _errors(dirname):
        return sorted(entry.name for entry in Path(dirname).iterdir())


def MakeDirs(dirname: str) -> None:
    """Make a folder, and those around it, unless it is there.

    Raises:
        FailedPreconditionError: there is a file of this name.
    """
    with _errors(dirname, "make"):
        Path(dirname).mkdir(parents=True, exist_ok=True)


def MkDir(dirname: str) -> None:
    """Make a folder in one that is there.

    Raises:
        AlreadyExistsError: there is a file or folder of this name.
        NotFoundError: there is no folder for it.
    """
    if is_there(dirname):
        raise AlreadyExistsError(f"{dirname}: it exists already")
    with _errors(dirname, "make"):
        Path(dirname).mkdir()


def Remove(filename: str) -> None:
    """Remove a file.

    Raises:
        NotFoundError: there is none.
    """
    with _errors(filename, "remove"):
        Path(filename).unlink()


def DeleteRecursively(dirname: str) -> None:
    """Remove a folder with all that is in it.

    Raises:
        NotFoundError: there is none.
    """
    if not is_folder(checked_path(dirname)):
        raise NotFoundError(f"{dirname}; No such directory")
    with _errors(dirname, "remove"):
        shutil.rmtree(dirname)


def Copy(oldpath: str, newpath: str, overwrite: bool = False) -> None:
    """Copy a file.

    Raises:
        NotFoundError: there is no file `oldpath`.
        AlreadyExistsError: `newpath` is there, and `overwrite` was not asked for.
    """
    _check_free(newpath, overwrite)
    with _errors(oldpath, "copy"), open_file(oldpath) as source, replacing(checked_path(newpath)) as target:
        shutil.copyfileobj(source, target)


def Rename(oldname: str, newname: str, overwrite: bool = False) -> None:
    """Rename a file or folder.

    Raises:
        NotFoundError: there is no file or folder `oldname`.
        AlreadyExistsError: `newname` is there, and `overwrite` was not asked for.
    """
    _check_free(newname, overwrite)
    with _errors(oldname, "rename"):
        Path(oldname).replace(newname)


def _check_free(name: str, overwrite: bool) -> None:
    if not overwrite and is_there(name):
        raise AlreadyExistsError(f"{name}: file already exists; overwrite=True replaces it")


def Stat(filename: str) -> Any:
    """Size and times of a file, as `os.stat` gives them: TensorFlow's `length` is `st_size`.

    Raises:
        NotFoundError: there is none.
    """
    with _errors(filename):
        return Path(filename).stat()


def Walk(top: str, in_order: bool = True) -> Iterator[tuple[str, list[str], list[str]]]:
    """For each folder from `top` on: its path, folders and files; parents first if `in_order`."""
    return os.walk(top, topdown=in_order)
