"""The variables of a session on a cluster, which its tasks hold."""

from __future__ import annotations

from collections.abc import Callable, Container
from contextlib import suppress

from graphcore.attrs import Array
from graphcore.dtypes import DType
from graphcore.errors import AbortedError
from graphcore.kernel_context import Owned, ResourceManager, uninitialized
from graphcore.runtime.cluster.connection import Connection
from graphcore.runtime.cluster.links import Link
from graphcore.runtime.cluster.messages import Declaration, Failure, Held, Parcel, arrived
from graphcore.shapes import Shape
from graphcore.source import SourceLocation


class RemoteVariable:
    """A variable that a task holds.

    Args:
        connection: the tasks.
        link: the task that holds it.
        declaration: its declaration.
        dtype, shape: its type and shape.
    """

    def __init__(self, connection: Connection, link: Link, declaration: Declaration, dtype: DType, shape: Shape) -> None:
        self._connection = connection
        self._link = link
        self._declaration = declaration
        self.name = declaration.name
        self.op = declaration.op
        self.source = declaration.source
        self.dtype = dtype
        self.shape = shape

    def current(self) -> Array | None:
        """The value, None if it has none."""
        value: Array | None = arrived(self._connection.ask(self._link, "read", self._declaration).content)
        return value

    def read(self) -> Array:
        """The value.

        Raises:
            FailedPreconditionError: there is none.
            AbortedError: the task is lost.
        """
        value = self.current()
        if value is None:
            raise uninitialized(self)
        return value

    def replace(self, value: Array | None) -> None:
        """Set the value, or take it away.

        Raises:
            InternalError: the value is of another type.
            AbortedError: the task is lost.
        """
        failure: Failure | None = self._connection.ask(self._link, "assign", self._declaration, Parcel(value))
        if failure is not None:
            raise failure.error()


class ClusterResources(ResourceManager):
    """The resources of a session, which its tasks hold.

    Args:
        connection: the tasks.
        device_of: gives the device of a node of the graph, by name.
    """

    def __init__(self, connection: Connection, device_of: Callable[[str], str]) -> None:
        super().__init__()
        self._connection = connection
        self._device_of = device_of

    def stored(
        self,
        container: str,
        name: str,
        dtype: DType,
        shape: Shape,
        source: SourceLocation | None = None,
        op: str = "VariableV2",
        node: str = "",
    ) -> RemoteVariable:
        """Find or make the storage of a variable, on the task of its node."""
        made = Declaration(container, name, dtype.text, None if shape.rank is None else tuple(shape.as_list()), source, op, node)
        return RemoteVariable(self._connection, self._connection.links[self._device_of(node)], made, dtype, shape)

    def value_of(self, container: str, name: str) -> Array | None:
        """The value of a variable, None if it has none or its task is lost. Makes nothing."""
        with suppress(AbortedError):
            answers = self._connection.ask_all("value_of", container, name)
            return next((arrived(answer.content) for answer in answers if answer.content is not None), None)
        return None

    def initialised(self) -> list[str]:
        """The owners of the variables with values, as far as their tasks are not lost."""
        return [resource.owner for _, held in self._held() for resource in held if resource.has_value]

    def disown(self, is_gone: Callable[[Owned], bool]) -> None:
        """Clear the owner of variables and queues whose owner is gone; the next node may declare them."""
        for link, held in self._held():
            gone = [resource.owner for resource in held if resource.owner and is_gone(resource)]
            if gone:
                self._connection.ask(link, "disown", gone)

    def reset(self, containers: Container[str]) -> None:
        """Clear the variables and end the queues in `containers`."""
        assert isinstance(containers, frozenset)
        self._connection.ask_all("reset", sorted(containers))

    def _held(self) -> list[tuple[Link, list[Held]]]:
        """The resources of each task that is not lost."""
        asked = []
        for link in self._connection.links.values():
            with suppress(AbortedError):
                asked.append((link, self._connection.ask(link, "held")))
        return asked
