"""Errors: one small class a status code, each also the built-in exception that a caller would catch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

if TYPE_CHECKING:
    from graphcore.source import SourceLocation


class Located(Protocol):
    """What an error can be about: a node, with its op and the line that made it."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def op(self) -> str:
        """The name of its op."""

    @property
    def source(self) -> SourceLocation | None:
        """The line of user code that made it."""


class GraphError(Exception):
    """The base of every error of this package.

    Args:
        message: what was required and what was got.
        op, node, attr, input: where, as far as it is known.
        source: the line of user code that made the node.
    """

    code: ClassVar[str] = "UNKNOWN"
    is_mark = False
    """True for a mark on a node that could not follow a change; shape inference does not take it away."""

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
        """An error that is a node's: it tells the node's name, its op and the line that made it.

        Args:
            node: whose.
            message: what was required, and what came.
            attr, input: which of the node's, where it is about one.
        """
        return cls(message, op=node.op, node=node.name, attr=attr, input=input, source=node.source)

    @property
    def chains(self) -> tuple[Any, ...]:
        """Where the numbers that clash came from, one chain each (see `graphcore.explain_shape`); empty if no shapes clash.

        They are found when they are first asked for.
        """
        if self._explain is not None:
            explain, self._explain = self._explain, None
            self._chains = explain()
        return self._chains

    def explained_by(self, explain: Callable[[], tuple[Any, ...]]) -> GraphError:
        """Have `explain` find the chains when somebody asks for them. Returns self."""
        self._explain = explain
        return self

    def __reduce__(self) -> str | tuple[Any, ...]:
        self._chains = self.chains  # what would find them later cannot go to another process
        return super().__reduce__()

    def __str__(self) -> str:
        if self.source is None:
            return self.message
        return f"{self.message}\n  made in {self.source}"

    def with_node(self, node: str, *, op: str = "", source: SourceLocation | None = None) -> GraphError:
        """Fill in where it happened, unless an inner place has said so already. Returns self."""
        self.node = self.node or node
        self.op = self.op or op
        self.source = self.source or source
        return self


class InvalidArgumentError(GraphError, ValueError):
    """The caller gave something that can never be right."""

    code = "INVALID_ARGUMENT"


class NotFoundError(GraphError, KeyError):
    """Something asked for by name does not exist."""

    code = "NOT_FOUND"


class UnknownNameError(NotFoundError, AttributeError):
    """A name that a package or a module does not have."""


class AlreadyExistsError(GraphError, ValueError):
    """Something with this name exists already."""

    code = "ALREADY_EXISTS"


class FailedPreconditionError(GraphError, RuntimeError):
    """The state does not allow this now (an uninitialised variable, a closed session)."""

    code = "FAILED_PRECONDITION"


class OutOfRangeError(GraphError, IndexError):
    """An index or a position beyond the end."""

    code = "OUT_OF_RANGE"


class UnimplementedError(GraphError, NotImplementedError):
    """The operation exists but not for these arguments."""

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
    """The time allowed ran out."""

    code = "DEADLINE_EXCEEDED"


class ResourceExhaustedError(GraphError, MemoryError):
    """Too little memory or another resource."""

    code = "RESOURCE_EXHAUSTED"
