"""Graphs of TorchScript programs while they are built: values, nodes, captured values, bodies."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from graphcore.errors import ResourceExhaustedError
from graphcore.frontends.foreign import ForeignFunction, ForeignNode, InputRef, ModuleCall, Port, SourceFrame
from graphcore.frontends.torch_reader.arguments import Named, collect
from graphcore.frontends.torch_reader.signature import INPUT
from graphcore.frontends.unique_names import UniqueNames

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from graphcore.frontends.torch_reader.pickles import Thing

MAX_NODES: Final = 200_000
_CHANGES: Final = re.compile(
    r"^(prim\.(RaiseException|Print|SetAttr|If|Loop)|aten\.(append|extend|insert|clear|_set_item|Delete|backward)$)"
)


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


def _base_name(op: str, attrs: Mapping[str, Any], outputs: tuple[str, ...]) -> str:
    """The name of a node: an attribute, the first variable that a branch or a loop gives, else its op."""
    base = op.rpartition(".")[2].strip("_") or op
    if base in {"GetAttr", "SetAttr"}:
        return str(attrs.get("name") or base)
    if base in {"If", "Loop"}:
        return next((name for name in outputs if name and not name.startswith("_")), base)
    return base


class Building:
    """A graph that is being built.

    Args:
        name: its name.
        parent: the graph around it, None for the main one.

    Attributes:
        name: its name.
        nodes: its nodes.
        captured: its arguments for values of the graph around it, by these.
        inputs: its arguments in order.
    """

    def __init__(self, name: str, parent: Building | None) -> None:
        self.name = name
        self.parent = parent
        self.nodes: list[ForeignNode] = []
        self.inputs: list[Port] = []
        self.captured: dict[Ref, Ref] = {}
        self.results: list[InputRef] = []
        self.result_names: list[str] = []
        self._names = UniqueNames()

    def is_around(self, inner: Building) -> bool:
        """True iff this is a graph or one around it."""
        around: Building | None = inner
        while around is not None and around is not self:
            around = around.parent
        return around is self

    def unique(self, base: str) -> str:
        """A name that no node has yet."""
        return self._names.unique(base)

    def argument(self, name: str, dtype: str = "") -> Ref:
        """A new argument of the graph."""
        node = self.unique(name)
        port = Port(name, dtype)
        self.inputs.append(port)
        self.nodes.append(ForeignNode(node, INPUT, outputs=(port,), kind="input"))
        return Ref(self, node)

    def local(self, ref: Ref) -> Ref:
        """A value as one of this graph: as an argument where it is of a graph around."""
        if ref.building is self or self.parent is None:
            return ref
        outer = self.parent.local(ref)
        inner = self.captured.get(outer)
        if inner is None:
            inner = self.captured[outer] = self.argument(outer.node.rpartition(".")[2] or outer.node)
        return inner

    def add(
        self,
        op: str,
        operands: Iterable[tuple[str, Any]],
        outputs: tuple[str, ...],
        modules: tuple[ModuleCall, ...] = (),
        frames: tuple[SourceFrame, ...] = (),
        **rest: Any,
    ) -> ForeignNode:
        """Add a node.

        Raises:
            ResourceExhaustedError: the graph has too many.
        """
        if len(self.nodes) >= MAX_NODES:
            raise ResourceExhaustedError(f"The program has more than {MAX_NODES:,} nodes, the limit")
        refs: dict[str, InputRef] = {}
        plain = [(name, self._plain(value, refs)) for name, value in operands]
        collected = collect(plain, refs.__getitem__, {})
        node = ForeignNode(
            self.unique(_base_name(op, collected.attrs, outputs)),
            op,
            tuple(collected.inputs),
            tuple([Port(name) for name in outputs]),
            tuple(collected.names),
            collected.attrs,
            modules=modules,
            frames=frames,
            **rest,
        )
        self.nodes.append(node)
        return node

    def _plain(self, value: Any, refs: dict[str, InputRef]) -> Any:
        if isinstance(value, ListValue):
            value = value.ref if value.ref is not None else value.items
        if isinstance(value, Ref):
            local = self.local(value)
            key = f"{local.node}:{local.index}"
            refs[key] = local.node, local.index
            return Named(key)
        if isinstance(value, list | tuple):
            return [self._plain(item, refs) for item in value]
        if isinstance(value, ModuleValue):
            return value.path or "self"
        if isinstance(value, FunctionValue):
            return value.name
        return value.text if isinstance(value, Unknown) else value

    def ref_of(self, value: Any, modules: tuple[ModuleCall, ...] = ()) -> Ref:
        """A value as an output of a node: constants, lists and tuples become nodes."""
        if isinstance(value, Ref):
            return self.local(value)
        if isinstance(value, ListValue):
            if value.ref is None:
                value.ref = value.building.made("prim.ListConstruct", value.items, modules)
            return self.local(value.ref)
        if isinstance(value, tuple):
            return self.made("prim.TupleConstruct", list(value), modules)
        return Ref(self, self.add("prim.Constant", [("value", "None" if value is None else value)], ("",), modules).name)

    def made(self, op: str, items: list[Any], modules: tuple[ModuleCall, ...]) -> Ref:
        """A list or tuple as a node."""
        return Ref(self, self.add(op, [("", items)] if items else [], ("",), modules).name)

    def finished(self) -> ForeignFunction:
        """The graph as a function, without nodes whose outputs are not taken."""
        used = {ref[0] for ref in self.results if ref is not None}
        kept = []
        for node in reversed(self.nodes):
            if node.name in used or _CHANGES.match(node.op) or node.kind != "op":
                kept.append(node)
                used |= {ref[0] for ref in node.inputs if ref is not None}
        return ForeignFunction(self.name, tuple(self.inputs), tuple(self.results), tuple(self.result_names), kept[::-1])
