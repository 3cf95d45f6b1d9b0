"""`tf.summary.FileWriter`: writes summaries, graphs and times of runs to event files."""

from __future__ import annotations

import os
import socket
import time
import weakref
from collections.abc import Mapping
from io import BufferedWriter
from itertools import count
from pathlib import Path
from typing import Any, ClassVar, Final, Self

import msgspec
from google.protobuf.message import DecodeError

from graphcore.definitions import GraphDef
from graphcore.definitions.wire import graph_def_to_bytes
from graphcore.definitions.wire.meta_graph import meta_graph_to_bytes
from graphcore.definitions.wire.schema import Event, RunMetadata, Summary
from graphcore.errors import FailedPreconditionError, InvalidArgumentError
from graphcore.graph import Graph
from graphcore.graph.model.argument_errors import refuse
from graphcore.runtime import RunMetadata as TracedRun
from graphcore.runtime import Session
from graphcore.support.files import checked_path, file_errors
from graphcore.support.forking import new_lock
from graphcore.support.records import record_bytes
from graphcore.support.watched import written_scalars
from graphcore.tf1.train.saving.meta_graphs import whole_meta_graph

__all__ = ["FileWriter", "FileWriterCache"]

_VERSION: Final = "brain.Event:2"
_numbers: Final = count()


def _new_file(folder: Path, suffix: str) -> tuple[Path, BufferedWriter]:
    """A file of this second that no other writer has, of this process or another, and its path."""
    start = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}"
    path = folder / f"{start}{suffix}"
    while True:
        try:
            return path, path.open("xb")
        except FileExistsError:
            path = folder / f"{start}.{os.getpid()}.{next(_numbers)}{suffix}"


class FileWriter:
    """Writes an event file, which TensorBoard opens.

    It is a context manager that closes itself. In a notebook the scalars that it writes are drawn below the cell.

    Args:
        logdir: the folder; it is made if it does not exist.
        graph: a graph to write first; a graph definition may be given too.
        max_queue: the number of events after which they are written to the file at the latest.
        flush_secs: the seconds after which events are written with the next one.
        graph_def: a graph definition to write first.
        filename_suffix: the end of the file's name.
        session: must be None; event files are written by Python, not by nodes.

    Raises:
        InvalidArgumentError: no folder can have this name.
        FailedPreconditionError: the file cannot be made.
    """

    def __init__(
        self,
        logdir: str | os.PathLike[str],
        graph: Graph | GraphDef | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        graph_def: GraphDef | None = None,
        filename_suffix: str | None = None,
        session: Session | None = None,
    ) -> None:
        if session is not None:
            raise InvalidArgumentError("FileWriter: a session is for writers made of nodes, which are not here; leave it out")
        self._logdir = os.fspath(logdir)
        self._suffix = filename_suffix or ""
        self._most = max_queue
        self._seconds = flush_secs
        self._lock = new_lock()
        self._described: set[str] = set()
        self._traced: set[str] = set()
        self._open()
        if graph is not None or graph_def is not None:
            self.add_graph(graph, graph_def=graph_def)

    def _open(self) -> None:
        folder = checked_path(self._logdir)
        with file_errors(self._logdir, "write event files in"):
            folder.mkdir(parents=True, exist_ok=True)
            self._path, file = _new_file(folder, self._suffix)
        self._file = file
        self._finalizer = weakref.finalize(self, file.close)  # what is left is written when the program ends
        self._pending = 0
        self._flushed = time.monotonic()
        self._write(Event(wall_time=time.time(), file_version=_VERSION))
        self.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<gc.summary.FileWriter '{self._path}'{', closed' if self._file.closed else ''}>"

    def get_logdir(self) -> str:
        """The folder."""
        return self._logdir

    def add_summary(self, summary: Any, global_step: Any = None) -> None:
        """Write a summary.

        Args:
            summary: a serialized `Summary`, as running a node gives it, or the message.
            global_step: the number of the step.

        Raises:
            InvalidArgumentError: it is no summary.
            FailedPreconditionError: the file cannot be written.
        """
        message = _summary(summary)
        for value in message.value:
            if value.HasField("metadata"):  # plugins need the data of a tag once
                if value.tag in self._described:
                    value.ClearField("metadata")
                self._described.add(value.tag)
        event = Event(summary=message)
        self._add(event, global_step)
        if written_scalars.is_watched:
            scalars = {value.tag: value.simple_value for value in message.value if value.HasField("simple_value")}
            if scalars:
                written_scalars.publish(self._logdir, scalars, None if global_step is None else event.step)

    def add_event(self, event: Any) -> None:
        """Write an event, an `Event` message."""
        own = Event()
        own.ParseFromString(event.SerializeToString())
        with self._lock:
            self._write(own)

    def add_session_log(self, session_log: Any, global_step: Any = None) -> None:
        """Write a `SessionLog` message: that a session has started, stopped or saved."""
        event = Event()
        event.session_log.ParseFromString(session_log.SerializeToString())
        self._add(event, global_step)

    def add_graph(self, graph: Graph | GraphDef | None, global_step: Any = None, graph_def: GraphDef | None = None) -> None:
        """Write a graph, for TensorBoard's picture of it.

        Args:
            graph: the graph.
            global_step: the number of the step.
            graph_def: its definition instead.

        Raises:
            InvalidArgumentError: it is neither.
        """
        if isinstance(graph, Graph):
            self._add(Event(graph_def=graph_def_to_bytes(_with_shapes(graph))), global_step)
            self.add_meta_graph(whole_meta_graph(graph, None, None, clear_devices=False), global_step)
            return
        definition = graph_def if graph is None else graph
        if not isinstance(definition, GraphDef):
            refuse("graph", "a gc.Graph or a GraphDef", definition)
        self._add(Event(graph_def=graph_def_to_bytes(definition)), global_step)

    def add_meta_graph(self, meta_graph_def: Any, global_step: Any = None) -> None:
        """Write a graph with its collections, as `gc.train.export_meta_graph` returns it."""
        self._add(Event(meta_graph_def=meta_graph_to_bytes(meta_graph_def)), global_step)

    def add_run_metadata(self, run_metadata: Any, tag: str, global_step: Any = None) -> None:
        """Write the times of a run that was traced.

        Args:
            run_metadata: the `gc.RunMetadata` of the run.
            tag: a name, which differs from those before.
            global_step: the number of the step.

        Raises:
            InvalidArgumentError: the tag was used before, or it is another kind of object.
        """
        if tag in self._traced:
            raise InvalidArgumentError("The provided tag was already used for this event type")
        if not isinstance(run_metadata, TracedRun):
            refuse("run_metadata", "a gc.RunMetadata", run_metadata)
        event = Event()
        event.tagged_run_metadata.tag = tag
        event.tagged_run_metadata.run_metadata = _times(run_metadata).SerializeToString(deterministic=True)
        self._traced.add(tag)
        self._add(event, global_step)

    def _add(self, event: Any, global_step: Any) -> None:
        event.wall_time = time.time()
        if global_step is not None:
            event.step = int(global_step)
        with self._lock:
            self._write(event)

    def _write(self, event: Any) -> None:
        if self._file.closed:
            raise FailedPreconditionError(f"Attempting to add to the closed event file '{self._path}': call reopen() first")
        try:
            self._file.write(record_bytes(event.SerializeToString(deterministic=True)))
            self._pending += 1
            if self._pending >= self._most or time.monotonic() - self._flushed >= self._seconds:
                self._flush()
        except OSError as error:
            raise FailedPreconditionError(f"Cannot write '{self._path}': {error.strerror or error}") from error

    def _flush(self) -> None:
        self._file.flush()
        self._pending = 0
        self._flushed = time.monotonic()

    def flush(self) -> None:
        """Write all events to the file."""
        with self._lock:
            if not self._file.closed:
                self._flush()

    def close(self) -> None:
        """Write all events, and close the file."""
        with self._lock:
            self._finalizer()

    def reopen(self) -> None:
        """Begin another event file in the same folder, if this one is closed."""
        if self._file.closed:
            self._open()


