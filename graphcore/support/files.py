"""Files by name. Whatever the name and the file, a failure is a GraphError."""

from __future__ import annotations

import errno
import glob
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from graphcore.brief import brief
from graphcore.errors import (
    FailedPreconditionError,
    GraphError,
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedError,
)
from graphcore.support.memory_limits import check_claim

PathLike = str | os.PathLike[str]
_MOST_SHOWN: Final = 300
_ABSENT: Final = (FileNotFoundError, NotADirectoryError)


@contextmanager
def file_errors(path: object, doing: str = "read") -> Iterator[None]:
    """Raise the operating system's errors in the block as GraphErrors.

    Args:
        path: the name of the file.
        doing: what is being done with it, an infinitive.

    Raises:
        NotFoundError: there is no such file.
        InvalidArgumentError: no file can have this name, or its text is not UTF-8.
        ResourceExhaustedError: it does not fit into memory.
        FailedPreconditionError: the operating system refuses for another reason.
    """
    try:
        yield
    except GraphError:
        raise
    except _ABSENT as error:
        raise NotFoundError(f"Cannot {doing} {_shown(path)}: {error.strerror}") from None
    except OSError as error:
        kind = InvalidArgumentError if error.errno == errno.ENAMETOOLONG else FailedPreconditionError
        raise kind(f"Cannot {doing} {_shown(path)}: {error.strerror or error}") from error
    except MemoryError:
        raise ResourceExhaustedError(f"Cannot {doing} {_shown(path)}: there is not enough memory for it") from None
    except ValueError as error:  # a null character or a lone surrogate in the name, text that is not UTF-8 in the file
        raise InvalidArgumentError(f"Cannot {doing} {_shown(path)}: {error}") from None


def _shown(path: object) -> str:
    """A name in quotes, cut where it is long."""
    text = str(path)
    return brief(text) if not text.isprintable() or len(text) > _MOST_SHOWN else f"'{text}'"


def checked_path(path: object) -> Path:
    """The path of a name that a file can have; it need not exist.

    Raises:
        InvalidArgumentError: it is no text or path, or no file can have this name.
    """
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise InvalidArgumentError(f"Required the name of a file, got {brief(path)}")
    try:
        os.lstat(path)
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            return Path(path)
        raise InvalidArgumentError(f"Required the name of a file, got {brief(os.fspath(path))}: {error.strerror}") from None
    except ValueError as error:  # a null character, or a lone surrogate
        raise InvalidArgumentError(f"Required the name of a file, got {brief(os.fspath(path))}: {error}") from None
    return Path(path)


def open_file(path: PathLike) -> IO[bytes]:
    """A file for reading. Pipes and devices, which may never end, are refused.

    Raises:
        NotFoundError: there is no such file.
        InvalidArgumentError: no file can have this name.
        FailedPreconditionError: it is no regular file, or cannot be read.
    """
    with file_errors(path):
        place = checked_path(path)
        mode = place.stat().st_mode
        if not stat.S_ISREG(mode):
            kind = "a folder" if stat.S_ISDIR(mode) else "a pipe or a device"
            raise FailedPreconditionError(f"Cannot read {_shown(path)}: it is {kind}; required a file")
        return place.open("rb")


def file_bytes(path: PathLike) -> bytes:
    """The bytes of a file.

    Raises:
        NotFoundError: there is no such file.
        InvalidArgumentError: no file can have this name.
        FailedPreconditionError: it is no regular file, or cannot be read.
        ResourceExhaustedError: it does not fit into memory.
    """
    with open_file(path) as file, file_errors(path):
        check_claim(os.fstat(file.fileno()).st_size, f"the file {_shown(path)}")
        return file.read()


def is_file(path: PathLike) -> bool:
    """True iff there is a file of this name; False for a name that no file can have."""
    return os.path.isfile(path)  # noqa: PTH113 - Path.is_file raises errors for some names


def is_folder(path: PathLike) -> bool:
    """True iff there is a folder of this name; False for a name that no folder can have."""
    return os.path.isdir(path)  # noqa: PTH112 - Path.is_dir raises errors for some names


def is_there(path: PathLike) -> bool:
    """True iff there is a file or folder of this name; False for a name that none can have."""
    return os.path.exists(path)  # noqa: PTH110 - Path.exists raises errors for some names


def matching(pattern: str) -> list[str]:
    """The names that match a pattern with `*`, `?` and `[...]`; relative ones for a relative pattern. None for names that no file can have."""
    try:
        return glob.glob(pattern)  # noqa: PTH207 - Path.glob gives no relative names
    except ValueError:
        return []
