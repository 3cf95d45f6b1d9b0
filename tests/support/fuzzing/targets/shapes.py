"""Shape functions: nodes of every op with inputs of all shapes and values, right or not."""

from __future__ import annotations

import contextlib
import random
from typing import Any, Final

import numpy as np

import graphcore as gc
from graphcore.attrs import AttrValue
from graphcore.definitions import AttrDef, GraphDef, NodeDef, OpDef, VersionDef, in_out_types_for_node
from graphcore.definitions.wire import graph_def_from_bytes, graph_def_to_bytes
from graphcore.errors import GraphError
from graphcore.graph import ImportOptions, import_graph_def
from tests.support.fuzzing.fuzz import ops
from tests.support.fuzzing.fuzz_inputs import MORE, VALUES, value_for
from tests.support.fuzzing.target import UNEXPECTED, Target

_SIZES: Final = ((), (), (0,), (1,), (2,), (2,), (3,), (4,), (2, 2), (3, 2), (2, 0), (1, 4), (1, 1, 1), (1, 4, 4, 3), (1, 2, 2, 2, 2))
_SHAPES: Final = (None, None, *_SIZES, (None,), (None, None), (None, 2), (3, None), (2**61, 2), (2**63 - 1,), (0, 2**63 - 1), (1,) * 70)
_NUMBERS: Final = (0, 0, 1, 1, 2, 3, 4, -1, -2, 5, 100, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63))
_TEXTS: Final = (b"", b"a", b"\xff", b"VALID", b"10 4 0,5:-", b"9" * 5000, b"1", b"a" * 300, b"ij,jk->ik")
_ATTRS: Final[dict[str, tuple[AttrValue, ...]]] = {
    **VALUES,
    "int": (*VALUES["int"], 2, 3, 4, 64, 65, 2**31 - 1, 2**31),
    "string": (
        *VALUES["string"],
        b"VALID",
        b"NDHWC",
        b"NCHW",
        b"HWIO",
        b"ij,jk->ik",
        b"...",
        b"->",
        b",,,",
        b"i" * 100,
        b"ii->i",
        b"mean",
        b"a-b",
        b"\xff",
    ),
    "shape": (*VALUES["shape"], *[gc.Shape(shape) for shape in _SHAPES if shape is None or len(shape) < 70]),
}


def _attr(attr: AttrDef, rng: random.Random) -> AttrValue:
    if rng.random() < 0.5:
        return value_for(attr, rng)
    if attr.type.startswith("list("):
        return tuple(rng.choices(_ATTRS[attr.type[5:-1]], k=rng.choice((0, 1, 2, 2, 3, 4, 4, 5))))
    return rng.choice(_ATTRS[attr.type])


def _array(dtype: gc.DType, rng: random.Random) -> Any:
    sizes = rng.choice(_SIZES)
    count = int(np.prod(sizes, dtype=np.int64))
    if dtype is gc.string:
        made = np.empty(count, object)
        made[:] = [rng.choice(_TEXTS) for _ in range(count)]
        return made.reshape(sizes)
    if dtype.as_numpy is None:
        return None
    kind = dtype.as_numpy
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        return np.array([min(max(rng.choice(_NUMBERS), limits.min), limits.max) for _ in range(count)], kind).reshape(sizes)
    return np.array([rng.choice((0, 1, -1, 0.5, 3)) for _ in range(count)]).astype(kind).reshape(sizes)


def _input(name: str, dtype: gc.DType, rng: random.Random) -> NodeDef:
    """A constant or a placeholder."""
    array = _array(dtype.base, rng) if rng.random() < 0.6 else None
    if array is not None and not dtype.is_ref:
        return NodeDef(name, "Const", (), "", {"dtype": dtype, "value": gc.TensorValue(array, dtype)})
    if dtype.is_ref:
        return NodeDef(
            name, "VariableV2", (), "", {"dtype": dtype.base, "shape": gc.Shape(rng.choice(_SHAPES)), "container": b"", "shared_name": b""}
        )
    if dtype is gc.resource and rng.random() < 0.5:
        return NodeDef(
            name, "VarHandleOp", (), "", {"dtype": gc.float32, "shape": gc.Shape(rng.choice(_SHAPES)), "container": b"", "shared_name": b""}
        )
    return NodeDef(name, "Placeholder", (), "", {"dtype": dtype, "shape": gc.Shape(rng.choice(_SHAPES))})


def _node(name: str, op_def: OpDef, rng: random.Random) -> list[NodeDef]:
    """A node of an op and its inputs."""
    attrs = {attr.name: _attr(attr, rng) for attr in op_def.attr if attr.default_value is None or rng.random() < 0.4}
    for attr in op_def.attr:
        if (
            attr.type == "int"
            and attr.name in attrs
            and any(arg.number_attr == attr.name for arg in (*op_def.input_arg, *op_def.output_arg))
        ):
            attrs[attr.name] = rng.choice((1, 1, 2, 3))
    if rng.random() < 0.05:
        attrs[rng.choice(("_class", "_output_shapes", "extra"))] = rng.choice(MORE)
    node = NodeDef(name, op_def.name, (), "", attrs)
    try:
        wanted, _ = in_out_types_for_node(node, op_def)
    except GraphError:
        wanted = (gc.float32,)
    inputs = [_input(f"{name}_{i}", dtype, rng) for i, dtype in enumerate(wanted[:10])]
    return [*inputs, NodeDef(name, op_def.name, tuple(each.name for each in inputs), "", attrs)]


def make(rng: random.Random) -> bytes:
    """A graph of a node or two with constants and placeholders."""
    while True:
        nodes = _node("n", rng.choice(ops()), rng)
        if rng.random() < 0.2:
            nodes += _node("m", rng.choice(ops()), rng)
        with contextlib.suppress(GraphError):  # a value that no file can hold
            return graph_def_to_bytes(GraphDef(node=tuple(nodes), versions=VersionDef(producer=rng.choice((21, 1882, 2474)))))


def check(data: bytes) -> None:
    """Load the graph with its shapes, as far as they fit, and explain them."""
    graph_def = graph_def_from_bytes(data)
    graph = gc.Graph()
    try:
        import_graph_def(graph_def, graph, ImportOptions(allow_unknown_ops=True, allow_internal_ops=True))
    except GraphError as error:
        if UNEXPECTED in error.message:
            raise
        graph = gc.Graph()
        import_graph_def(graph_def, graph, ImportOptions(allow_unknown_ops=True, allow_internal_ops=True, validate_shape=False))
    for node in graph.op_nodes():
        for output in node.outputs:
            str(gc.explain_shape(output))


SHAPES: Final = Target(make, check)