class FileWriterCache:
    """One writer for each folder."""

    _writers: ClassVar[dict[str, FileWriter]] = {}

    @classmethod
    def get(cls, logdir: str | os.PathLike[str]) -> FileWriter:
        """The writer for a folder, made when it is first asked for."""
        writer = cls._writers.get(os.fspath(logdir))
        if writer is None:
            writer = cls._writers[os.fspath(logdir)] = FileWriter(logdir)
        return writer

    @classmethod
    def clear(cls) -> None:
        """Close all of them."""
        for writer in cls._writers.values():
            writer.close()
        cls._writers.clear()


def _with_shapes(graph: Graph) -> GraphDef:
    """The definition of a graph with the shapes of all outputs, which TensorBoard shows."""
    graph_def = graph.as_graph_def()
    nodes = []
    for node_def in graph_def.node:
        node = graph.find(node_def.name)
        shapes = () if node is None else tuple([output.shape for output in node.outputs])
        attrs = {**node_def.attr, "_output_shapes": shapes} if shapes else node_def.attr
        nodes.append(msgspec.structs.replace(node_def, attr=attrs))
    return msgspec.structs.replace(graph_def, node=tuple(nodes))


def _summary(value: Any) -> Any:
    """A copy of a summary, which may be serialized."""
    data = value.item() if hasattr(value, "item") else value
    if hasattr(data, "SerializeToString"):
        data = data.SerializeToString()
    if not isinstance(data, bytes):
        refuse("summary", "a serialized Summary, as running a node gives it, or the message", value)
    message = Summary()
    try:
        message.ParseFromString(data)
    except DecodeError:
        raise InvalidArgumentError(f"Required a serialized Summary, got {len(data)} bytes that are none") from None
    return message


def _times(run_metadata: TracedRun) -> Any:
    """The times of a run as a message."""
    message = RunMetadata()
    if run_metadata.trace is None:
        return message
    for device in run_metadata.trace.step_stats().dev_stats:
        of_device = message.step_stats.dev_stats.add(device=device.device)
        for stats in device.node_stats:
            fields: Mapping[str, int] = {
                f"{name}_{unit}": getattr(stats, f"{name}_{unit}")
                for name in ("scheduled", "all_start", "op_start_rel", "op_end_rel", "all_end_rel")
                for unit in ("micros", "nanos")
            }
            of_device.node_stats.add(
                node_name=stats.node_name, thread_id=stats.thread_id & 0xFFFFFFFF, timeline_label=stats.node_name, **fields
            )
    return message
