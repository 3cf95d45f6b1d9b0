"""`tf.TextLineReader` and its relatives: readers of the files named in a queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphcore import dtypes
from graphcore.graph import Node, Tensor
from graphcore.graph.model.argument_errors import refuse
from graphcore.tf1.calls import apply_one
from graphcore.tf1.framework import convert_to_tensor
from graphcore.tf1.queues.queues import QueueBase
from graphcore.tf1.records.files import TFRecordOptions

__all__ = ["FixedLengthRecordReader", "IdentityReader", "ReaderBase", "TFRecordReader", "TextLineReader", "WholeFileReader"]


class ReaderBase:
    """A reader of the records of files; its subclasses make one.

    Args:
        reader_ref: the tensor with its handle.
        supports_serialize: True if its state can be saved.
    """

    def __init__(self, reader_ref: Tensor, supports_serialize: bool = False) -> None:
        self._reader_ref = reader_ref
        self._supports_serialize = supports_serialize

    def __repr__(self) -> str:
        return f"<gc.{type(self).__name__} '{self._reader_ref.node.name}'>"

    @property
    def reader_ref(self) -> Tensor:
        """The tensor with its handle."""
        return self._reader_ref

    @property
    def supports_serialize(self) -> bool:
        """True if its state can be saved."""
        return self._supports_serialize

    def _apply(self, op: str, inputs: Sequence[Any], name: str | None) -> Node:
        handle = self._reader_ref
        version = "V2" if handle.dtype is dtypes.resource else ""
        return handle.graph.building().apply_op(f"{op}{version}", [handle, *inputs], {}, name)

    def read(self, queue: Any, name: str | None = None) -> list[Tensor]:
        """The key and the value of the next record, two string scalars.

        The name of a file is taken from the queue at the beginning and after the end of each file, and waited for. A run gives
        OutOfRangeError when the queue is closed and empty.

        Args:
            queue: a queue of strings, or the tensor with its handle.
            name: the name of the node.
        """
        return list(self._apply("ReaderRead", [_handle(queue)], name).outputs)

    def read_up_to(self, queue: Any, num_records: Any, name: str | None = None) -> list[Tensor]:
        """The keys and values of up to `num_records` records, two string vectors; fewer at the end of a file."""
        count = convert_to_tensor(num_records, dtypes.int64)
        return list(self._apply("ReaderReadUpTo", [_handle(queue), count], name).outputs)

    def num_records_produced(self, name: str | None = None) -> Tensor:
        """The number of records read so far, an int64 scalar."""
        return self._apply("ReaderNumRecordsProduced", [], name).outputs[0]

    def num_work_units_completed(self, name: str | None = None) -> Tensor:
        """The number of files read to their ends, an int64 scalar."""
        return self._apply("ReaderNumWorkUnitsCompleted", [], name).outputs[0]

    def serialize_state(self, name: str | None = None) -> Tensor:
        """The state of the reader, a string scalar; UnimplementedError in a run unless `supports_serialize`."""
        return self._apply("ReaderSerializeState", [], name).outputs[0]

    def restore_state(self, state: Any, name: str | None = None) -> Node:
        """A node that sets the state of the reader to one that `serialize_state` gave."""
        return self._apply("ReaderRestoreState", [convert_to_tensor(state, dtypes.string)], name)

    def reset(self, name: str | None = None) -> Node:
        """A node that sets the reader back to its initial state; the next read takes another file."""
        return self._apply("ReaderReset", [], name)


def _handle(queue: Any) -> Tensor:
    handle = queue.queue_ref if isinstance(queue, QueueBase) else queue
    if not isinstance(handle, Tensor):
        refuse("queue", "a queue of the names of files", queue)
    return handle


def _made(op: str, name: str | None, attrs: Mapping[str, Any] | None = None) -> Tensor:
    return apply_one(op, [], name, attrs)


class TextLineReader(ReaderBase):
    """A reader of the lines of text files; a key is the file and the number of the line, from 1.

    Args:
        skip_header_lines: the number of lines to leave out at the beginning of each file.
        name: the name of the node.
    """

    def __init__(self, skip_header_lines: int | None = None, name: str | None = None) -> None:
        super().__init__(_made("TextLineReaderV2", name, {"skip_header_lines": skip_header_lines or 0}))


class WholeFileReader(ReaderBase):
    """A reader of whole files; a key is the file.

    Args:
        name: the name of the node.
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(_made("WholeFileReaderV2", name), supports_serialize=True)


class FixedLengthRecordReader(ReaderBase):
    """A reader of records that all have one size; a key is the file and the number of the record, from 0.

    An incomplete last record is left out. A file that is shorter than header and footer gives InvalidArgumentError in a run.

    Args:
        record_bytes: the size of a record.
        header_bytes, footer_bytes: the bytes to leave out at the beginning and at the end of each file.
        hop_bytes: the bytes from one record to the next; None or 0 for the size of a record.
        name: the name of the node.
        encoding: the compression: None or "", "ZLIB" or "GZIP".
    """

    def __init__(
        self,
        record_bytes: int,
        header_bytes: int | None = None,
        footer_bytes: int | None = None,
        hop_bytes: int | None = None,
        name: str | None = None,
        encoding: str | None = None,
    ) -> None:
        sizes = {"record_bytes": record_bytes, "header_bytes": header_bytes, "footer_bytes": footer_bytes, "hop_bytes": hop_bytes}
        attrs = {size: value or 0 for size, value in sizes.items()}
        super().__init__(_made("FixedLengthRecordReaderV2", name, {**attrs, "encoding": encoding or ""}))


class TFRecordReader(ReaderBase):
    """A reader of TFRecord files; a key is the file and the place of the record in bytes.

    Args:
        name: the name of the node.
        options: a `TFRecordOptions`, or the name of a compression.
    """

    def __init__(self, name: str | None = None, options: Any = None) -> None:
        kind = TFRecordOptions.get_compression_type_string(options)
        super().__init__(_made("TFRecordReaderV2", name, {"compression_type": kind}))


class IdentityReader(ReaderBase):
    """A reader that gives the strings of the queue themselves, as keys and as values.

    Args:
        name: the name of the node.
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(_made("IdentityReaderV2", name), supports_serialize=True)
