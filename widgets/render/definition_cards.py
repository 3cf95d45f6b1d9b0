"""Diagrams of definitions: nodes, ops, bodies, device sets, contexts, frames, ends of graphs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from graphcore.attrs import AttrValue, TensorValue
from graphcore.definitions import NodeDef, OpDef
from graphcore.definitions.types import ArgDef, AttrDef
from graphcore.device_spec import DeviceSpec
from graphcore.errors import GraphError
from graphcore.functions import FunctionCallFrame, InstantiationResult
from graphcore.placement.device import Device, DeviceSet, device_type_priority
from graphcore.registry import op_registry
from graphcore.text import attr_def_text, debug_string
from widgets.language import word
from widgets.render.cards import HEAD, Card, Diagram, Kind, Link, Row
from widgets.scene.words import attr_text, byte_count, counted, value_text

if TYPE_CHECKING:
    from graphcore.graph import Graph, Node, NodeDefBuilder
    from graphcore.inference import DimensionHandle, InferenceContext, ShapeHandle

MOST_CARDS: Final = 60
"""The text says it where there are more nodes than this."""
_FLAGS: Final = ("is_stateful", "is_commutative", "is_aggregate", "allows_uninitialized_input", "is_distributed_communication")
_LINE: Final = 44
"""The letters of a line of an error."""
_SELF: Final = "self"
_OP: Final = "op"


def node_def_diagram(node: NodeDef) -> Diagram:
    """A NodeDef between the nodes that its inputs name and the OpDef that its op names."""
    card = _node_card(node, _SELF)
    sources, links = _sources(node)
    op_def = op_registry.look_up_op_def(node.op) if node.op in op_registry else None
    columns = [sources, [card], [] if op_def is None else [_op_card(op_def, _OP)]]
    if op_def is not None:
        links.append(Link((_SELF, 0), (_OP, HEAD), "refers"))
        declared = {attr.name: number for number, attr in enumerate(op_def.attr, len(op_def.input_arg))}
        first = 1 + len(node.input) + bool(node.device)
        links += [
            Link((_SELF, first + number), (_OP, declared[name]), "refers") for number, name in enumerate(node.attr) if name in declared
        ]
    return Diagram(f"NodeDef {node.name}: {node.op}", columns, links, debug_string(node))


def builder_diagram(builder: NodeDefBuilder) -> Diagram:
    """A NodeDefBuilder between two calls: the NodeDef so far, and what is missing."""
    node = builder.node_def
    total = len(builder.op_def.input_arg) if node.op else 0
    rows = [
        Row("inputs_specified", f"{builder.inputs_specified} of {total}"),
        Row("control_inputs", ", ".join(builder.control_inputs) or word("none")),
        *[Row("" if place else word("error"), line, "error") for error in builder.errors for place, line in enumerate(wrap(error, _LINE))],
    ]
    sources, links = _sources(node)
    card = Card("builder", "NodeDefBuilder", "builder", tuple(rows))
    text = "\n".join([debug_string(node), f"inputs_specified: {rows[0].value}", f"control_inputs: {rows[1].value}", *builder.errors])
    columns = [sources, [_node_card(node, _SELF)], [card]]
    return Diagram(f"NodeDefBuilder {builder.name}", columns, [*links, Link((_SELF, HEAD), ("builder", HEAD), "refers")], text)


def op_def_diagram(op_def: OpDef) -> Diagram:
    """An OpDef: its inputs, attrs and outputs.

    Lines lead from each open type or length to the attr that decides it.
    """
    name, attrs = op_def.name, {attr.name: number for number, attr in enumerate(op_def.attr)}
    flags = [Row(flag, "true", "faint") for flag in _FLAGS if getattr(op_def, flag)]
    middle = Card("attr", name, "op", (*[_attr_row(attr) for attr in op_def.attr], *flags), "OpDef")
    inputs, outputs = _args_card("input_arg", op_def.input_arg, "argument"), _args_card("output_arg", op_def.output_arg, "return")
    links = [Link(("input_arg", row), ("attr", attrs[attr])) for row, attr in _open_parts(op_def.input_arg) if attr in attrs]
    links += [Link(("attr", attrs[attr]), ("output_arg", row)) for row, attr in _open_parts(op_def.output_arg) if attr in attrs]
    return Diagram(f"OpDef {name}", [inputs, [middle], outputs], links, debug_string(op_def))


def instantiation_diagram(result: InstantiationResult) -> Diagram:
    """The NodeDefs of an instantiated function; text alone for many.

    Lines lead from each producer to the input that names it.
    """
    nodes = result.nodes
    title = f"InstantiationResult: {counted(len(nodes), 'NodeDef')}"
    if len(nodes) > MOST_CARDS:
        return Diagram(title, [], [], debug_string(nodes))
    by_name = {node.name: node for node in nodes}
    ranks: dict[str, int] = {}
    for node in nodes:
        ranks[node.name] = 1 + max([ranks.get(_producer(text), -1) for text in node.input], default=-1)
    columns: list[list[Card]] = [[] for _ in range(1 + max(ranks.values(), default=0))]
    for node in nodes:
        columns[ranks[node.name]].append(_node_card(node, node.name))
    links = [
        Link((_producer(text), HEAD), (node.name, 1 + place), "control" if text.startswith("^") else "data")
        for node in nodes
        for place, text in enumerate(node.input)
        if _producer(text) in by_name
    ]
    return Diagram(title, columns, links, debug_string(nodes))


def device_set_diagram(devices: DeviceSet) -> Diagram:
    """The devices of a set, a card for each task; types of higher priority are preferred by the placer."""
    tasks: dict[str, list[Device]] = {}
    for device in devices:
        spec = device.spec
        tasks.setdefault(f"/job:{spec.job}/replica:{spec.replica}/task:{spec.task}", []).append(device)
    cards = [
        Card(task, task, "device", tuple(map(_device_row, members)), counted(len(members), "device")) for task, members in tasks.items()
    ]
    columns = [cards[place::3] for place in range(min(3, len(cards)))]
    return Diagram(f"DeviceSet: {counted(len(devices), 'device')}", columns, [], "\n".join(map(str, devices)) or "no devices")


def context_diagram(context: InferenceContext) -> Diagram:
    """An inference context: the shapes that came in, the op with its attrs, the shapes that it set.

    Unknown sizes that are one and the same have a letter: `?a`.
    """
    shapes = [*context.inputs, *context.outputs]
    counts = Counter([id(dim) for shape in shapes for dim in _unknown(shape)])
    shared = [key for key, count in counts.items() if count > 1]
    letters = {key: chr(ord("a") + number % 26) for number, key in enumerate(shared)}
    inputs = tuple([Row(word("input {number}", number=slot), _shape_text(shape, letters)) for slot, shape in enumerate(context.inputs)])
    outputs = tuple([Row(word("output {number}", number=slot), _shape_text(shape, letters)) for slot, shape in enumerate(context.outputs)])
    asked = sorted(context.requested_input_tensors | context.requested_input_tensors_as_partial_shapes)
    rows = [*_attr_rows(context.attrs), *[Row("value used", f"of input {slot}", "faint") for slot in asked]]
    op = Card(_OP, context.op, "op", tuple(rows), context.node_name)
    columns = [
        [Card("inputs", word("inputs"), "argument", inputs)] if inputs else [],
        [op],
        [Card("outputs", word("outputs"), "return", outputs)] if outputs else [],
    ]
    links = [Link(("inputs", slot), (_OP, HEAD)) for slot in range(len(inputs))]
    links += [Link((_OP, HEAD), ("outputs", slot)) for slot in range(len(outputs))]
    lines = [f"{context.op} {context.node_name}", *[f"  {row.label}: {row.value}" for row in (*inputs, *rows, *outputs)]]
    return Diagram(f"InferenceContext of {context.node_name}", columns, links, "\n".join(lines))


def frame_diagram(frame: FunctionCallFrame) -> Diagram:
    """A call frame: the arguments that were set, and the returns that are there."""
    args = [Row(f"arg {index}", f"{dtype.text}  {_held(frame.get_arg, index)}") for index, dtype in enumerate(frame.arg_types)]
    rets = [
        Row(f"ret {index}", f"{dtype.text}  {_held(lambda place: frame.get_retvals()[place], index)}")
        for index, dtype in enumerate(frame.ret_types)
    ]
    card = Card("frame", "FunctionCallFrame", "function", (*args, *rets))
    return Diagram("FunctionCallFrame", [[card]], [], "\n".join([f"{row.label}: {row.value}" for row in card.rows]))


def end_diagram(end: Node) -> Diagram:
    """`_SOURCE` or `_SINK` of a graph, with the nodes that begin right after it or end right before it."""
    graph = end.graph
    is_source = end is graph.source_node
    nodes = first_nodes(graph) if is_source else last_nodes(graph)
    cards = [Card(f"node {node.name}", node.name, "node", note=node.op) for node in nodes[:MOST_CARDS]]
    rows = (Row("id", str(end.id)), Row("nodes", f"{len(nodes):,}"))
    own = Card(_SELF, end.name, "end", rows, end.op)
    columns = [[own], cards] if is_source else [cards, [own]]
    ends = [((_SELF, HEAD), (card.name, HEAD)) for card in cards]
    links = [Link(source, target, "control") if is_source else Link(target, source, "control") for source, target in ends]
    verb = "begins" if is_source else "ends"
    return Diagram(f"{end.name}: the graph {verb} here", columns, links, "\n".join([end.name, *[f"  {node.name}" for node in nodes]]))


def first_nodes(graph: Graph) -> list[Node]:
    """The nodes that wait for no other one: a run can begin with them."""
    return [node for node in graph.nodes if not node.inputs and not node.control_inputs]


def last_nodes(graph: Graph) -> list[Node]:
    """The nodes for which no other one waits."""
    waited = {tensor.node for node in graph.nodes for tensor in node.inputs}
    waited.update([control for node in graph.nodes for control in node.control_inputs])
    return [node for node in graph.nodes if node not in waited]


def _held(get: Callable[[int], Any], index: int) -> str:
    """The value that a frame has for an argument or return."""
    try:
        return value_text(TensorValue(np.asarray(get(index))))
    except GraphError:
        return word("not set")


def _node_card(node: NodeDef, name: str) -> Card:
    inputs = [Row("input", text, "control" if text.startswith("^") else "") for text in node.input]
    device = [Row("device", node.device)] if node.device else []
    rows = (Row("op", node.op), *inputs, *device, *_attr_rows(node.attr))
    kind: Kind = "argument" if node.op == "_Arg" else "return" if node.op == "_Retval" else "node"
    return Card(name, node.name, kind, rows, "NodeDef")


def _attr_rows(attrs: Mapping[str, AttrValue]) -> list[Row]:
    return [Row(f"attr {name}", attr_text(value)) for name, value in attrs.items()]


def _sources(node: NodeDef) -> tuple[list[Card], list[Link]]:
    """A card for each node that the inputs name, with its outputs that are used, and the lines."""
    used: dict[str, list[str]] = {}
    for text in node.input:
        rows = used.setdefault(f"node {_producer(text)}", [])
        port = "^" if text.startswith("^") else text.partition(":")[2] or "0"
        if port not in rows:
            rows.append(port)
    cards = [
        Card(
            name,
            name.removeprefix("node "),
            "node",
            tuple([Row(word("after it"), tone="control") if port == "^" else Row(word("output {number}", number=port)) for port in ports]),
        )
        for name, ports in used.items()
    ]
    links = []
    for place, text in enumerate(node.input):
        name, port = f"node {_producer(text)}", "^" if text.startswith("^") else text.partition(":")[2] or "0"
        links.append(Link((name, used[name].index(port)), (_SELF, 1 + place), "control" if port == "^" else "data"))
    return cards, links


def _producer(text: str) -> str:
    return text.removeprefix("^").partition(":")[0]


def _op_card(op_def: OpDef, name: str) -> Card:
    rows = (
        *[Row("input_arg", _arg_text(arg)) for arg in op_def.input_arg],
        *[_attr_row(attr) for attr in op_def.attr],
        *[Row("output_arg", _arg_text(arg)) for arg in op_def.output_arg],
    )
    return Card(name, op_def.name, "op", rows, "OpDef")


def _args_card(name: str, args: Iterable[ArgDef], kind: Kind) -> list[Card]:
    rows = tuple([Row(arg.name, _arg_text(arg).partition(": ")[2]) for arg in args])
    return [Card(name, name, kind, rows)] if rows else []


def _arg_text(arg: ArgDef) -> str:
    kind = arg.type.text if arg.type is not None else arg.type_attr or arg.type_list_attr
    kind = f"{arg.number_attr} * {kind}" if arg.number_attr else kind
    return f"{arg.name}: {f'Ref({kind})' if arg.is_ref else kind}"


def _attr_row(attr: AttrDef) -> Row:
    return Row(f"attr {attr.name}", attr_def_text(attr).partition(":")[2])


def _open_parts(args: Sequence[ArgDef]) -> list[tuple[int, str]]:
    """The row of an argument and an attr that decides its type or length."""
    return [(row, attr) for row, arg in enumerate(args) for attr in (arg.type_attr, arg.number_attr, arg.type_list_attr) if attr]


def _device_row(device: Device) -> Row:
    spec: DeviceSpec = device.spec
    facts = [f"priority {device_type_priority(device.device_type)}"]
    facts += [byte_count(device.memory_limit_bytes)] if device.memory_limit_bytes else []
    facts += ["simulated"] if device.simulated else []
    return Row(f"/device:{spec.type}:{spec.id}", ", ".join(facts))


def _unknown(shape: ShapeHandle | None) -> list[DimensionHandle]:
    return [] if shape is None or shape.dims is None else [dim for dim in shape.dims if dim.value < 0]


def _shape_text(shape: ShapeHandle | None, letters: Mapping[int, str]) -> str:
    if shape is None:
        return word("not set")
    if shape.dims is None:
        return "? (unknown rank)"
    return "[" + ", ".join([f"?{letters.get(id(dim), '')}" if dim.value < 0 else str(dim.value) for dim in shape.dims]) + "]"
