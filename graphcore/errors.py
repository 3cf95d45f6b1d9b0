"""Errors: one small class a status code, each also the built-in exception that a caller would catch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, Self

from graphcore.support.shown import shown

if TYPE_CHECKING:
    from graphcore.source import SourceLocation


_CODES: Final = [
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
]
"""The names of the status codes, from 1 on."""


class Located(Protocol):
    """The protocol of objects that errors refer to: a node, with its op and the line that made it."""

    @property
    def name(self) -> str:
        """The name."""

    @property
    def op(self) -> str:
        """The name of the op."""

    @property
    def source(self) -> SourceLocation | None:
        """The line of user code that made the node."""


def plain(suggestion: str) -> str:
    """A suggestion with the names of tensors and nodes in quotes."""
    return suggestion.replace("\u00ab", "'").replace("\u00bb", "'")


class GraphError(Exception):
    """The base of every error of this package.

    Args:
        message: requirement and actual value.
        op, node, attr, input: the place of the error, as far as known.
        source: the line of user code that made the node.

    Attributes:
        device: the device that ran the node, "" if there is only one.
        required, came: requirement and actual value, each in a few words; "" if only the message names them.
        suggestion: what to do next, "" if unknown. Code is in backticks; `«x:0»` stands for a tensor or node (`plain`).
        inputs: the tensors that a node was to take that could not be made.
    """

    device = ""
    required = ""
    came = ""
    suggestion = ""
    inputs: tuple[Any, ...] = ()
    code: ClassVar[str] = "UNKNOWN"
    is_mark = False
    """True for a mark on a node that could not follow a change; shape inference does not take it away."""
    is_left = False
    """True for the mark of a node that its cell has not made again, because it failed: the node keeps its shapes, and refuses to run."""

    def __init__(
        self,
        message: str,
        *,
        op: str = "",
        node: str = "",
        attr: str = "",
        input: str = "",
        source: SourceLocation | None = None,
    ) -> None:
        message = shown(message)
        super().__init__(message)
        self.message = message
        self.op = op
        self.node = node
        self.attr = attr
        self.input = input
        self.source = source
        self._explain: Callable[[], tuple[Any, ...]] | None = None
        self._chains: tuple[Any, ...] = ()

    @classmethod
    def at(cls, node: Located, message: str, *, attr: str = "", input: str = "") -> Self:
        """Make an error about a node; it carries the node's name, its op and the line that made it.

        Args:
            node: the node.
            message: requirement and actual value.
            attr, input: the attr or input of the node that the error is about, if any.
        """
        return cls(message, op=node.op, node=node.name, attr=attr, input=input, source=node.source)

    @property
    def error_code(self) -> int:
        """The number of its status code (TF1's name)."""
        return _CODES.index(self.code) + 1

    @property
    def chains(self) -> tuple[Any, ...]:
        """The origins of the numbers that clash, one chain each (see `graphcore.explain_shape`).

        Empty if no shapes clash. Computed on first access.
        """
        if self._explain is not None:
            explain, self._explain = self._explain, None
            self._chains = explain()
        return self._chains

    def explained_by(self, explain: Callable[[], tuple[Any, ...]]) -> GraphError:
        """Let `explain` compute the chains on first access. Returns self."""
        self._explain = explain
        return self

    def advise(self, suggestion: str, *, required: str = "", came: str = "") -> Self:
        """Say what to do next, and requirement and actual value apart from the message. Returns self.

        A traceback ends with the suggestion. An earlier one is kept, since it is nearer to the cause.
        """
        if self.suggestion or not suggestion:
            return self
        self.suggestion, self.required, self.came = suggestion, required, came
        self.add_note(f"To do: {plain(suggestion)}")
        return self

    def again_at(self, node: Located) -> Self:
        """The same error, raised once more for its node."""
        error = type(self).at(node, self.message).advise(self.suggestion, required=self.required, came=self.came)
        error.explained_by(lambda: self.chains)
        return error

    def about_inputs(self, inputs: tuple[Any, ...]) -> Self:
        """Name the tensors that the refused node was to take. Returns self."""
        self.inputs = self.inputs or inputs
        return self

    def __reduce__(self) -> str | tuple[Any, ...]:
        self._chains = self.chains  # the explainer cannot be pickled, its result can
        self.inputs = ()  # nor can graphs
        return super().__reduce__()

    def __str__(self) -> str:
        text = f"{self.message}\n  on device {self.device}" if self.device else self.message
        return text if self.source is None else f"{text}\n  made in {self.source}"

    def with_node(self, node: str, *, op: str = "", source: SourceLocation | None = None) -> GraphError:
        """Set the node the error is about, unless one is set already. Returns self."""
        self.node = self.node or node
        self.op = self.op or op
        self.source = self.source or source
        return self


OpError = GraphError
"""TensorFlow's name of the base of all errors."""


class InvalidArgumentError(GraphError, ValueError):
    """An argument is invalid regardless of the state of the system."""

    code = "INVALID_ARGUMENT"


class NotFoundError(GraphError, KeyError):
    """A requested entity does not exist."""

    code = "NOT_FOUND"


class UnknownNameError(NotFoundError, AttributeError):
    """A package or a module does not have an attribute of this name."""


class AlreadyExistsError(GraphError, ValueError):
    """An entity with this name exists already."""

    code = "ALREADY_EXISTS"


class FailedPreconditionError(GraphError, RuntimeError):
    """The operation requires another state (an uninitialised variable, a closed session)."""

    code = "FAILED_PRECONDITION"


class OutOfRangeError(GraphError, IndexError):
    """An index or a position is beyond the end."""

    code = "OUT_OF_RANGE"


class FixedValueError(FailedPreconditionError, AttributeError):
    """A value that does not change was to be changed."""


class UnimplementedError(GraphError, NotImplementedError):
    """The operation is not implemented for these arguments."""

    code = "UNIMPLEMENTED"


class InternalError(GraphError, RuntimeError):
    """An invariant is broken."""

    code = "INTERNAL"


class AbortedError(GraphError, RuntimeError):
    """The operation was aborted, usually because another part failed."""

    code = "ABORTED"


class CancelledError(GraphError, RuntimeError):
    """The operation was cancelled by the caller."""

    code = "CANCELLED"


class DeadlineExceededError(GraphError, TimeoutError):
    """The deadline expired before the operation finished."""

    code = "DEADLINE_EXCEEDED"


class ResourceExhaustedError(GraphError, MemoryError):
    """Memory or another resource is exhausted."""

    code = "RESOURCE_EXHAUSTED"


def error_of_code(number: int) -> type[GraphError]:
    """The class of a status code by its number in files, GraphError for an unknown one."""
    code = _CODES[number - 1] if 0 < number <= len(_CODES) else ""
    return next((kind for kind in GraphError.__subclasses__() if kind.code == code), GraphError)
