"""The messages of summaries and event files, and the events of a file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Final

from google.protobuf.message import DecodeError

from graphcore.definitions.wire.schema import Event, HistogramProto, Summary, SummaryMetadata, message_class
from graphcore.errors import InvalidArgumentError
from graphcore.support.records import read_records

__all__ = [
    "Event",
    "HistogramProto",
    "LogMessage",
    "SessionLog",
    "Summary",
    "SummaryDescription",
    "SummaryMetadata",
    "TaggedRunMetadata",
    "get_summary_description",
    "summary_iterator",
]

LogMessage: Final = message_class("LogMessage")
SessionLog: Final = message_class("SessionLog")
SummaryDescription: Final = message_class("SummaryDescription")
TaggedRunMetadata: Final = message_class("TaggedRunMetadata")


def summary_iterator(path: str | os.PathLike[str]) -> Iterator[Any]:
    """The events of an event file, one after another.

    Raises:
        NotFoundError: there is no such file.
        InvalidArgumentError: it is damaged.
    """
    for number, data in enumerate(read_records(path)):
        event = Event()
        try:
            event.ParseFromString(data)
        except DecodeError as error:
            raise InvalidArgumentError(f"Record {number} of '{os.fspath(path)}' is no Event: {error}") from None
        yield event


def get_summary_description(node_def: Any) -> Any:
    """The description in a node of op TensorSummary, which TensorFlow 1 hardly used.

    Args:
        node_def: the NodeDef.
    """
    described = SummaryDescription()
    described.type_hint = str(node_def.attr.get("description", ""))
    return described
