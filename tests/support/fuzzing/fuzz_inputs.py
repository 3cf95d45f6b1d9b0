"""Fuzz inputs: small graphs in each file form, pieces of the data files, and damage."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec
from google.protobuf import json_format

import graphcore as gc
from graphcore.attrs import AttrValue, Func, Placeholder
from graphcore.definitions import AttrDef, FunctionDefLibrary, GraphDef, NodeDef, OpDef, VersionDef, in_out_types_for_node
from graphcore.definitions.wire import (
    graph_def_from_bytes,
    graph_def_to_bytes,
    graph_def_to_json,
    graph_def_to_text,
    op_list_to_bytes,
    schema,
)
from graphcore.errors import GraphError
from graphcore.text import attr_value_text

DATA: Final = Path(__file__).parents[2] / "data"
SMALL_FILE: Final = 30_000
PIECE: Final = 5
TRIES: Final = 8
Input = tuple[str, bytes]
"""A reader's name and what it is to read."""

VALUES: Final[dict[str, tuple[AttrValue, ...]]] = {
    "int": (0, 1, -1, 7, 2**63 - 1, -(2**63)),
    "float": (0.5, -0.0, 1e38, float("inf"), float("nan")),
    "bool": (True, False),
    "string": (b"", b"x", b"SAME", b"NHWC", b"\xff\x00\n\"'\\", b"loc:@n0"),
    "type": (gc.float32, gc.int32, gc.string, gc.bfloat16, gc.float32.ref),
    "shape": (gc.Shape([]), gc.Shape([2, 3]), gc.Shape([None]), gc.Shape(None), gc.Shape([0])),
    "tensor": (
        gc.TensorValue(1.5, gc.float32), gc.TensorValue([2, 3], gc.int32), gc.TensorValue([-1], gc.int64), gc.TensorValue([b"a", b"\xff"], gc.string),
        gc.TensorValue([[True]], gc.bool_), gc.TensorValue([1, 2, 3], gc.float16), gc.TensorValue([1j], gc.complex64),
    ),
    "func": (Func("f"), Func("g", {"T": gc.float32, "h": Func("h", {"x": Placeholder("T")})})),
}  # fmt: skip
MORE: Final[tuple[AttrValue, ...]] = ((b"loc:@n0",), (gc.Shape([2]),), 1)
# Values at the limits of the formats: tags, lengths, varints, and the words of the texts.
BYTES: Final = (
    b"\x00", b"\x0a", b"\x12", b"\x1a", b"\x7f", b"\x80", b"\xff", b"\xff\xff\xff\xff\x0f", b"\x80\x80\x80\x80\x10", b"\xff" * 9 + b"\x01",
    b"\x80" * 9 + b"\x01", b"\x08\xff\xff\xff\xff\x07", b"\x0a\x00", b"\x22\x7f", b"\x0b", b"\x0c",
)  # fmt: skip
WORDS: Final = (
    "{", "}", "[", "]", "(", ")", "<", ">", ":", ",", "=", "->", "$", "^", "@", '"', "'", "\\", "#", "\n", "\t", " ", "*", "-", "?", ".", "/", "null", "true",
    "node {", "attr {", "key: ", "value {", "tensor {", "list {", "func {", "placeholder: ", "library {", "unknown_rank: true", '"node": [', '"attr": {', "NaN", "1e999", "-0",
    "9223372036854775807", "-9223372036854775809", "99999999999999999999999", "0x7fffffff", "1.5", "DT_FLOAT", "DT_INVALID", "float", "int32_ref", "list(", "type", "Ref(", ">= ",
    "n0", "n0:0", "n1:1", "^n0", "x:0", "return ", "Tensor<type: int32 shape: [", "values: ", "\u00e9", "\u2028", "\ud7ff", "\U0001f642", "__proto__", "_class", "loc:@", "a" * 300,
)  # fmt: skip
SPECS: Final = (
    "AT: {float, int32} = DT_FLOAT", "An: int >= 2 = 3", "As: string = 'x'", "Al: list(type) >= 0 = []", "Ash: shape = {dim{size:3}}", "At: tensor = { dtype: DT_INT32 int_val: 5 }",
    "Af: func = {name:'f'}", "Ab: bool", "Ix: T", "Ixs: n * T", "Ir: Ref(T)", "Oy: l", "Oz: n * float", "DSummary.\n\nMore.\nx: Input.\nT: Type.",
)  # fmt: skip


