"""Clashing shapes against TensorFlow's shape functions: the same refusals and words."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.attrs import TensorValue
from graphcore.definitions import GraphDef, NodeDef, VersionDef
from graphcore.definitions.wire import graph_def_to_bytes
from graphcore.errors import GraphError
from graphcore.graph import import_graph_def
from graphcore.tensor_encoding import EncodedTensor
from tests.oracle.conftest import Oracle

DRAWS = 600
SHAPES: tuple[Any, ...] = (None, [], [1], [2], [None], [1, 2], [None, 4], [2, None], [3, 4, 5])
AXES = (None, 0, 1, 2, -1, -2)
SCALARS = "Can't concatenate scalars"
Question = tuple[str, list[Any], dict[str, Any]]


def hidden(sizes: Any) -> Any:
    return "hidden", (gc.float32.number, sizes)


def question(rng: random.Random) -> Question:
    """An op that joins two to four tensors, in the form for `shape_side`."""
    op = rng.choice(["Concat", "ConcatV2", "AddN", "Pack"])
    tensors = ("list", [hidden(rng.choice(SHAPES)) for _ in range(rng.randrange(2, 5))])
    if op in {"AddN", "Pack"}:
        return op, [tensors], {}
    axis = rng.choice(AXES)
    along = ("hidden", (gc.int32.number, [])) if axis is None else ("value", np.array(axis, np.int32))
    return op, [along, tensors] if op == "Concat" else [tensors, along], {}


def tensor(kind: str, value: Any) -> Any:
    if kind == "list":
        return [tensor(*part) for part in value]
    return gc.constant(value) if kind == "value" else gc.placeholder(gc.float32 if value[0] == gc.float32.number else gc.int32, value[1])


def ours(op: str, inputs: list[Any]) -> list[Any] | str:
    """The shape of the output, or the error."""
    with gc.Graph().as_default() as graph:
        try:
            shape = graph.apply_op(op, [tensor(*sent) for sent in inputs]).outputs[0].shape
        except GraphError as error:
            return error.message
        return [None if shape.rank is None else shape.as_list()]


def words(answer: Any) -> Any:
    """A shape, or an error's text up to the node, which prints differently."""
    if not isinstance(answer, str):
        return answer
    return SCALARS if answer.startswith(SCALARS) else answer.partition(" for '")[0]


def test_what_is_joined_is_inferred_or_refused_in_the_same_words(oracle: Oracle) -> None:
    rng = random.Random(18)
    questions = [question(rng) for _ in range(DRAWS)]
    theirs = oracle.call("tests.oracle.sides.shape_side:infer_shapes", questions)
    seen: Counter[str] = Counter()
    for (op, inputs, _), answer in zip(questions, theirs, strict=True):
        assert words(ours(op, inputs)) == words(answer), f"{op}{inputs}"
        seen[f"{op} {'refused' if isinstance(answer, str) else 'inferred'}"] += 1
    assert len(seen) == 8, "each op is refused and taken at times"


@pytest.mark.parametrize("dims", [(1, 2, 3, 4, -1), (-1,), (2, -1, 3), (0, -1), (2, 3), ()], ids=str)
@pytest.mark.parametrize("dtype", [gc.float32, gc.string], ids=lambda dtype: dtype.name)
def test_a_constant_of_a_file_must_have_a_full_shape(dims: tuple[int, ...], dtype: gc.DType, oracle: Oracle) -> None:
    value = TensorValue.from_encoded(EncodedTensor(dtype, dims))
    graph_def = GraphDef(node=(NodeDef("c", "Const", (), "", {"dtype": dtype, "value": value}),), versions=VersionDef(producer=2474))
    theirs = oracle.call("tests.oracle.sides.graph_side:judge_graph", graph_def_to_bytes(graph_def))
    try:
        import_graph_def(graph_def, gc.Graph())
        mine = ""
    except GraphError as error:
        mine = error.message
    assert words(mine) == words(theirs)
    assert bool(theirs) == (-1 in dims)
