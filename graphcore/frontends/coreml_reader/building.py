"""Functions of CoreML models while they are built: values by name, and unique names of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from graphcore.errors import InvalidArgumentError
from graphcore.frontends.foreign import ForeignFunction, ForeignNode, InputRef, Port
from graphcore.frontends.unique_names import UniqueNames

if TYPE_CHECKING:
    from collections.abc import Sequence

INPUT: Final = "coreml.Input"
OUTER: Final = "coreml.Outer"


class Body:
    """The nodes of a function, and the values that they give by name."""

    def __init__(self, name: str, inputs: Sequence[Port], outer: Body | None = None) -> None:
        self.name = name
        self.nodes: list[ForeignNode] = []
        self.ports: list[Port] = []
        self._outer = outer
        self._values: dict[str, InputRef] = {}
        self._types: dict[str, Port] = {}
        self._names = UniqueNames()
        self.captured: list[str] = []
        for port in inputs:
            self.add_input(port)

    def add_input(self, port: Port, op: str = INPUT) -> None:
        """An argument."""
        label = self.unused(port.name or "input")
        self.nodes.append(ForeignNode(label, op, outputs=(port,), kind="input"))
        self.ports.append(port)
        self._values[port.name] = (label, 0)
        self._types[port.name] = port

    def unused(self, name: str) -> str:
        """A name that no node has yet."""
        return self._names.unique(name or "node")

    def add(self, node: ForeignNode) -> None:
        """A node; its outputs are values by their names, those of the same name before it are hidden."""
        self.nodes.append(node)
        for place, port in enumerate(node.outputs):
            self._values[port.name] = (node.name, place)
            self._types[port.name] = port

    def type_of(self, name: str) -> Port | None:
        """The port of a value here or around; None if there is none."""
        return self._types.get(name) or (None if self._outer is None else self._outer.type_of(name))

    def ref(self, name: str) -> InputRef:
        """A value by name; one from around becomes an argument.

        Raises:
            InvalidArgumentError: there is none.
        """
        ref = self._values.get(name)
        if ref is not None:
            return ref
        port = None if self._outer is None else self._outer.type_of(name)
        if port is None:
            raise InvalidArgumentError(f"'{name[:200]}' is used and given by no layer or argument before")
        self.add_input(Port(name, port.dtype, port.shape), OUTER)
        self.captured.append(name)
        return self._values[name]

    def function(self, outputs: Sequence[str]) -> ForeignFunction:
        """The function with these results."""
        refs = tuple([self.ref(name) for name in outputs])
        inputs = [node for node in self.nodes if node.kind == "input"]
        others = [node for node in self.nodes if node.kind != "input"]
        return ForeignFunction(self.name, tuple(self.ports), refs, tuple(outputs), inputs + others)
