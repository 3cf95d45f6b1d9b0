"""Facts about one node in words: its definition, the names of its slots, details of other frameworks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from graphcore.attrs import Placeholder, TensorValue
from graphcore.definitions import NodeDef, name_ranges_for_node
from graphcore.errors import GraphError
from graphcore.frontends.record import foreign_of
from graphcore.text import debug_string
from widgets.scene.words import attr_text

if TYPE_CHECKING:
    from graphcore.frontends.record import Section
    from graphcore.graph import Node

MAX_VALUES: Final = 64


def node_def_text(node_def: NodeDef) -> str:
    """A NodeDef in the text form; large tensors are abbreviated by `...`."""
    large = {name: value for name, value in node_def.attr.items() if isinstance(value, TensorValue) and value.array.size > MAX_VALUES}
    if not large:
        return debug_string(node_def)
    places = {name: Placeholder(f"values_of_{name}") for name in large}
    text = debug_string(msgspec.structs.replace(node_def, attr={**node_def.attr, **places}))
    for name, value in large.items():
        first = " ".join(attr_text(item) for item in value.array.reshape(-1)[:8].tolist())
        text = text.replace(f"$values_of_{name}", f"Tensor<type: {value.dtype} shape: {value.shape} values: {first} ...>")
    return text


def foreign_details(node: Node) -> list[tuple[Section, str, str]]:
    """The facts about a node of another framework that are no attrs: section, word and text of each."""
    foreign = foreign_of(node.graph) if node.is_opaque else None
    return [] if foreign is None else foreign.details(node)


def names_of_slots(node: Node) -> tuple[list[str], list[str]]:
    """The argument's name for each input and output slot; `x[2]` within a list."""
    foreign = foreign_of(node.graph) if node.is_opaque else None
    if foreign is not None:
        return foreign.slot_names(node)
    try:
        ranges = name_ranges_for_node(node.node_def, node.op_def)
    except GraphError:
        return [""] * len(node.inputs), [""] * len(node.outputs)
    named: tuple[list[str], list[str]] = ([], [])
    for names, slots in zip(named, ranges, strict=True):
        for name, (start, stop) in slots.items():
            names.extend([name] if stop - start == 1 else [f"{name}[{place}]" for place in range(stop - start)])
    return named
