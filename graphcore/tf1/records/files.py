"""`tf.python_io`: files of records, written and read by Python."""

from __future__ import annotations

import gzip
import os
import weakref
import zlib
from collections.abc import Iterator
from typing import Any, Final, Self

from graphcore.errors import FailedPreconditionError, InvalidArgumentError
from graphcore.graph.model.argument_errors import refuse
from graphcore.support.files import checked_path, file_errors, is_folder
from graphcore.support.records import COMPRESSIONS, read_records, record_bytes

__all__ = ["TFRecordCompressionType", "TFRecordOptions", "TFRecordWriter", "tf_record_iterator"]


class TFRecordCompressionType:
    """The ways in which a file is compressed."""

    NONE: Final = 0
    ZLIB: Final = 1
    GZIP: Final = 2


class TFRecordOptions:
    """Options of a file of records.

    Args:
        compression_type: one of `TFRecordCompressionType`, or "", "ZLIB" or "GZIP".
        compression_level: from 0 to 9; None for the usual one.

    Raises:
        InvalidArgumentError: no such compression.
    """

    def __init__(self, compression_type: Any = None, *_: Any, compression_level: int | None = None, **_more: Any) -> None:
        self.compression_type = self.get_compression_type_string(compression_type)
        self.compression_level = compression_level

    @classmethod
    def get_compression_type_string(cls, options: Any) -> str:
        """The name of the compression that is meant; "" for none."""
        if isinstance(options, TFRecordOptions):
            return options.compression_type
        compression = COMPRESSIONS[options] if isinstance(options, int) and 0 <= options < len(COMPRESSIONS) else options or ""
        if compression not in COMPRESSIONS:
            raise InvalidArgumentError(f"Not a valid compression_type: {options!r}; required one of '', 'ZLIB', 'GZIP'")
        return str(compression)


class TFRecordWriter:
    """Writes a file of records; a context manager that closes itself.

    Args:
        path: the file, which is replaced.
        options: a `TFRecordOptions` or the name of a compression.

    Raises:
        InvalidArgumentError: no file can have this name.
        FailedPreconditionError: the file cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str], options: Any = None) -> None:
        kind = TFRecordOptions.get_compression_type_string(options)
        level = getattr(options, "compression_level", None)
        place = checked_path(path)
        if not is_folder(place.parent):
            raise FailedPreconditionError(f"Cannot write '{path}': there is no folder '{place.parent}'")
        with file_errors(path, "write"):
            plain: Any = place.open("wb")  # closed by `close`
        self._file: Any = plain
        self._deflate = zlib.compressobj(-1 if level is None else level) if kind == "ZLIB" else None
        self._packed = gzip.GzipFile(fileobj=plain, mode="wb", compresslevel=9 if level is None else level) if kind == "GZIP" else None
        self._is_open = True
        self._finalizer = weakref.finalize(self, plain.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def write(self, record: Any) -> None:
        """Write a record, which is bytes or text.

        Raises:
            FailedPreconditionError: the file is closed.
        """
        if not self._is_open:
            raise FailedPreconditionError("Writer is closed.")
        if not isinstance(record, bytes | str):
            refuse("record", "bytes, such as example.SerializeToString()", record)
        data = record_bytes(record.encode() if isinstance(record, str) else record)
        if self._deflate is not None:
            self._file.write(self._deflate.compress(data))
        else:
            (self._packed or self._file).write(data)

    def flush(self) -> None:
        """Write to the file what is complete."""
        if self._is_open:
            self._file.flush()

    def close(self) -> None:
        """Write all, and close the file."""
        if not self._is_open:
            return
        self._is_open = False
        if self._deflate is not None:
            self._file.write(self._deflate.flush())
        if self._packed is not None:
            self._packed.close()
        self._finalizer()


def tf_record_iterator(path: str | os.PathLike[str], options: Any = None) -> Iterator[bytes]:
    """The records of a file, one after another.

    Args:
        path: the file.
        options: a `TFRecordOptions` or the name of a compression.

    Raises:
        NotFoundError: there is no such file.
        InvalidArgumentError: a record is damaged.
    """
    return read_records(path, TFRecordOptions.get_compression_type_string(options))
