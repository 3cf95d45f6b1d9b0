"""Values of TorchScript programs as they are followed: tensors, modules, functions, lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphcore.frontends.torch_reader.pickles import Thing
    from graphcore.frontends.torch_reader.script_building import Building


@dataclass(frozen=True, slots=True)
class Ref:
    """An output of a node of a graph that is being built."""

    building: Building
    node: str
    index: int = 0


@dataclass(frozen=True, slots=True)
class ModuleValue:
    """A module, or another object of a class of the program, by its path."""

    thing: Thing
    path: str


@dataclass(frozen=True, slots=True)
class FunctionValue:
    """A function, class or op by its name: `__torch__.torch.nn.functional.relu`, `torch.add`."""

    name: str


@dataclass(frozen=True, slots=True)
class Method:
    """A method of an object."""

    owner: ModuleValue
    name: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that is no part of the graph: a type, or one that is not initialised."""

    text: str


@dataclass(frozen=True, slots=True)
class AttributeValue:
    """An attribute of a value of the graph."""

    owner: Any
    name: str


class ListValue:
    """A list that the program makes. It is a value of the graph, `ref`, once nodes change it."""

    __slots__ = ("building", "items", "ref")

    def __init__(self, building: Building, items: list[Any]) -> None:
        self.building = building
        self.items = items
        self.ref: Ref | None = None
