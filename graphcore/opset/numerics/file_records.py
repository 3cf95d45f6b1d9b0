"""The parts of files that readers and datasets give: lines, and records of one size."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from typing import Any, Final

from graphcore.errors import InvalidArgumentError
from graphcore.support.records import DecompressionError, check_inflated, opened, read_at_most

_PART: Final = 1 << 16


def lines(path: str, compression: str = "", skipped: int = 0) -> Iterator[bytes]:
    """The lines of a file without their ends, after the first `skipped`.

    Raises:
        NotFoundError: there is no such file.
    """
    with closing(opened(path, compression)) as file:
        for line in islice(_all_lines(file, path), skipped, None):
            yield line.removesuffix(b"\r")


def _all_lines(file: Any, path: str) -> Iterator[bytes]:
    """The lines of an open file without their line feeds, without an empty last one."""
    held: list[bytes] = []
    """The parts of a line that goes on."""
    size = 0
    while part := _read(file, _PART, path):
        first, *more = part.split(b"\n")
        held.append(first)
        size += len(first)
        check_inflated(file, size, path)
        if not more:
            continue
        yield b"".join(held)
        yield from more[:-1]
        held, size = [more[-1]], len(more[-1])
    last = b"".join(held)
    if last not in (b"", b"\r"):
        yield last


def _read(file: Any, size: int | None, path: str) -> bytes:
    try:
        return read_at_most(file, size, path)
    except DecompressionError as error:
        raise InvalidArgumentError(f"Cannot read '{path}': {error}") from None


def fixed_records(path: str, header: int, record: int, footer: int, hop: int = 0, compression: str = "") -> Iterator[bytes]:
    """The records of a file that have one size, between its header and its footer.

    Args:
        path: the file.
        header, record, footer: the bytes of each.
        hop: the bytes from one record to the next, by default as many as it has.

    Raises:
        NotFoundError: there is no such file.
        InvalidArgumentError: it does not consist of whole records.
    """
    with closing(opened(path, compression)) as file:
        data = _read(file, None, path)
    inside = len(data) - header - footer
    if inside < 0 or (not hop and inside % record):
        raise InvalidArgumentError(
            f"Excess bytes in '{path}': {len(data)} bytes are no header of {header}, whole records of {record}, and footer of {footer}"
        )
    end = len(data) - footer
    for start in range(header, end - record + 1, hop or record):
        yield data[start : start + record]
