"""The inspector's content: complete information on one box, as plain text."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Final

import msgspec

from graphcore.attrs import Placeholder, TensorValue
from graphcore.definitions import NodeDef, name_ranges_for_node, summarize_node_def
from graphcore.errors import GraphError
from graphcore.frontends.record import foreign_of
from graphcore.text import debug_string
from graphcore.text.describe_traits import describe_traits
from widgets.inspection import FunctionInfo, Inspection, TensorRow
from widgets.scene.boxes import Box, Frame, Visible, in_order
from widgets.scene.devices import device_words
from widgets.scene.faults import REFUSED, fault_text, is_faulty, refused_nodes
from widgets.scene.function_info import function_infos
from widgets.scene.gradient_info import body_info, gradient_info, mirrored_info, registered_gradient
from widgets.scene.mirror import Mirrored
from widgets.scene.placement_info import placement_of
from widgets.scene.shapes.clashes import clashes_of, source_row
from widgets.scene.shapes.dimensions import Dimensions
from widgets.scene.shapes.why import chains_of, why_of
from widgets.scene.state import SceneState
from widgets.scene.time_lens import time_rows
from widgets.scene.tree import Call, Part, Scope
from widgets.scene.value_lens import detail_of_node, value_rows
from widgets.scene.values import values_of
from widgets.scene.visible import visible_boxes
from widgets.scene.words import attr_text, counted, node_kind, value_text

if TYPE_CHECKING:
    from graphcore.graph import Graph, Node, Tensor

MAX_CONSUMERS: Final = 24
MAX_CONTENTS: Final = 40
MAX_ERRORS: Final = 10
MAX_VALUES: Final = 64


def inspect(graph: Graph, state: SceneState, box_id: str) -> Inspection | None:
    """The inspection of a box, frame, stub or node.

    Args:
        state: the view; links lead to its boxes.
        box_id: an id out of the scene, or a node's name.

    Returns:
        None if nothing has this id.
    """
    visible = visible_boxes(graph, state)
    found = _inspect(graph, visible, box_id, Dimensions(graph, visible))
    return None if found is None else msgspec.structs.replace(found, id=box_id)


def _inspect(graph: Graph, visible: Visible, box_id: str, dimensions: Dimensions) -> Inspection | None:
    if box_id.startswith("stub:"):
        box_id = _behind_stub(visible, box_id)
    if box_id.startswith(REFUSED):
        return _refused(graph, visible, box_id.removeprefix(REFUSED), dimensions)
    for box in visible.boxes:
        if box.id == box_id:
            return _scope(graph, visible, box, dimensions) if box.main is None else _node(graph, visible, box.main, box, dimensions)
    for frame in visible.frames:
        if frame.id == box_id:
            call = frame.part if isinstance(frame.part, Call) else None
            return _scope(graph, visible, frame, dimensions) if call is None else _node(graph, visible, call.node, None, dimensions)
    node = graph.find(box_id)
    return None if node is None else _node(graph, visible, node, None, dimensions)


def _refused(graph: Graph, visible: Visible, name: str, dimensions: Dimensions) -> Inspection | None:
    """The inspection of a node that could not be made."""
    refused = next((each for each in refused_nodes(graph) if each.name == name), None)
    if refused is None:
        return None
    inputs = [
        TensorRow(
            name="", tensor=tensor.name, dtype=tensor.dtype.text, shape=dimensions.shape_text(tensor), node=visible.place_of(tensor.node)
        )
        for tensor in refused.inputs
    ]
    return Inspection(id=name, name=name, op="", kind="not made", error=refused.text, inputs=inputs)


def _behind_stub(visible: Visible, stub_id: str) -> str:
    """The box behind a stub `stub:<box>:<consumer>`."""
    fitting = [box.id for box in visible.boxes if stub_id.startswith(f"stub:{box.id}:")]
    # Ids of boxes in open calls begin with the id of the call.
    return max(fitting, key=len, default=stub_id)


def _node(graph: Graph, visible: Visible, node: Node, box: Box | None, dimensions: Dimensions) -> Inspection:
    in_names, out_names = names_of_slots(node)
    definition = node.op_def
    helpers = [] if box is None else [other for other in box.nodes if other is not node]
    call = box.part if box is not None and isinstance(box.part, Call) else visible.calls.get(node.name)
    return Inspection(
        id=node.name if box is None else box.id,
        name=node.name,
        op=node.op,
        kind=node_kind(node),
        node_def=node_def_text(node.node_def),
        summary=summarize_node_def(node.node_def),
        doc="\n\n".join(filter(None, (definition.summary, definition.description))),
        traits=describe_traits(node.registration),
        signature=debug_string(definition),
        device=device_words(node),
        placement=placement_of(node, visible),
        attrs=[*[(name, attr_text(value)) for name, value in sorted(node.node_def.attr.items())], *foreign_details(node)],
        inputs=[
            *_argument_rows(node, visible, dimensions),
            *[_input_row(node, slot, tensor, in_names, visible, dimensions) for slot, tensor in enumerate(node.inputs)],
        ],
        outputs=_output_rows(node, out_names, visible, dimensions),
        control_inputs=[_control_row(other, visible) for other in node.control_inputs],
        control_outputs=[_control_row(other, visible) for other, slot in islice(node.consumers(), 1000) if slot < 0][:MAX_CONSUMERS],
        source=source_row(node.source),
        error="\n".join(filter(None, (fault_text(node), call.failure if call is not None else ""))),
        clashes=clashes_of(node),
        chains=chains_of(node, visible),
        why=why_of(node, visible, dimensions),
        gradient=gradient_info(graph, node, visible),
        registered_gradient=registered_gradient(node),
        functions=[] if call is None else function_infos(call),
        contents=_contents(helpers),
        times=time_rows(graph, [node] if box is None else box.nodes),
        recorded=value_rows(graph, node),
        values=values_of(node) or detail_of_node(graph, node),
    )


def _scope(graph: Graph, visible: Visible, place: Box | Frame, dimensions: Dimensions) -> Inspection:
    nodes = place.nodes if isinstance(place, Box) else in_order(place.part)
    mirrored = place.part if isinstance(place.part, Mirrored) else None
    path = place.part.key if isinstance(place, Frame) else place.id.removesuffix("/")
    info = body_info(graph, path, nodes, visible) if mirrored is None else mirrored_info(graph, mirrored, visible)
    called = _called(visible, place.part)
    wrong = [node for node in nodes if is_faulty(node)]
    errors = [f"{node.name}: {fault_text(node)}" for node in wrong[:MAX_ERRORS]]
    if len(wrong) > MAX_ERRORS:
        errors.append(f"and {len(wrong) - MAX_ERRORS} more")
    return Inspection(
        id=place.id,
        name=path if mirrored is None else mirrored.label,
        op="",
        kind="inlined gradient function" if info is not None else "function" if called else "scope",
        summary=counted(len(nodes), "node"),
        error="\n".join(errors),
        clashes=clashes_of(wrong[0]) if len(wrong) == 1 else [],
        source=source_row(nodes[0].source) if nodes and len({_cell(node) for node in nodes}) == 1 else None,
        gradient=info,
        functions=called,
        inputs=_boundary(nodes, visible, place.id, dimensions),
        contents=_contents(nodes),
        times=time_rows(graph, nodes),
    )


def _called(visible: Visible, part: Part) -> list[FunctionInfo]:
    """The function of a scope, if it is one of several bodies of an open call."""
    callee = part.callee if isinstance(part, Scope) else None
    if callee is None or not isinstance(part, Scope):
        return []
    return [info for info in function_infos(visible.calls[part.path.rpartition(":")[0]]) if info.label == callee.label]


def _cell(node: Node) -> str:
    row = source_row(node.source)
    return "" if row is None else row.cell or row.file


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


def foreign_details(node: Node) -> list[tuple[str, str]]:
    """The facts about a node of another framework that are no attrs."""
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
    for names, found in zip(named, ranges, strict=True):
        for name, (start, stop) in found.items():
            names.extend([name] if stop - start == 1 else [f"{name}[{place}]" for place in range(stop - start)])
    return named


def _argument_rows(node: Node, visible: Visible, dimensions: Dimensions) -> list[TensorRow]:
    """The tensors given to an argument of an open call."""
    tensor = visible.given.get(node.name)
    if tensor is None:
        return []
    argument_sources = visible.argument_sources(tensor)
    place = argument_sources[0][0].id if len(argument_sources) == 1 else ""
    return [TensorRow(name="given", tensor=tensor.name, dtype=tensor.dtype.text, shape=dimensions.shape_text(tensor), node=place)]


def _input_row(node: Node, slot: int, tensor: Tensor, names: list[str], visible: Visible, dimensions: Dimensions) -> TensorRow:
    value = tensor.node.node_def.attr.get("value") if tensor.node.op == "Const" else None
    return TensorRow(
        name=names[slot] if slot < len(names) else "",
        tensor=tensor.name,
        dtype=tensor.dtype.text,
        shape=dimensions.shape_text(tensor),
        node=visible.place_of(tensor.node),
        error=node.input_errors.get(slot, ""),
        note=f"= {value_text(value)}" if isinstance(value, TensorValue) and value.array.size <= 1 else "",
    )


def _output_rows(node: Node, names: list[str], visible: Visible, dimensions: Dimensions) -> list[TensorRow]:
    """One row for each consumer of each output; an output without consumers has one row."""
    consumers: dict[int, list[tuple[Node, int]]] = {}
    for consumer, slot in node.consumers():
        if slot >= 0:
            consumers.setdefault(consumer.inputs[slot].index, []).append((consumer, slot))
    rows = []
    for index, tensor in enumerate(node.outputs):
        dtype, shape = tensor.dtype.text, dimensions.shape_text(tensor)
        name = names[index] if index < len(names) else ""
        users = consumers.get(index, [])
        if not users:
            rows.append(TensorRow(name=name, tensor="", dtype=dtype, shape=shape, note="not used"))
        for consumer, slot in users[:MAX_CONSUMERS]:
            place = visible.place_of(consumer)
            rows.append(TensorRow(name=name, tensor=consumer.name, dtype=dtype, shape=shape, node=place, note=f"input {slot}"))
        if len(users) > MAX_CONSUMERS:
            rows.append(
                TensorRow(name=name, tensor="", dtype=dtype, shape=shape, note=f"and {len(users) - MAX_CONSUMERS:,} more consumers")
            )
    return rows


def _control_row(node: Node, visible: Visible) -> TensorRow:
    return TensorRow(name="", tensor=f"^{node.name}", dtype="", shape="", node=visible.place_of(node))


def _boundary(nodes: list[Node], visible: Visible, place_id: str, dimensions: Dimensions) -> list[TensorRow]:
    """The tensors that enter a scope."""
    inside = {node.name for node in nodes}
    entering: dict[str, Tensor] = {}
    for node in nodes:
        for tensor in node.inputs:
            if tensor.node.name not in inside:
                entering.setdefault(tensor.name, tensor)
    rows = []
    for name, tensor in islice(entering.items(), MAX_CONSUMERS):
        place = visible.place_of(tensor.node)
        node_id = "" if place == place_id else place
        rows.append(TensorRow(name="", tensor=name, dtype=tensor.dtype.text, shape=dimensions.shape_text(tensor), node=node_id))
    return rows


def _contents(nodes: list[Node]) -> list[tuple[str, int]]:
    """The number of nodes by op."""
    return Counter(node.op for node in nodes).most_common(MAX_CONTENTS)
