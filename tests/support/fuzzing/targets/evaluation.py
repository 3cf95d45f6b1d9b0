"""Random graphs of constants and pure ops: values that are evaluated before a run."""

from __future__ import annotations

import contextlib
import random
from functools import cache
from typing import Any, Final

import numpy as np

import graphcore as gc
from graphcore.attrs import TensorValue
from graphcore.definitions import AttrDef, GraphDef, NodeDef, OpDef, VersionDef, in_out_types_for_node
from graphcore.definitions.wire import graph_def_from_bytes, graph_def_to_bytes
from graphcore.errors import GraphError
from graphcore.graph import constant_value, import_graph_def
from graphcore.passes.optimize.constant_folding import ConstantFoldingOptions
from graphcore.registry import OpRegistration
from tests.support.fuzzing.target import Target

_INTS: Final = (0, 1, 2, 3, -1, -2, 7, 1000, 65535, 2**31 - 1, -(2**31), 2**62)
_SIZES: Final = (0, 1, 2, 3, 5, 1000, 2**20, 2**31 - 1)
_TEXTS: Final = (
    b"",
    b"a",
    b"(a|aa)+$",
    b"a" * 50 + b"!",
    b"x" * 3000,
    b"\\0\\0\\1",
    b"\xff\xfe",
    b"1" * 2000 + b"x",
    b"%s%s",
    b"[a-",
    b"utf-8",
    b"/dev/zero",
)
_FLOATS: Final = (0.0, 1.0, -1.5, 1e30, 1e-30, float("inf"), float("nan"), -0.0)
_SHAPES: Final = ((), (), (1,), (2,), (3,), (2, 2), (2, 3), (0,), (1, 1, 1), (1, 2, 2, 3))
_MOST_NODES: Final = 40


@cache
def _ops() -> list[OpRegistration]:
    return [each for each in gc.op_registry if each.traits.pure]


def make(rng: random.Random) -> bytes:
    """A graph file whose shapes depend on values of random pure ops."""
    nodes: list[NodeDef] = []
    tensors: list[tuple[str, gc.DType]] = []
    for i in range(rng.randint(2, 8)):
        _add(nodes, tensors, _constant(f"c{i}", rng, rng.choice((gc.int32, gc.int32, gc.int64, gc.float32, gc.string, gc.bool_))))
    for i in range(rng.randint(1, _MOST_NODES)):
        if nodes and rng.random() < 0.3 and nodes[-1].op != "Const":
            again = nodes[-1]  # one op on its own result, many times
            taken = (_types_of(again) or ((), ()))[0]
            same = [name for name, dtype in tensors if name.startswith(again.name) and taken and dtype is taken[0]]
            if same:
                _add(nodes, tensors, NodeDef(f"n{i}", again.op, tuple([same[0] for _ in again.input]), "", again.attr))
                continue
        _add_op(nodes, tensors, f"n{i}", rng)
    nodes.append(NodeDef("x", "Placeholder", (), "", {"dtype": gc.float32, "shape": gc.Shape(None)}))
    for i, (name, dtype) in enumerate(rng.sample(tensors, min(len(tensors), 6))):
        nodes += _asking(f"a{i}", name, dtype)
    return graph_def_to_bytes(GraphDef(node=tuple(nodes), versions=VersionDef(producer=1000)))


def check(data: bytes) -> None:
    """Load the graph, explain shapes, compare it with itself, and fold its constants.

    A node that is refused is left out, so that the others are evaluated.
    """
    graph_def = graph_def_from_bytes(data)
    for _ in range(2 * _MOST_NODES):
        try:
            graph = gc.Graph()
            import_graph_def(graph_def, graph)
            break
        except GraphError as error:
            if error.node not in {node.name for node in graph_def.node}:
                raise
            graph_def = _without(graph_def, error.node)
    else:
        return
    for node in graph.nodes[-3:]:
        for tensor in node.outputs[:2]:
            gc.explain_shape(tensor)
            constant_value(tensor)
    gc.graph_diff(graph, graph)
    with contextlib.suppress(GraphError):
        gc.fold_constants(graph, ConstantFoldingOptions(ignore_failures=True))


def _without(graph_def: GraphDef, name: str) -> GraphDef:
    """The graph without a node and those that need it."""
    gone, kept = {name}, []
    for node in graph_def.node:
        if node.name in gone or any(each.partition(":")[0] in gone for each in node.input):
            gone.add(node.name)
        else:
            kept.append(node)
    return GraphDef(node=tuple(kept), versions=graph_def.versions)


