"""Readers: the records of files, one after another, whose names they take from a queue.

Reads wait in one line, and only the first of it proceeds. It reads at once as long as a file is open; otherwise it takes a name from the
queue, and goes on in the thread that enqueues one. So nothing here blocks: a read reports its outcome by a callback.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import Any, ClassVar, Final

import msgspec

from graphcore.errors import CancelledError, InvalidArgumentError
from graphcore.kernel_context import Done
from graphcore.opset.numerics.file_records import fixed_records, lines
from graphcore.opset.numerics.queue_values import Dequeue, Element, Queue
from graphcore.support.critical_section import critical_section
from graphcore.support.forking import new_lock
from graphcore.support.records import opened, read_at_most, read_records

Record = tuple[bytes, bytes]
"""The key and the value."""
_ONE_RECORD_A_FILE: Final = ("IdentityReader", "WholeFileReader")
_FRAME: Final = 16
"""The bytes around the data of a TFRecord."""


class ReaderSpec(msgspec.Struct, frozen=True):
    """The properties that a node declares of its reader.

    Args:
        kind: the op without `V2`.
        numbers: the lines to skip of a TextLineReader; the sizes of header, record, footer and hop of a FixedLengthRecordReader.
        compression: of the files: "", "ZLIB" or "GZIP".
    """

    kind: str
    numbers: tuple[int, ...] = ()
    compression: str = ""

    @property
    def is_one_record_a_file(self) -> bool:
        """True iff a file is finished with its first record."""
        return self.kind in _ONE_RECORD_A_FILE

    def check(self, file: bytes) -> None:
        """Check that a file can be opened.

        Raises:
            NotFoundError, FailedPreconditionError: it cannot.
        """
        if not self.is_one_record_a_file:
            opened(os.fsdecode(file), self.compression).close()

    def records(self, file: bytes) -> Iterator[Record]:
        """The records of a file, with TensorFlow's keys.

        Raises:
            NotFoundError, FailedPreconditionError, InvalidArgumentError: it cannot be read.
        """
        path = os.fsdecode(file)
        match self.kind:
            case "TextLineReader":
                (skipped,) = self.numbers
                for number, line in enumerate(lines(path, "", skipped), skipped + 1):
                    yield b"%s:%d" % (file, number), line
            case "FixedLengthRecordReader":
                header, size, footer, hop = self.numbers
                for number, record in enumerate(fixed_records(path, header, size, footer, hop or size, self.compression)):
                    yield b"%s:%d" % (file, number), record
            case "TFRecordReader":
                place = 0
                for record in read_records(path, self.compression):
                    yield b"%s:%d" % (file, place), record
                    place += _FRAME + len(record)
            case "WholeFileReader":
                with closing(opened(path)) as whole:
                    yield file, read_at_most(whole, None, path)
            case _:
                yield file, file


class ReaderState(msgspec.Struct, frozen=True):
    """The place of a reader.

    Attributes:
        started, finished: the numbers of files.
        produced: the number of records.
        file: the current file, or the last one.
    """

    started: int = 0
    finished: int = 0
    produced: int = 0
    file: bytes = b""


class Reader:
    """A reader of files.

    Args:
        name: the name in error texts.
        spec: its properties.
        op: see `SharedResource`.

    Attributes:
        owner: see `SharedResource`.
        shape: the shape of the handle itself.
    """

    shape: ClassVar[tuple[int, ...]] = ()

    def __init__(self, name: str, spec: ReaderSpec, op: str) -> None:
        self.name = name
        self.spec = spec
        self.op = op
        self.owner = ""
        self._lock = new_lock()
        self._line: deque[Read] = deque()
        self._ended = False
        self._reading = new_lock()  # held while the attributes below are used
        self._state = ReaderState()
        self._records: Iterator[Record] | None = None
        self._place = 0

    def __repr__(self) -> str:
        state = self._state
        return f"<{self.spec.kind} '{self.name}': {state.produced} records, {state.finished} of {state.started} files>"

    @property
    def state(self) -> ReaderState:
        """The place of the reader."""
        return self._state

    def restore(self, state: ReaderState) -> None:
        """Go to another place; the next read begins with another file."""
        with critical_section, self._reading:
            self._state = state
            self._records = None

    # ---- the line ----------------------------------------------------------------------------------------------------

    def join(self, read: Read) -> None:
        """Append a read to the line, and proceed with it if it is the first."""
        with critical_section:
            with self._lock:
                ended = self._ended
                if not ended:
                    self._line.append(read)
                first = len(self._line) == 1
            if ended:
                read.finish(read.cancelled())
            elif first:
                self.proceed()

    def withdraw(self, read: Read) -> None:
        """Remove a read from the line. The first one ends with its wait for a file."""
        with critical_section:
            with self._lock:
                first = bool(self._line) and self._line[0] is read
                waits = not first and read in self._line
                if waits:
                    self._line.remove(read)
            if waits:
                read.finish(read.cancelled())
            else:
                read.stop()

    def end(self) -> None:
        """Cancel all waiting and later reads."""
        with self._lock:
            self._ended = True
            waiting = list(self._line)
        for read in reversed(waiting):
            self.withdraw(read)
        if not waiting:
            self.restore(self._state)

    def proceed(self) -> None:
        """Complete reads from the first on, until one waits for a file."""
        with self._lock:
            read = self._line[0] if self._line else None
        while read is not None:
            try:
                is_over = self._advance(read)
                error = None
            except Exception as failure:  # noqa: BLE001 - the waiter gets it
                is_over, error = True, failure
            except BaseException:
                self._abandon()  # a second Ctrl-C ended the section
                raise
            if not is_over:
                return
            with self._lock:
                self._line.popleft()
                following = self._line[0] if self._line else None
            read.finish(error)
            read = following

    def _abandon(self) -> None:
        """Remove all reads from the line, and cancel those after the first."""
        with self._lock:
            line, self._line = list(self._line), deque()
        for read in line[1:]:
            read.finish(read.cancelled())

    # ---- the files ---------------------------------------------------------------------------------------------------

    def _advance(self, read: Read) -> bool:
        """Read as far as possible. True iff the read is over; otherwise it continues with a file from the queue."""
        records = read.found
        while len(records) < read.count:
            if not self._is_within_file:
                file = read.next_file()
                if file is None:
                    return False
                self._start(file)
            record = self._next()
            if record is not None:
                records.append(record)
            if records and not self._is_within_file:
                break
        return True

    @property
    def _is_within_file(self) -> bool:
        return self._state.started > self._state.finished

    def _start(self, file: bytes) -> None:
        with self._reading:
            self.spec.check(file)
            state = self._state
            self._state = ReaderState(state.started + 1, state.finished, state.produced, file)
            self._records, self._place = None, 0

    def _next(self) -> Record | None:
        """The next record; None at the end of the file."""
        with self._reading:
            if not self._is_within_file:
                return None  # it was reset meanwhile
            state = self._state
            if self._records is None:  # at the start, and after an error
                self._records = islice(self.spec.records(state.file), self._place, None)
            records, self._records = self._records, None
            record = next(records, None)
            over = record is None or self.spec.is_one_record_a_file
            self._records = None if over else records
            self._place += record is not None
            produced = state.produced + (record is not None)
            self._state = ReaderState(state.started, state.started if over else state.finished, produced, state.file)
            return record


class Read:
    """A read of records: see `Pending`.

    Args:
        reader: the reader.
        queue: the queue with the names of files.
        count: the most records; fewer come at the end of a file.
        outputs: makes the outputs from the records.

    Attributes:
        found: the records so far.
    """

    __slots__ = ("_arrived", "_dequeue", "_done", "_lock", "_outputs", "_queue", "_reader", "_resumes", "_stopped", "count", "found")

    def __init__(self, reader: Reader, queue: Queue, count: int, outputs: Callable[[Sequence[Record]], Any]) -> None:
        self.count = count
        self.found: list[Record] = []
        self._reader = reader
        self._queue = queue
        self._outputs = outputs
        self._done: Done | None = None
        self._lock = new_lock()
        self._dequeue: Dequeue | None = None
        self._arrived: tuple[Any, Exception | None] | None = None
        self._resumes = False
        self._stopped = False

    def begin(self, done: Done) -> None:
        """See `Pending.begin`."""
        self._done = done
        self._reader.join(self)

    def cancel(self) -> None:
        """See `Pending.cancel`."""
        self._reader.withdraw(self)

    def cancelled(self) -> CancelledError:
        """The error of a cancelled read."""
        return CancelledError("Read operation was cancelled")

    def finish(self, error: Exception | None) -> None:
        """Notify the callback."""
        assert self._done is not None
        self._done(self._outputs(self.found) if error is None else None, error)

    def next_file(self) -> bytes | None:
        """The name of the next file; None if it is waited for, after which the reader proceeds.

        Raises:
            OutOfRangeError: the queue is closed and empty.
            CancelledError: the read was cancelled.
            InvalidArgumentError: the element of the queue is no single string.
        """
        if self._arrived is None:
            with self._lock:
                if self._stopped:
                    raise self.cancelled()
                dequeue = self._dequeue = Dequeue(self._queue, 1, _file_name, self._queue.single)
            dequeue.begin(self._arrive)
            with self._lock:
                self._resumes = self._arrived is None
                if self._resumes:
                    return None
        assert self._arrived is not None
        (name, error), self._arrived = self._arrived, None
        if error is not None:
            raise error
        file_name: bytes = name
        return file_name

    def _arrive(self, name: Any, error: Exception | None) -> None:
        with self._lock:
            self._arrived = name, error
            resumes, self._resumes = self._resumes, False
        if resumes:
            self._reader.proceed()

    def stop(self) -> None:
        """End the wait for a file."""
        with self._lock:
            self._stopped = True
            dequeue = self._dequeue
        if dequeue is not None:
            dequeue.cancel()


def _file_name(elements: Sequence[Element]) -> bytes:
    """The file that an element of a queue names."""
    ((value,),) = elements
    if value.size != 1:
        raise InvalidArgumentError(f"Expected to dequeue a one-element string tensor, got a tensor of shape {list(value.shape)}")
    name: bytes = value.item()
    return name
