"""The source behind a graph of opaque ops: what nodes, scopes and functions are in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import zip_longest
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from graphcore.frontends.foreign import ModuleCall
from graphcore.frontends.words import is_sharding, plain_text, weight_bytes
from graphcore.graph.attached import Attached
from graphcore.source import CellRun, SourceLocation, cell_runs

if TYPE_CHECKING:
    from graphcore.attrs import Array
    from graphcore.frontends.foreign import ForeignGraph, ForeignNode
    from graphcore.graph import Graph, Node

Section: TypeAlias = Literal["", "module", "quantization", "source"]
"""The section of the inspector that shows a fact of the source, "" for that of the attrs."""
NO_MODULE: Final = ModuleCall("")
"""Stands for being in no module."""
SHORT_BYTES: Final = 128
"""Constants of at most so many bytes are read to be shown in their boxes."""


class ForeignLocation(SourceLocation, frozen=True, kw_only=True):
    """A line of the program that made a node, as the source gives it. No file is read."""

    line_text: str = ""

    @property
    def text(self) -> str:
        """The line itself; empty if the source does not give it."""
        return self.line_text

    @property
    def holder(self) -> CellRun | None:
        """The cell of this kernel that holds the line, where a call was traced; None for another file."""
        return cell_runs.get(self.file)


@dataclass(slots=True)
class ForeignBody:
    """The body of a function, as a graph.

    Attributes:
        name: the function.
        doc: the source's own note on it.
        graph: its nodes.
        args, rets: the names of the nodes of its arguments and results, in order.
    """

    name: str
    doc: str
    graph: Graph
    args: list[str]
    rets: list[str]


@dataclass
class ForeignRecord:
    """The source of a lowered graph or body.

    Attributes:
        source: the whole graph of the other framework.
        nodes: what each node is in it, by the node's name. Nodes for results of the graph are absent.
        classes: the classes of modules by the paths of scopes.
        modules: the paths of modules by the paths of scopes, where they differ.
        body: makes the body of a function, given the function's key and a prefix for the names of its nodes.
    """

    source: ForeignGraph
    nodes: dict[str, ForeignNode]
    classes: dict[str, str]
    modules: dict[str, str]
    body: Callable[[str, str], ForeignBody]
    values: dict[str, Array] = field(default_factory=dict)

    def details(self, node: Node) -> list[tuple[Section, str, str]]:
        """The facts of the source about a node, beside its attrs: the section of each, a word and a text."""
        foreign = self.nodes.get(node.name)
        if foreign is None:
            return []
        lines: list[tuple[Section, str, str]] = [
            ("", name, f"{plain_text(value)} (default)") for name, value in foreign.defaults.items() if name not in foreign.attrs
        ]
        lines += [
            ("module", module.type_name or "scope", module.path or "(whole model)") for module in foreign.modules if module != NO_MODULE
        ]
        if self.is_quantized:
            lines += [("quantization", name, text) for name, text in self._quantized(node, foreign)]
        if foreign.name != node.name:
            lines.append(("source", "name", foreign.name))
        lines += [("source", f"on {port.name or f'output {i}'}", port.note) for i, port in enumerate(foreign.outputs) if port.note]
        if len(foreign.frames) > 1:
            lines.append(("source", "called from", " < ".join(f"{frame.file}:{frame.line}" for frame in foreign.frames[-2::-1][:8])))
        if foreign.weight is not None and foreign.weight.where:
            lines.append(("source", "stored in", foreign.weight.where))
        if foreign.device:
            lines.append(("source", "sharding" if is_sharding(foreign.device) else "device", foreign.device))
        if foreign.doc:
            lines.append(("source", "note", foreign.doc))
        return lines

    @property
    def device_words(self) -> str:
        """The words about devices where no node is on one that is named."""
        device = self.source.facts.get("device")
        return f"All tensors in the {self.source.kind} are on {device}" if device else f"No device is named in the {self.source.kind}"

    @cached_property
    def is_quantized(self) -> bool:
        """True iff the source says a scale for some tensor."""
        return any(port.quantization for foreign in self.nodes.values() for port in foreign.outputs)

    def _quantized(self, node: Node, foreign: ForeignNode) -> Iterator[tuple[str, str]]:
        """The quantised inputs and outputs of a node, with scale and zero point."""
        for tensor, word in zip(node.inputs, self.slot_names(node)[0], strict=True):
            producer = self.nodes.get(tensor.node.name)
            if producer is not None and producer.outputs[tensor.index].quantization:
                yield f"input {word or tensor.node.name.rpartition('/')[2]}", producer.outputs[tensor.index].quantization
        for number, port in enumerate(foreign.outputs):
            if port.quantization:
                yield "output" if len(foreign.outputs) == 1 else f"output {port.name or number}", port.quantization

    def slot_names(self, node: Node) -> tuple[list[str], list[str]]:
        """The names of the inputs and outputs of a node."""
        foreign = self.nodes.get(node.name)
        if foreign is None:
            return [""] * len(node.inputs), [""] * len(node.outputs)
        inputs = [name for name, ref in zip_longest(foreign.input_names, foreign.inputs, fillvalue="") if ref is not None]
        outputs = [port.name for port in foreign.outputs]
        return _of_length(inputs, len(node.inputs)), _of_length(outputs, len(node.output_types))

    def value(self, node: Node) -> Array | None:
        """The elements of the tensor that a node holds, read now.

        None if it holds none, or the source does not have them.

        Raises:
            GraphError: they cannot be read.
        """
        foreign = self.nodes.get(node.name)
        if foreign is None or foreign.weight is None or foreign.weight.load is None:
            return None
        value = self.values.get(node.name)
        if value is None:
            value = foreign.weight.load()
            self.values.clear()  # the one read last is asked for page by page
            self.values[node.name] = value
        return value

    def short_value(self, node: Node) -> Array | None:
        """Like `value`, for small tensors only."""
        foreign = self.nodes.get(node.name)
        is_short = foreign is not None and foreign.weight is not None and 0 <= weight_bytes(foreign.weight) <= SHORT_BYTES
        return self.value(node) if is_short else None

    def arguments(self, node: Node, role: str, count: int) -> list[int]:
        """The inputs of a node that are the `count` arguments of a body; -1 for arguments that are none."""
        foreign = self.nodes.get(node.name)
        numbers = None if foreign is None else foreign.arguments.get(role)
        if numbers is not None:
            return [number if -1 <= number < len(node.inputs) else -1 for number in numbers[:count]] + [-1] * (count - len(numbers))
        first = 1 if count == len(node.inputs) - 1 else 0
        return list(range(first, first + count)) if first + count == len(node.inputs) else [-1] * count


_records: Final[Attached[ForeignRecord]] = Attached()
is_earlier: Final[Attached[bool]] = Attached()
"""True at a graph whose model was run in an earlier version, whose values and times are not those of this one."""


def foreign_of(graph: Graph) -> ForeignRecord | None:
    """The source behind a graph or body; None for graphs of our own."""
    return _records.of(graph)


def set_foreign(graph: Graph, record: ForeignRecord) -> None:
    """Note the source behind a graph or body."""
    _records.set(graph, record)


def _of_length(names: list[str], count: int) -> list[str]:
    """`count` names; those that are missing are empty."""
    return names if len(names) == count else [*names, *[""] * count][:count]


def class_of_scope(classes: Mapping[str, str], path: str) -> str:
    """The class of the module that a scope is, "" for other scopes."""
    return classes.get(path.removesuffix("/"), "")