def _add(nodes: list[NodeDef], tensors: list[tuple[str, gc.DType]], node: NodeDef) -> None:
    types = _types_of(node)
    if types is None:
        return
    nodes.append(node)
    tensors += [(f"{node.name}:{i}" if i else node.name, dtype) for i, dtype in enumerate(types[1][:8])]


def _types_of(node: NodeDef) -> Any:
    try:
        return in_out_types_for_node(node, gc.op_registry.look_up_op_def(node.op))
    except GraphError:
        return None


def _constant(name: str, rng: random.Random, dtype: gc.DType) -> NodeDef:
    shape = rng.choice(_SHAPES)
    count = int(np.prod(shape))
    if dtype is gc.string:
        array = np.empty(count, object)
        array[:] = [rng.choice(_TEXTS) for _ in range(count)]
    elif dtype.is_integer:
        info = np.iinfo(np.dtype(dtype.as_numpy))
        small = _SIZES if rng.random() < 0.6 else _INTS
        array = np.array([min(max(rng.choice(small), int(info.min)), int(info.max)) for _ in range(count)], dtype.as_numpy)
    else:
        array = np.array([rng.choice(_FLOATS) for _ in range(count)]).astype(dtype.as_numpy)
    return NodeDef(name, "Const", (), "", {"dtype": dtype, "value": TensorValue(array.reshape(shape), dtype)})


def _add_op(nodes: list[NodeDef], tensors: list[tuple[str, gc.DType]], name: str, rng: random.Random) -> None:
    op_def = rng.choice(_ops()).op_def
    attrs = {attr.name: _attr(attr, rng) for attr in op_def.attr}
    inputs: list[str] = []
    for slot, dtype in enumerate(_inputs(op_def, name, attrs)):
        fitting = [each for each, known in tensors if known is dtype]
        if not fitting or rng.random() < 0.2:
            constant = _constant(f"{name}c{slot}", rng, dtype)
            _add(nodes, tensors, constant)
            fitting = [constant.name]
        inputs.append(rng.choice(fitting[-6:]))
    _add(nodes, tensors, NodeDef(name, op_def.name, tuple(inputs), "", attrs))


def _inputs(op_def: OpDef, name: str, attrs: dict[str, Any]) -> list[gc.DType]:
    try:
        types = in_out_types_for_node(NodeDef(name, op_def.name, (), "", attrs), op_def)[0]
    except GraphError:
        return []
    return [dtype for dtype in types[:6] if dtype.as_numpy is not None and not dtype.is_complex]


def _attr(attr: AttrDef, rng: random.Random) -> Any:
    if attr.allowed_values:
        liked = [each for each in attr.allowed_values if each in (gc.int32, gc.string, gc.float32, gc.int64)]
        return rng.choice(liked or attr.allowed_values)
    if attr.default_value is not None and rng.random() < 0.4:
        return attr.default_value
    few = rng.random() < 0.7
    values: dict[str, Any] = {
        "int": rng.choice((1, 2, 2, 3)) if few else rng.choice(_INTS),
        "type": rng.choice((gc.int32, gc.int32, gc.int64, gc.float32, gc.string, gc.bool_)),
        "string": rng.choice(_TEXTS),
        "bool": rng.random() < 0.5,
        "float": rng.choice(_FLOATS),
        "shape": gc.Shape(list(rng.choice(_SHAPES))),
        "list(int)": tuple([rng.choice(_INTS) for _ in range(rng.randint(0, 4))]),
        "list(float)": tuple([rng.choice(_FLOATS) for _ in range(rng.randint(0, 3))]),
        "list(type)": tuple([gc.int32] * rng.randint(0, 3)),
    }
    return values.get(attr.type, attr.default_value)


def _asking(name: str, tensor: str, dtype: gc.DType) -> list[NodeDef]:
    """Nodes whose shapes depend on the value of a tensor."""
    nodes: list[NodeDef] = []
    if dtype is gc.string:
        nodes.append(NodeDef(f"{name}length", "StringLength", (tensor,), "", {"unit": b"BYTE"}))
        tensor, dtype = f"{name}length", gc.int32
    minus = TensorValue(np.array([-1], np.int32), gc.int32)
    nodes += [
        NodeDef(f"{name}cast", "Cast", (tensor,), "", {"SrcT": dtype, "DstT": gc.int32, "Truncate": False}),
        NodeDef(f"{name}flat", "Const", (), "", {"dtype": gc.int32, "value": minus}),
        NodeDef(f"{name}vector", "Reshape", (f"{name}cast", f"{name}flat"), "", {"T": gc.int32, "Tshape": gc.int32}),
        NodeDef(f"{name}shape", "Reshape", ("x", f"{name}vector"), "", {"T": gc.float32, "Tshape": gc.int32}),
    ]
    return nodes


EVALUATION: Final = Target(make, check)
