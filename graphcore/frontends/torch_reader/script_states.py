"""Values that TorchScript's objects and constants hold, as values of a program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from graphcore.errors import InvalidArgumentError
from graphcore.frontends.foreign import ForeignNode, Port, WeightRef
from graphcore.frontends.torch_reader.pickles import StoredTensor, Thing
from graphcore.frontends.torch_reader.script_building import (
    AttributeValue,
    Building,
    FunctionValue,
    ListValue,
    Method,
    ModuleValue,
    Ref,
    Unknown,
)
from graphcore.frontends.torch_reader.script_code import ScriptCode
from graphcore.frontends.torch_reader.signature import STATE


@dataclass(frozen=True, slots=True)
class Assigned:
    """A value that an attribute was assigned: in the main graph, or in that of a branch or loop."""

    building: Building
    value: Any


class States:
    """Attributes of objects, and constants.

    Args:
        code: the code of the program.
        constants: its constants, which code names by number.
        weight: gives a tensor that is not yet read.
        main: the main graph, which has the nodes of tensors.

    Attributes:
        building: the graph that is being built.
    """

    def __init__(self, code: ScriptCode, constants: Sequence[Any], weight: Callable[[StoredTensor], WeightRef], main: Building) -> None:
        self._code = code
        self._constants = constants
        self._weight = weight
        self._main = main
        self._states: dict[StoredTensor, Ref] = {}
        self.building = main

    def attribute(self, owner: Any, name: str) -> Any:
        """An attribute of a value."""
        if isinstance(owner, FunctionValue):
            if owner.name == "CONSTANTS":
                return self._constant(name)
            return FunctionValue(f"{owner.name}.{name}")
        if isinstance(owner, ModuleValue):
            path = f"{owner.path}.{name}" if owner.path else name
            if name not in owner.thing.state:
                return Method(owner, name)
            held = owner.thing.state[name]
            if isinstance(held, Assigned):
                if held.building.is_around(self.building):
                    return held.value
                # A branch that may not have run, or a loop, assigned it.
                return Ref(self.building, self.building.add("prim.GetAttr", [("name", path)], ("",)).name)
            return self.stored(held, path, owner.thing)
        if isinstance(owner, Ref | ListValue | tuple):
            return AttributeValue(owner, name)
        return Unknown(name)

    def stored(self, value: Any, path: str, owner: Thing | None) -> Any:
        """A value of an object as one of the program."""
        if isinstance(value, Thing):
            return ModuleValue(value, path)
        if isinstance(value, StoredTensor):
            ref = self._states.get(value)
            if ref is None:
                located = None if owner is None else self._code.class_of(owner.kind)
                is_buffer = located is not None and path.rpartition(".")[2] in located[1].buffers
                kind = "constant" if owner is None else "buffer" if is_buffer else "parameter"
                node = ForeignNode(
                    self._main.unique(path),
                    STATE[kind],
                    outputs=(Port(path, value.dtype, value.shape),),
                    weight=self._weight(value),
                    kind=kind,
                )
                self._main.nodes.append(node)
                ref = self._states[value] = Ref(self._main, node.name)
            return ref
        if isinstance(value, list):
            return ListValue(self.building, [self.stored(item, f"{path}.{number}", owner) for number, item in enumerate(value[:10_000])])
        if isinstance(value, tuple):
            return tuple([self.stored(item, f"{path}.{number}", owner) for number, item in enumerate(value[:10_000])])
        if isinstance(value, str | int | float | bool | Ref | ListValue | ModuleValue | None):
            return value
        return Unknown(type(value).__name__)

    def _constant(self, name: str) -> Any:
        number = name.removeprefix("c")
        if not (number.isascii() and number.isdigit()) or len(number) > 9 or int(number) >= len(self._constants):
            raise InvalidArgumentError(f"The code names the constant '{name}'; there are {len(self._constants)}")
        return self.stored(self._constants[int(number)], f"constants.{name}", None)
