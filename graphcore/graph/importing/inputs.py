"""Rewriting of imported inputs: mapped to existing tensors, with control inputs, under new names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from graphcore.definitions import NodeDef, map_colocation
from graphcore.device_spec import DeviceSpec, parse_full_name
from graphcore.errors import InvalidArgumentError
from graphcore.graph.graph import Graph
from graphcore.graph.importing.names import ImportNames
from graphcore.graph.importing.options import ImportOptions, tensor_id_of
from graphcore.graph.model.node import Node, Tensor
from graphcore.graph.model.tensor_id import CONTROL, TensorId, parse_tensor_name

_AFTER_SOURCE: Final = TensorId("_SOURCE", CONTROL)
"""Every node runs after the source: this needs no input."""


class Input(msgspec.Struct, gc=False):
    """One input of an imported node: its text, its tensor, and True if it existed in the graph before."""

    text: str
    tensor: TensorId
    exists: bool = False


class InputRewriter:
    """Rewrites the inputs of the nodes of one import.

    Args:
        graph: the target.
        options: the options.
        names: the names in the GraphDef with their new names.

    Raises:
        InvalidArgumentError: the options refer to nodes that are not in the graph, or map data to control inputs.

    Attributes:
        input_map: the replacements, by name.
        used_keys: the keys that were used for an input.
    """

    def __init__(self, graph: Graph, options: ImportOptions, names: ImportNames) -> None:
        self._names = names
        self.input_map = _checked_input_map(graph, options)
        self._controls = [_control_dependency(graph, item) for item in options.control_dependencies]
        self._default_device = options.default_device
        self._around = parse_full_name(options.surrounding_device) if options.surrounding_device else None
        self.used_keys: set[TensorId] = set()

    @property
    def changes_nothing(self) -> bool:
        """True iff every node is imported unchanged."""
        changed = self.input_map or self._controls or self._default_device or self._around or self._names.prefix or self._names.renamed
        return not changed

    def mapped(self, node_def: NodeDef) -> list[Input]:
        """The inputs after mapping; several control inputs mapped to one node become one."""
        inputs: list[Input] = []
        controls: set[TensorId] = {_AFTER_SOURCE}
        for text in node_def.input:
            tensor = parse_tensor_name(text)
            target = self.input_map.get(tensor)
            if target is None:
                inputs.append(Input(text, tensor))
                continue
            self.used_keys.add(tensor)
            if target.index == CONTROL:
                if target in controls:
                    continue
                controls.add(target)
            inputs.append(Input(str(target), target, True))
        return inputs

    def add_controls(self, inputs: list[Input], nodes: Mapping[str, Node]) -> None:
        """Add the import's control dependencies to a node without control inputs from imported nodes."""
        if not self._controls or any(not item.exists and item.tensor.node in nodes for item in inputs):
            return
        present = {item.text for item in inputs}
        inputs += [Input(str(control), control, True) for control in self._controls if str(control) not in present]

    def renamed(self, node_def: NodeDef, inputs: list[Input]) -> NodeDef:
        """The node with its new name, inputs, device and colocation."""
        names = self._names
        texts = tuple([item.text if item.exists else self._text(item) for item in inputs])
        device = node_def.device or self._default_device
        if self._around is not None and "_class" not in node_def.attr:
            device = (parse_full_name(device) if device else DeviceSpec()).merge_unset(self._around).to_string()
        changed = msgspec.structs.replace(node_def, name=names.final(node_def.name), input=texts, device=device)
        return map_colocation(changed, names.final) if names.prefix or names.renamed else changed

    def _text(self, item: Input) -> str:
        """The text of an input: with a prefix or new name for imported nodes, and its port."""
        name, index = item.tensor
        new = self._names.renamed.get(name)
        if new is not None:
            return str(TensorId(new, index))
        return f"^{self._names.prefix}{name}" if index == CONTROL else self._names.prefix + item.text


def _checked_input_map(graph: Graph, options: ImportOptions) -> dict[TensorId, TensorId]:
    pairs = [(tensor_id_of(key), value) for key, value in options.input_map.items()]
    mapping = {key: tensor_id_of(value, control=key.index == CONTROL) for key, value in pairs}
    for value in options.input_map.values():
        if isinstance(value, Node | Tensor):
            graph.as_graph_element(value)
    for key, target in sorted(mapping.items()):
        if find_existing(graph, target.node) is None:
            raise InvalidArgumentError(f"node '{target.node}' in input_map does not exist in graph (input_map entry: {key}->{target})")
        if (key.index == CONTROL) != (target.index == CONTROL):
            raise InvalidArgumentError(f"input_map entry {key}->{target} between control edge and non-control edge")
    return dict(sorted(mapping.items()))


def _control_dependency(graph: Graph, item: str | Node | Tensor) -> TensorId:
    name = item if isinstance(item, str) else tensor_id_of(item).node
    if not isinstance(item, str):
        graph.as_graph_element(item)
    if find_existing(graph, name) is None:
        raise InvalidArgumentError(f"node '{name}' in control_dependencies does not exist in graph")
    return TensorId(name, CONTROL)


def find_existing(graph: Graph, name: str) -> Node | None:
    """The node called `name`, the graph's own source and sink included; None if there is none."""
    node = graph.find(name)
    if node is not None:
        return node
    return next((end for end in (graph.source_node, graph.sink_node) if end.name == name), None)