def value_for(attr: AttrDef, rng: random.Random) -> AttrValue:
    """A value for an attr, mostly an allowed one."""
    if attr.default_value is not None and rng.random() < 0.5:
        return attr.default_value
    if attr.allowed_values and rng.random() < 0.9 and not attr.type.startswith("list("):
        allowed: AttrValue = rng.choice(attr.allowed_values)
        return allowed
    if attr.type.startswith("list("):
        return tuple(rng.choices(VALUES[attr.type[5:-1]], k=rng.randrange(4)))
    if attr.type == "int" and rng.random() < 0.8:
        return rng.randrange(1, 4)
    return rng.choice(VALUES[attr.type])


def random_node(name: str, op_def: OpDef, produced: list[tuple[str, Any]], rng: random.Random) -> tuple[NodeDef, list[Any]]:
    """A node and its output types; inputs come from earlier outputs, of the right type if possible."""
    attrs = {attr.name: value_for(attr, rng) for attr in op_def.attr if attr.default_value is None or rng.random() < 0.3}
    if "T" in attrs and produced and rng.random() < 0.7:
        attrs["T"] = rng.choice(produced)[1]
    if rng.random() < 0.05:
        attrs[rng.choice(["_class", "_output_shapes", "extra"])] = rng.choice(MORE)
    node = NodeDef(name, op_def.name, (), rng.choice(["", "", "", "/cpu:0", "/job:a/task:1/device:GPU:0", "bad device"]), attrs)
    try:
        wanted, given = in_out_types_for_node(node, op_def)
    except GraphError:
        wanted, given = (gc.float32,), ()
    inputs = []
    for dtype in wanted[:8]:
        fitting = [tensor for tensor, other in produced if other.base is dtype.base]
        inputs.append(rng.choice(fitting) if fitting and rng.random() < 0.95 else rng.choice(["n0", "n1:1", "n9", "missing", name]))
    if produced and rng.random() < 0.15:
        inputs.append("^" + rng.choice(produced)[0].partition(":")[0])
    return msgspec.structs.replace(node, input=tuple(inputs)), list(given[:8])


def random_graph(ops: list[OpDef], rng: random.Random) -> GraphDef:
    """A graph of a few nodes: constants and placeholders first, then ops on them. Most are valid."""
    produced: list[tuple[str, Any]] = []
    nodes: list[NodeDef] = []
    for _ in range(rng.randrange(1, 4)):
        tensor = rng.choice(VALUES["tensor"])
        assert isinstance(tensor, gc.TensorValue)
        name = f"n{len(nodes)}"
        nodes.append(NodeDef(name, "Const", (), "", {"dtype": tensor.dtype, "value": tensor}))
        produced.append((name, tensor.dtype))
    for _ in range(rng.randrange(1, 5)):
        name = rng.choice(["n", "scope/n", "n", "n"]) + str(len(nodes))
        node, given = random_node(name, rng.choice(ops), produced, rng)
        nodes.append(node)
        produced += [(name if i == 0 else f"{name}:{i}", dtype) for i, dtype in enumerate(given)]
    return GraphDef(node=tuple(nodes), versions=VersionDef(producer=rng.choice([0, 21, 1882, 10_000])))


def right_graph(ops: list[OpDef], rng: random.Random) -> GraphDef:
    """A valid graph, found by trial."""
    graph = gc.Graph()
    produced: list[tuple[str, Any]] = []
    for count in range(rng.randrange(1, 4)):
        name = f"n{count}"
        if rng.random() < 0.5:
            tensor = rng.choice(VALUES["tensor"])
            assert isinstance(tensor, gc.TensorValue)
            node = NodeDef(name, "Const", (), "", {"dtype": tensor.dtype, "value": tensor})
        else:
            shape = rng.choice([*VALUES["shape"], gc.Shape([3]), gc.Shape([2, 2]), gc.Shape([1, 4, 4, 3])])
            node = NodeDef(name, "Placeholder", (), "", {"dtype": rng.choice([gc.float32, gc.float32, gc.int32]), "shape": shape})
        produced.append((name, graph.add_node(node).output_types[0]))
    for _ in range(TRIES):
        name = f"n{len(graph)}"
        node, given = random_node(name, rng.choice(ops), produced, rng)
        try:
            graph.add_node(node)
        except GraphError:
            continue
        produced += [(name if i == 0 else f"{name}:{i}", dtype) for i, dtype in enumerate(given)]
    return GraphDef(node=tuple([node.node_def for node in graph.nodes]), versions=VersionDef(producer=2474))


def graph_inputs(graph: GraphDef) -> list[Input]:
    """A graph in each readable form."""
    forms: list[Input] = [
        ("graph", graph_def_to_bytes(graph)),
        ("graph", graph_def_to_text(graph).encode()),
        ("graph", graph_def_to_json(graph).encode()),
        ("nodes", gc.debug_string(graph.node).encode()),
    ]
    return forms + [("function", gc.debug_string(function).encode()) for function in graph.library.function]


