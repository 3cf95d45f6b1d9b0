"""The messages between a session and its tasks, and from task to task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np

from graphcore import errors
from graphcore.errors import GraphError, InternalError, UnimplementedError
from graphcore.kernel_context import DEAD
from graphcore.runtime.core.events import ArrayLife, Event
from graphcore.source import SourceLocation

_HANDLES_STAY: Final = "a handle, list or other object stays on the task that made it, and only arrays can leave it"


class Parcel(msgspec.Struct, frozen=True):
    """A value that Dask transports whole.

    It is pickled with its arrays beside it, as Dask's own form of arrays lacks some of the small floating-point types.
    """

    content: Any


class Shipment(msgspec.Struct, frozen=True):
    """A partition on its way to its task.

    Args:
        digest: identifies its contents.
        device: the device that runs it.
        graph_def: the nodes, and the functions that they reach, in the form of files.
        sources, feeds, fetches, targets: those of the partition.
        seed: the seed of the graph.
        is_alone: True if no other partition belongs to its runs.
        engine: the engine, for a partition that is alone.
        threads: the number of heavy nodes to run concurrently; 0 for the best number there.
        num_feeds: the number of feeds of the whole step.
        mild: the names of the initializers that leave values as they are.
    """

    digest: str
    device: str
    graph_def: bytes
    sources: Mapping[str, SourceLocation]
    feeds: Mapping[int, str]
    fetches: Mapping[int, str]
    targets: Sequence[str]
    seed: int | None
    is_alone: bool
    engine: str
    threads: int
    num_feeds: int
    mild: Sequence[str]


class Request(msgspec.Struct, frozen=True):
    """The order to run a partition.

    Args:
        digest: the partition.
        step: the number of the step.
        oldest: the lowest number of a step that may still be under way.
        values: the values of its feeds, by their positions among those of the whole step.
        is_traced: True to record the events.
        patterns: the patterns of nodes with full statistics if values are recorded too, else None.
        is_stepped: True to wait before each node until the session lets it run.
    """

    digest: str
    step: int
    oldest: int
    values: Mapping[int, Any]
    is_traced: bool = False
    patterns: Sequence[str] | None = None
    is_stepped: bool = False


class News(msgspec.Struct, frozen=True):
    """The progress of a part that is stepped through.

    Args:
        events: the events since the last news.
        values: the state of `ValueRecorder` since then.
        place: the calls and the node before which it waits; None if it does not wait.
    """

    events: Sequence[Event] = ()
    values: Any = None
    place: tuple[str, str] | None = None


class Failure(msgspec.Struct, frozen=True):
    """An error on its way: its class by name, and what it carries."""

    kind: str
    message: str
    op: str
    node: str
    attr: str
    input: str
    source: SourceLocation | None
    device: str
    suggestion: str
    required: str
    came: str

    @classmethod
    def of(cls, error: BaseException, device: str) -> Failure:
        """The failure for an error that occurred on a device."""
        if not isinstance(error, GraphError):
            error = InternalError(f"{type(error).__name__}: {error}")
        name = next(base.__name__ for base in type(error).__mro__ if getattr(errors, base.__name__, None) is base)
        place = error.op, error.node, error.attr, error.input, error.source, error.device or device
        return cls(name, error.message, *place, error.suggestion, error.required, error.came)

    def error(self) -> GraphError:
        """The error, to be raised in this process."""
        kind: type[GraphError] = getattr(errors, self.kind)
        made = kind(self.message, op=self.op, node=self.node, attr=self.attr, input=self.input, source=self.source)
        made.device = self.device
        return made.advise(self.suggestion, required=self.required, came=self.came)


class Records(msgspec.Struct, frozen=True):
    """The record of a task's part of a step: events, lives of arrays, and the state of `ValueRecorder`."""

    events: Sequence[Event]
    arrays: Sequence[ArrayLife]
    values: Any = None


class Outcome(msgspec.Struct, frozen=True):
    """The end of a task's part of a step.

    Args:
        results: the fetched values, by their positions among those of the whole step.
        failure: the error that ended it.
        unreachable: the device that it could not send a value to, "" if there is none.
        records: the record, if it was traced.
    """

    results: Mapping[int, Any] = {}
    failure: Failure | None = None
    unreachable: str = ""
    records: Records | None = None


class Prepared(msgspec.Struct, frozen=True):
    """The end of a preparation.

    Args:
        failure: the error that ended it.
        redeclared: True if it has declared a variable again, which earlier programs may hold.
        replaced: True if it has replaced a function, which earlier programs may call.
    """

    failure: Failure | None = None
    redeclared: bool = False
    replaced: bool = False


class Ended(msgspec.Struct, frozen=True):
    """The end of the part of a step that was stopped.

    Args:
        node, op: the node that was running and has been given up; "" if the part has ended by itself.
    """

    node: str = ""
    op: str = ""


class Held(msgspec.Struct, frozen=True):
    """A variable, queue or other resource of a task, for `ResourceManager.disown`."""

    owner: str
    op: str
    has_value: bool = False


class Declaration(msgspec.Struct, frozen=True):
    """The declaration of a variable, by plain values."""

    container: str
    name: str
    dtype: str
    shape: tuple[int | None, ...] | None
    source: SourceLocation | None
    op: str
    node: str


def arrived(value: Any) -> Any:
    """A value that has arrived, with NumPy's own object for its dtype: pickling makes copies of it."""
    if not isinstance(value, np.ndarray) or value.dtype.hasobject:
        return value
    own = np.dtype(value.dtype.type)
    return value if value.dtype is own else value.view(own)


def checked_to_travel(value: Any, what: str) -> Any:
    """Check that a value can leave its task.

    Args:
        what: describes it, for the error.

    Raises:
        UnimplementedError: it is a handle or another object without elements.
    """
    if value is DEAD or value is None:
        return value
    if isinstance(value, np.generic):
        return np.asarray(value)
    if isinstance(value, bool | int | float | complex | bytes):
        return value
    if not isinstance(value, np.ndarray):
        raise UnimplementedError(f"{what} is {type(value).__name__}: {_HANDLES_STAY}")
    if value.dtype.hasobject and not all(isinstance(element, bytes | str) for element in value.flat):
        raise UnimplementedError(f"{what} contains other objects than strings: {_HANDLES_STAY}")
    return value
