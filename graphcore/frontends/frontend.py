"""The protocol of frontends, each of which reads one kind of source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    from graphcore.frontends.foreign import ForeignGraph
    from graphcore.runtime.runners import RunRecord

HEAD_BYTES = 4096
"""The first bytes of a file that a frontend sees when it sniffs."""
_MAX_DEPTH = 6
_MAX_ITEMS = 100


@dataclass(frozen=True, slots=True)
class Source:
    """A file, a folder or an object to read.

    Attributes:
        path: the file or folder, None for an object.
        head: the first bytes of a file (at most `HEAD_BYTES`), after gunzipping where it is gzipped.
        members: the names of the members of a zip archive, empty otherwise.
        is_gzipped: True if `head` was gunzipped.
        value: the object, None for a file.
    """

    path: Path | None = None
    head: bytes = b""
    members: tuple[str, ...] = ()
    is_gzipped: bool = False
    value: object = None


@dataclass(frozen=True, slots=True)
class Call:
    """A call that is traced and not made: a module or function with its arguments.

    Attributes:
        function, args, kwargs: these.
        gradients: True to show the gradients of its result, too.
    """

    function: Any
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    gradients: bool = False

    def gives(self, is_wanted: Callable[[object], bool]) -> bool:
        """True iff a function says so of an argument, or of a value in its lists and tables."""
        return any(_holds(value, is_wanted, 0) for value in (*self.args, *self.kwargs.values()))


def _holds(value: object, is_wanted: Callable[[object], bool], depth: int) -> bool:
    if is_wanted(value):
        return True
    if is_dataclass(value):
        value = [getattr(value, part.name, None) for part in fields(value)]
    items = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return depth < _MAX_DEPTH and any(_holds(item, is_wanted, depth + 1) for item in list(items)[:_MAX_ITEMS])


class MadeCall(NamedTuple):
    """A call that was made once and recorded.

    Attributes:
        source: the graph of the run itself.
        result: its result, None after an error.
        error: the error with which it ended, None without one.
    """

    source: ForeignGraph
    result: Any
    error: Exception | None


@runtime_checkable
class MakesCalls(Protocol):
    """A frontend that can also make a call for real. Others run what `ForeignGraph.runner` gives."""

    def make(self, call: Call, record: RunRecord) -> MadeCall:
        """Make a call once, and record it. Its result is that of the call alone, and everything else is as before it.

        Raises:
            GraphError: the call fails before any operation.
        """


class Frontend(Protocol):
    """Reads one kind of source. A module with these names is one, too."""

    KIND: str
    """The kind in words, with its usual endings: `ONNX model (.onnx)`."""

    def sniff(self, source: Source) -> bool:
        """True iff the source is of this kind, by its first bytes, members or type, never by its ending.

        It imports no framework: an object is recognised by the module and name of its class (`sys.modules`).
        """

    def read(self, source: Source) -> ForeignGraph:
        """Read the source.

        Raises:
            GraphError: it is damaged or not supported, a limit of memory or time is reached, or a library is missing (the message says
                what the source is, and the `pip install` line).
        """