def saved_models(graph: GraphDef) -> list[Input]:
    """A graph as the only one of a SavedModel and as a MetaGraphDef, each in binary and as text."""
    model = schema.SavedModel(saved_model_schema_version=1)
    meta_graph = model.meta_graphs.add()
    meta_graph.graph_def.ParseFromString(graph_def_to_bytes(graph))
    meta_graph.meta_info_def.tags.append("serve")
    signature = meta_graph.signature_def["serving_default"]
    signature.inputs["x"].name = "n0:0"
    signature.inputs["x"].dtype = 1
    signature.outputs["y"].tensor_shape.dim.add(size=-1)
    forms = [form for message in (model, meta_graph) for form in (message.SerializeToString(), str(message).encode())]
    return [("saved model", form) for form in forms]


def corpus(rng: random.Random) -> list[Input]:
    """The undamaged inputs."""
    ops = [entry.op_def for entry in gc.op_registry]
    whole = [graph_def_from_bytes(path.read_bytes()) for path in sorted(DATA.glob("*.pb")) if path.stat().st_size < SMALL_FILE]
    pieces = [
        GraphDef(node=graph.node[at : at + PIECE], versions=graph.versions)
        for graph in whole
        for at in rng.sample(range(len(graph.node)), min(8, len(graph.node)))
    ]
    pieces += [GraphDef(library=FunctionDefLibrary(function=(function,))) for graph in whole for function in graph.library.function]
    graphs = [random_graph(ops, rng) for _ in range(100)] + [graph for graph in pieces if len(graph_def_to_bytes(graph)) < 8_000]
    inputs = [form for graph in graphs for form in graph_inputs(graph)]
    inputs += [form for graph in graphs[:20] for form in saved_models(graph)]
    for op_def in rng.sample(ops, 40):
        op_list = op_list_to_bytes([op_def])
        message = schema.OpList.FromString(op_list)
        inputs += [("signature", gc.debug_string(op_def).encode()), ("ops", op_list)]
        inputs += [("ops", str(message).encode()), ("ops", json_format.MessageToJson(message, descriptor_pool=schema.POOL).encode())]
        inputs.append(("specs", "\0".join(rng.sample(SPECS, 5)).encode()))
    inputs += [("value", attr_value_text(value).encode()) for values in VALUES.values() for value in values]
    inputs += [("value", attr_value_text(values).encode()) for values in VALUES.values()]
    return [*inputs, ("graph", b""), ("graph", b"{}"), ("saved model", b"")]


def _flip(data: bytearray, at: int, rng: random.Random, _: bytes) -> None:
    data[at] ^= 1 << rng.randrange(8)


def _put(data: bytearray, at: int, rng: random.Random, _: bytes) -> None:
    data[at : at + rng.randrange(3)] = rng.choice(BYTES)


def _word(data: bytearray, at: int, rng: random.Random, _: bytes) -> None:
    data[at : at + rng.choice([0, 0, 1, 5])] = rng.choice(WORDS).encode()


def _cut(data: bytearray, at: int, _: random.Random, __: bytes) -> None:
    del data[at:]


def _drop(data: bytearray, at: int, rng: random.Random, _: bytes) -> None:
    del data[at : at + rng.choice([1, 2, 8, 40])]


def _repeat(data: bytearray, at: int, rng: random.Random, _: bytes) -> None:
    data[at:at] = data[at : at + rng.choice([1, 4, 30])] * rng.choice([1, 2, 100])


def _move(data: bytearray, at: int, rng: random.Random, _: bytes) -> None:
    there = rng.randrange(len(data))
    data[at:at] = data[there : there + rng.choice([4, 16, 64])]


def _splice(data: bytearray, at: int, rng: random.Random, other: bytes) -> None:
    there = rng.randrange(len(other) + 1)
    data[at : at + rng.choice([0, 20])] = other[there : there + rng.choice([8, 64, 400])]


DAMAGE: Final[tuple[Callable[[bytearray, int, random.Random, bytes], None], ...]] = (
    _flip,
    _flip,
    _put,
    _word,
    _word,
    _cut,
    _drop,
    _repeat,
    _move,
    _splice,
)


def damaged(source: bytes, other: bytes, rng: random.Random) -> bytes:
    """`source` after one to five random changes, some of them with pieces of `other`."""
    data = bytearray(source)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 5])):
        if not data:
            data += rng.choice(BYTES)
        rng.choice(DAMAGE)(data, rng.randrange(len(data)), rng, other)
    return bytes(data)
