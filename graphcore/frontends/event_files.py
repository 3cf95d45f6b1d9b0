"""TensorBoard's event files and log folders, for the graphs of TensorFlow that they hold."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from graphcore.errors import InvalidArgumentError, NotFoundError
from graphcore.frontends.protobuf_fields import fields_of
from graphcore.remarks import remark
from graphcore.support.crc32c import crc32c, masked
from graphcore.support.files import is_file, is_folder, open_file
from graphcore.support.records import read_records

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphcore.frontends.frontend import Source

_MARK: Final = "tfevents"
"""The part of the name of each event file."""
_TIME: Final = b"\x09"
"""The first byte of an event, the tag of its time."""
_HEAD: Final = 13
_TRACES: Final = "graph_run_metadata"
"""The beginning of the names of plugins whose summaries are records of runs with graphs."""
_PARTITIONS: Final = 3
_FUNCTIONS: Final = 4
_BUILT: Final = 2
"""Fields of a record of a run: graphs of devices, records of functions; within the latter the graph before it is optimized."""
_MAX_FILES: Final = 1000
_MAX_FOLDERS: Final = 1000
_MODELS: Final = ("saved_model.pb", "saved_model.pbtxt")


def event_files(source: Source) -> list[Path]:
    """The event files of a source, the newest first; none for a source of another kind.

    They are the source itself, or the files in a log folder and in the folders within it.
    """
    path = source.path
    if path is None or source.is_gzipped:
        return []
    if not is_folder(path):
        return [path] if _begins_events(source.head) else []
    if any(is_file(path / name) for name in _MODELS):
        return []
    folders = [path, *[path / name for name in _names(path)[:_MAX_FOLDERS] if is_folder(path / name)]]
    candidates = [folder / name for folder in folders for name in _names(folder) if _MARK in name and is_file(folder / name)]
    return [
        place for place in sorted(candidates, key=lambda place: (place.name, place), reverse=True)[:_MAX_FILES] if _is_event_file(place)
    ]


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - names only
    except OSError:
        return []


def _is_event_file(path: Path) -> bool:
    with suppress(NotFoundError), open_file(path) as file:
        return _begins_events(file.read(_HEAD))
    return False


def _begins_events(head: bytes) -> bool:
    """True iff the bytes begin a file of records, the first of which is an event."""
    return head[12:13] == _TIME and masked(crc32c(head[:8])).to_bytes(4, "little") == head[8:12]


def last_graph(files: list[Path]) -> bytes:
    """The last graph in event files, as the bytes of a GraphDef or MetaGraphDef. A remark says which, if there are several.

    Raises:
        InvalidArgumentError: there is none, or a record before the first graph is damaged.
    """
    events = 0
    for place in files:
        graphs: list[tuple[int, bytes, bool]] = []
        run_tags: list[str] = []
        try:
            for event in _events(place):
                events += 1
                if event.graph_def:
                    graphs.append((event.step, event.graph_def, False))
                elif event.meta_graph_def:
                    graphs.append((event.step, event.meta_graph_def, True))
                elif event.HasField("summary"):
                    graphs += [(event.step, data, False) for data in _traced(event.summary)]
                elif event.HasField("tagged_run_metadata"):
                    run_tags.append(event.tagged_run_metadata.tag)
                del graphs[:-2]
        except InvalidArgumentError as error:
            if not graphs:
                raise
            remark(f"'{place.name}' is read up to a damaged or unfinished record: {error.message}")
        if graphs:
            return _chosen(place, graphs, len(files), run_tags)
    where = f"'{files[0].name}'" if len(files) == 1 else f"{len(files)} event files"
    raise InvalidArgumentError(f"{where} of TensorBoard hold no graph, only {events:,} events with other values")


def _chosen(place: Path, graphs: list[tuple[int, bytes, bool]], files: int, run_tags: list[str]) -> bytes:
    """The last plain graph, since a MetaGraphDef written after it holds the same graph with more."""
    step, data, _ = graphs[-1]
    said = []
    if len(graphs) > 1 and not (graphs[-1][2] and not graphs[-2][2] and graphs[-1][0] == graphs[-2][0]):
        said.append(f"several graphs, and this is the last, of step {step}")
    if files > 1:
        said.append(f"it is the newest with a graph of {files} event files")
    if run_tags:
        said.append(f"records of runs: {', '.join(run_tags[:5])}{', …' if len(run_tags) > 5 else ''}")
    if said:
        remark(f"'{place.name}' has {'; '.join(said)}." if len(graphs) > 1 else f"'{place.name}': {'; '.join(said)}.")
    return data


def _traced(summary: Any) -> Iterator[bytes]:
    """The graphs that TensorFlow 2 traces: as they are built if that is recorded, else as they run."""
    for value in summary.value:
        if not value.metadata.plugin_data.plugin_name.startswith(_TRACES):
            continue
        for record in value.tensor.string_val:
            built: list[bytes] = []
            run: list[bytes] = []
            for number, part in fields_of(record, "The record of a trace"):
                if number == _PARTITIONS and isinstance(part, bytes):
                    run.append(part)
                elif number == _FUNCTIONS and isinstance(part, bytes):
                    built += [
                        graph for kind, graph in fields_of(part, "The record of a function") if kind == _BUILT and isinstance(graph, bytes)
                    ]
            yield from (built or run)[-1:]


def _events(path: Path) -> Iterator[Any]:
    from google.protobuf.message import DecodeError  # noqa: PLC0415 - most sessions need no protobuf

    from graphcore.definitions.wire import schema  # noqa: PLC0415 - it loads protobuf, which most sessions do not need

    for record in read_records(path):
        event = schema.Event()
        try:
            event.ParseFromString(record)
        except DecodeError as error:
            raise InvalidArgumentError(f"'{path.name}' has a record that is no event: {error}") from None
        yield event
