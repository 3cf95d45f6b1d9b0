"""Explanations that need the graph: of clashing numbers, dimensions, gradients and ops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphcore.text import debug_string
from graphcore.text.describe_traits import describe_traits
from widgets.inspection import GradientInfo, Why
from widgets.render.page_data.types import GradientText, OpText, RefusedRecord
from widgets.scene.faults import fault_of, refused_nodes
from widgets.scene.gradient_info import recorded_gradient, registered_gradient
from widgets.scene.node_facts import names_of_slots
from widgets.scene.outside import OutsideOrigins
from widgets.scene.shapes.clash_lines import chain_steps
from widgets.scene.shapes.why import why_of
from widgets.scene.words import op_label

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from graphcore.graph import GradientRecord, Graph, Node
    from widgets.render.page_data.steps import Steps


def refused_records(graph: Graph, number: Mapping[str, int]) -> list[RefusedRecord]:
    """The nodes that could not be made. `number` gives the place of each node."""
    return [
        RefusedRecord(name=node.name, text=node.text, inputs=[(number[tensor.node.name], tensor.index) for tensor in node.inputs])
        for node in refused_nodes(graph)
    ]


def chain_record(node: Node, outside: OutsideOrigins) -> list[tuple[list[tuple[str, str]], list[tuple[str, str]]]]:
    """The chains of a node's error: pairs of producer and consumer, and notes at nodes."""
    fault = fault_of(node)
    chains = () if fault is None else fault.chains
    records = []
    for chain in chains:
        steps: list[tuple[str, str]] = []
        notes: list[tuple[str, str]] = []
        for producer, consumer, note in chain_steps(chain, node.name, outside):
            steps.append((producer, consumer))
            if note:
                notes.append(note)
        records.append((steps, notes))
    return records


def why_rows(nodes: Sequence[Node], outside: OutsideOrigins) -> Steps[dict[int, list[Why]]]:
    """Explain the dimensions of a graph's nodes, without places, one node a step.

    The keys are `output:dimension`.
    """
    rows: dict[int, list[Why]] = {}
    for place, node in enumerate(nodes):
        whys = why_of(node, outside, outside.steps.of(node.graph))
        if whys:
            rows[place] = whys
        yield
    return rows


class Gradients:
    """The texts of the registered gradients of ops."""

    def __init__(self) -> None:
        self._of_use: dict[object, tuple[GradientRecord, GradientText]] = {}

    def of_node(self, node: Node) -> GradientText | None:
        """The gradient of a node's op, None if there is none."""
        info = None if node.is_opaque else registered_gradient(node)
        return None if info is None else _text_of(info)

    def of_record(self, graph: Graph, record: GradientRecord) -> GradientText | None:
        """The gradient that a node was made by, None for seeds and sums."""
        if record.function is None:
            return None
        forward = graph.find(record.forward)
        op = "" if forward is None else forward.op
        key = (id(record.function), id(record.attrs), op)
        if key not in self._of_use:
            self._of_use[key] = record, _text_of(recorded_gradient(record, op))  # an id is unique only while its object lives
        return self._of_use[key][1]


def _text_of(info: GradientInfo) -> GradientText:
    return GradientText(function=info.function, definition=info.definition, instantiated=info.instantiated)


def op_text(node: Node) -> OpText:
    """The documentation and the traits of a node's op."""
    definition = node.op_def
    doc = "\n\n".join(filter(None, (definition.summary, definition.description)))
    traits = node.registration.traits
    return OpText(
        doc=doc,
        traits=describe_traits(node.registration),
        signature=debug_string(definition),
        layer=traits.layer,
        memory=traits.memory,
        elementwise=traits.elementwise,
        needs_only_shapes=traits.needs_only_shapes,
        label=op_label(node) if node.is_opaque else "",
    )


class SlotNames:
    """The names of the inputs and outputs of nodes."""

    def __init__(self) -> None:
        self._of_op: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}

    def of(self, node: Node) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names of a node's inputs and of its outputs."""
        rows = self._of_op.get(node.op)
        if rows is not None:
            return rows
        inputs, outputs = names_of_slots(node)
        names = tuple(inputs), tuple(outputs)
        definition = node.op_def
        if not node.is_opaque and not any(arg.number_attr or arg.type_list_attr for arg in (*definition.input_arg, *definition.output_arg)):
            self._of_op[node.op] = names
        return names
