"""Reads and imports hostile files in an interpreter with limited memory."""

from __future__ import annotations

import resource
import time
from pathlib import Path
from typing import Any

import graphcore as gc
from graphcore.attrs import AttrValue, TensorValue
from graphcore.definitions import AttrDef, NodeDef, OpDef, in_out_types_for_node
from graphcore.definitions.wire import graph_def_from_bytes
from graphcore.dtypes import DType
from graphcore.errors import GraphError
from graphcore.graph import ImportOptions, import_graph_def
from graphcore.tensor_encoding import EncodedTensor
from tests.support.yardstick import loop_seconds

PAGE = resource.getpagesize()
TURNS = 70_000_000
"""An op that takes longer than an empty loop of so many turns fails; a file may take four times as many."""
# Sizes and given values: one value for all, two values with the last repeated, too many dimensions.
CLAIMS: tuple[tuple[tuple[int, ...], int], ...] = (
    ((10**9,), 1),
    ((10**9,), 2),
    ((2**20, 2**20), 1),
    ((10**6,), 1),
    ((0, 10**9), 1),
    ((300,), 1),
)


def limit_memory(more: int) -> None:
    """Limit this process to so many bytes more than now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limit = pages * PAGE + more
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def import_file(data: bytes) -> tuple[str, str, bool]:
    """Read and import a file. Returns name and text of the error ("" for none), and True if it was slow."""
    begin = time.process_time()
    name, text = "", ""
    graph = gc.Graph()
    try:
        import_graph_def(graph_def_from_bytes(data), graph, ImportOptions(allow_unknown_ops=True))
    except GraphError as error:
        name, text = type(error).__name__, str(error)
    assert not name or not len(graph)
    return name, text, time.process_time() - begin > loop_seconds(4 * TURNS)


def value_for(attr: AttrDef) -> AttrValue:
    """A value that makes an op take int32 inputs if possible."""
    plain: dict[str, AttrValue] = {
        "int": 2, "float": 1.0, "bool": True, "string": b"VALID", "shape": gc.Shape(None), "tensor": TensorValue(1, gc.int32), "func": gc.Func("f"),
    }  # fmt: skip
    if attr.type == "type":
        return gc.int32 if not attr.allowed_values or gc.int32 in attr.allowed_values else attr.allowed_values[0]
    if attr.default_value is not None:
        return attr.default_value
    if attr.allowed_values:
        first: AttrValue = attr.allowed_values[0]
        return first
    if attr.type.startswith("list("):
        return (gc.int32, gc.int32) if attr.type == "list(type)" else ()
    return plain[attr.type]


def claim(dtype: DType, sizes: tuple[int, ...], count: int) -> NodeDef:
    """A constant with a large claimed size in a few bytes."""
    values: list[Any] = ([b"a", b"b"] if dtype is gc.string else [2, 3])[:count]
    return NodeDef("huge", "Const", (), "", {"dtype": dtype, "value": TensorValue.from_encoded(EncodedTensor(dtype, sizes, b"", values))})


def give_claims_to(op_def: OpDef) -> list[str]:
    """Errors of an op with a constant of a claimed size as one input and unknown others."""
    node = NodeDef("n", op_def.name, (), "", {attr.name: value_for(attr) for attr in op_def.attr})
    try:
        types = in_out_types_for_node(node, op_def)[0]
    except GraphError:
        return []
    wrong = []
    for slot, dtype in enumerate(types):
        for sizes, count in () if dtype.is_ref else CLAIMS:
            begin = time.process_time()
            try:
                _add(node, types, slot, claim(dtype, sizes, count))
            except GraphError as error:
                outcome = f"a text of {len(str(error))} characters" if len(str(error)) > 5_000 else ""
            except Exception as error:  # noqa: BLE001 - that any comes out is what is looked for
                outcome = f"{type(error).__name__}: {error}"
            else:
                outcome = ""
            seconds = time.process_time() - begin
            if outcome or seconds > loop_seconds(TURNS):
                wrong.append(f"{op_def.name}, input {slot} of {count} values claims {sizes}: {outcome} after {seconds:.1f} s")
    return wrong


def _add(node: NodeDef, types: tuple[DType, ...], slot: int, huge: NodeDef) -> None:
    graph = gc.Graph()
    graph.add_node(huge)
    inputs = []
    for i, dtype in enumerate(types):
        name = huge.name if i == slot else f"x{i}"
        if i != slot:
            graph.add_node(NodeDef(name, "Placeholder", (), "", {"dtype": dtype.base, "shape": gc.Shape(None)}))
        inputs.append(name)
    made = graph.add_node(NodeDef(node.name, node.op, tuple(inputs), "", node.attr))
    for output in made.outputs:
        assert output.shape.is_compatible_with(output.shape)


def give_claims_to_all_ops() -> list[str]:
    """Run `give_claims_to` for every registered op."""
    return [text for entry in gc.op_registry for text in give_claims_to(entry.op_def)]
