"""Hostile files, imported with little memory: a clear GraphError at once, or a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import graphcore as gc
from graphcore.attrs import AttrValue, TensorValue
from graphcore.definitions import GraphDef, NodeDef, VersionDef
from graphcore.definitions.wire import graph_def_to_bytes
from graphcore.tensor_encoding import EncodedTensor
from tests.support.remote import Remote

pytestmark = pytest.mark.sweep

SIDE = "tests.graphcore.graph.importing.hostile_side"
MEMORY = 512 << 20
FLOAT: dict[str, AttrValue] = {"T": gc.float32}
X = NodeDef("x", "Placeholder", (), "", {"dtype": gc.float32})


@pytest.fixture(scope="module")
def cramped() -> Iterator[Remote]:
    """An interpreter limited to half a gigabyte beyond its start."""
    with Remote() as remote:
        remote.call(f"{SIDE}:limit_memory", MEMORY)
        yield remote


def graph(*nodes: NodeDef) -> bytes:
    return graph_def_to_bytes(GraphDef(node=nodes, versions=VersionDef(producer=1000)))


def ring(count: int) -> bytes:
    return graph(*[NodeDef(f"n{i}", "Identity", (f"n{(i + 1) % count}",), "", FLOAT) for i in range(count)])


def with_attr(value: AttrValue) -> bytes:
    return graph(X, NodeDef("n", "Identity", ("x",), "", {**FLOAT, "_more": value}))


def shaped_by(dims: tuple[int, ...], values: list[int]) -> bytes:
    sizes = TensorValue.from_encoded(EncodedTensor(gc.int32, dims, b"", values))
    return graph(
        X, NodeDef("sizes", "Const", (), "", {"dtype": gc.int32, "value": sizes}), NodeDef("n", "Reshape", ("x", "sizes"), "", {**FLOAT, "Tshape": gc.int32})
    )  # fmt: skip


# Made lazily; with a part of the expected error, None if the graph is imported.
HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "a node that feeds itself": (lambda: ring(1), "cycle"),
    "two nodes that feed each other": (lambda: ring(2), "cycle"),
    "a cycle of 10000 nodes": (lambda: ring(10_000), "cycle"),
    "a cycle of control inputs": (lambda: graph(NodeDef("a", "NoOp", ("^b",)), NodeDef("b", "NoOp", ("^a",))), "cycle"),
    "the same name twice": (lambda: graph(X, X), "'x'"),
    "the same name 10000 times": (lambda: graph(*[X] * 10_000), "'x'"),
    "a float where an int32 belongs": (
        lambda: graph(X, NodeDef("n", "Identity", ("x",), "", {"T": gc.int32})),
        "incompatible with expected int32",
    ),
    "an attr of another kind": (lambda: graph(X, NodeDef("n", "Identity", ("x",), "", {"T": 1})), "'type' expected"),
    "200000 inputs for one": (lambda: graph(X, NodeDef("n", "Identity", ("x",) * 200_000, "", FLOAT)), "do not match"),
    "an AddN of 10^12 inputs": (lambda: graph(X, NodeDef("n", "AddN", ("x",), "", {**FLOAT, "N": 10**12})), "N"),
    "a split into 10^12 parts": (lambda: graph(X, NodeDef("n", "Unpack", ("x",), "", {**FLOAT, "num": 10**12, "axis": 0})), "too big"),
    "a million ints": (lambda: with_attr((7,) * 1_000_000), ""),
    "a million strings": (lambda: with_attr((b"",) * 1_000_000), ""),
    "nested functions": (lambda: with_attr(nested(25)), ""),
    "a shape of a thousand million sizes": (lambda: shaped_by((10**9,), [1]), "254"),
    "a thousand million sizes of two kinds": (lambda: shaped_by((10**9,), [1, 2]), "254"),
    "a shape of 255 sizes": (lambda: shaped_by((255,), [1]), "254"),
    "an input with no name": (lambda: graph(NodeDef("n", "Identity", ("",), "", FLOAT)), "''"),
}


def nested(depth: int) -> AttrValue:
    value = gc.Func("end")
    for _ in range(depth):
        value = gc.Func("f", {"f": value})
    return value


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_graph_is_imported_or_refused_at_once_with_little_memory(name: str, cramped: Remote) -> None:
    make, expected = HOSTILE[name]
    kind, text, is_slow = cramped.call(f"{SIDE}:import_file", make())
    assert bool(kind) == bool(expected), text[:300]
    assert expected in text
    assert len(text) < 2_000
    assert not is_slow


def test_constants_that_claim_gigabytes_do_no_harm_to_any_op(cramped: Remote) -> None:
    assert cramped.call(f"{SIDE}:give_claims_to_all_ops") == []
