"""The parts of files that readers and datasets give: lines, and records of one size."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import closing
from typing import Final

from graphcore.errors import InvalidArgumentError
from graphcore.support.records import opened

_PART: Final = 1 << 16


def lines(path: str, compression: str = "", skipped: int = 0) -> Iterator[bytes]:
    """The lines of a file without their ends, after the first `skipped`.

    Raises:
        NotFoundError: there is no such file.
    """
    with closing(opened(path, compression)) as file:
        held = b""
        while True:
            part = file.read(_PART)
            if not part:
                break
            *whole, held = (held + part).split(b"\n")
            for line in whole[skipped:]:
                yield line.removesuffix(b"\r")
            skipped = max(skipped - len(whole), 0)
        last = held.removesuffix(b"\r")
        if last and not skipped:
            yield last


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
        try:
            data: bytes = file.read()
        except (EOFError, OSError, zlib.error) as error:
            raise InvalidArgumentError(f"Cannot read '{path}': {error}") from None
    inside = len(data) - header - footer
    if inside < 0 or (not hop and inside % record):
        raise InvalidArgumentError(
            f"Excess bytes in '{path}': {len(data)} bytes are no header of {header}, whole records of {record}, and footer of {footer}"
        )
    end = len(data) - footer
    for start in range(header, end - record + 1, hop or record):
        yield data[start : start + record]
