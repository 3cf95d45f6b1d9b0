"""Random graphs, valid and invalid: a valid one of a few nodes, then up to two errors."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

import msgspec

from graphcore.attrs import NO_VALUE, AttrValue
from graphcore.definitions import GraphDef, NodeDef, OpDef, VersionDef
from tests.support.fuzzing.fuzz_inputs import MORE, VALUES, random_graph, right_graph

Nodes = list[NodeDef]
Damage = Callable[[Nodes, random.Random], None]
NAMES: Final = (
    "n0",
    "a/b",
    "_n",
    "/n",
    "n:0",
    "",
    "A>b",
    "a-b_",
    "0",
    ".x",
    "a b",
    "n\u00e9",
    "a//b",
    "a/",
    "Ab>",
    "a\\b",
    "_SOURCE",
    "_SINK",
)
INPUTS: Final = (
    "n0",
    "n0:1",
    "n1:0",
    "n0:00",
    "n0:-1",
    "n0:99",
    "^n0",
    "^n1",
    "^n0:0",
    "missing",
    "missing:1",
    "^missing",
    "",
    "^",
    ":0",
    "n0:x",
    "n0:",
    "_SOURCE",
    "^_SOURCE",
    "n1 ",
    "n0:0:0",
)
DEVICES: Final = ("/cpu:0", "/job:a/task:1/device:GPU:0", "bad device", "/cpu:x", "/device:CPU:*", "/job:a/job:b", "cpu", "/")
VERSIONS: Final = (
    VersionDef(), VersionDef(producer=-1), VersionDef(producer=21), VersionDef(producer=10**6), VersionDef(producer=2474, min_consumer=12), VersionDef(producer=5, min_consumer=10),
    VersionDef(producer=30, min_consumer=10**6), VersionDef(producer=30, bad_consumers=(7,)), VersionDef(producer=30, bad_consumers=(0,)),
)  # fmt: skip


def _at(nodes: Nodes, rng: random.Random, **changes: Any) -> None:
    index = rng.randrange(len(nodes))
    nodes[index] = msgspec.structs.replace(nodes[index], **changes)


def _rename(nodes: Nodes, rng: random.Random) -> None:
    _at(nodes, rng, name=rng.choice(NAMES))


def _other_op(nodes: Nodes, rng: random.Random) -> None:
    _at(nodes, rng, op=rng.choice(["NoSuchOp", "", "Identity", "NoOp", "AddN", "f"]))


def _device(nodes: Nodes, rng: random.Random) -> None:
    _at(nodes, rng, device=rng.choice(DEVICES))


def _input(nodes: Nodes, rng: random.Random) -> None:
    index = rng.randrange(len(nodes))
    inputs = list(nodes[index].input)
    at = rng.randrange(len(inputs) + 1)
    inputs[at : at + rng.randrange(2)] = [rng.choice([*INPUTS, *(node.name for node in nodes)])] * rng.choice([0, 1, 1, 1, 2])
    nodes[index] = msgspec.structs.replace(nodes[index], input=tuple(inputs))


def _control(nodes: Nodes, rng: random.Random) -> None:
    index = rng.randrange(len(nodes))
    other = "^" + rng.choice(nodes).name
    nodes[index] = msgspec.structs.replace(nodes[index], input=(*nodes[index].input, other))


def _attr(nodes: Nodes, rng: random.Random) -> None:
    index = rng.randrange(len(nodes))
    attrs = dict(nodes[index].attr)
    name = rng.choice([*attrs, "_class", "_output_shapes", "T", "extra", "_private"])
    values: list[AttrValue] = [
        NO_VALUE,
        (),
        *MORE,
        *(rng.choice(group) for group in VALUES.values()),
        (b"loc:@missing",),
        (b"loc:@",),
        (b"other",),
    ]
    if rng.random() < 0.3:
        attrs.pop(name, None)
    else:
        attrs[name] = rng.choice(values)
    nodes[index] = msgspec.structs.replace(nodes[index], attr=attrs)


def _repeat(nodes: Nodes, rng: random.Random) -> None:
    nodes.insert(rng.randrange(len(nodes) + 1), rng.choice(nodes))


def _drop(nodes: Nodes, rng: random.Random) -> None:
    del nodes[rng.randrange(len(nodes))]


def _shuffle(nodes: Nodes, rng: random.Random) -> None:
    rng.shuffle(nodes)


DAMAGE: Final[tuple[Damage, ...]] = (_rename, _other_op, _device, _input, _input, _control, _attr, _attr, _repeat, _drop, _shuffle)


def plain_ops(ops: list[OpDef]) -> list[OpDef]:
    """Ops that combine easily: one type for all, at most three inputs."""
    return [op for op in ops if 0 < len(op.input_arg) <= 3 and all(arg.type_attr == "T" and not arg.number_attr for arg in op.input_arg)]


def case(ops: list[OpDef], rng: random.Random) -> GraphDef:
    """A graph that TensorFlow may or may not accept."""
    if rng.random() < 0.15:
        nodes = list(random_graph(plain_ops(ops) if rng.random() < 0.5 else ops, rng).node)
    else:
        nodes = list(right_graph(plain_ops(ops) if rng.random() < 0.3 else ops, rng).node)
    for _ in range(rng.choice([0, 0, 0, 1, 1, 2])):
        if nodes:
            rng.choice(DAMAGE)(nodes, rng)
    versions = rng.choice(VERSIONS) if rng.random() < 0.1 else VersionDef(producer=2474)
    return GraphDef(node=tuple(nodes), versions=versions)
