"""Variables that share a name under different declarations, against TensorFlow."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.definitions.wire import graph_def_to_bytes
from graphcore.errors import GraphError
from tests.oracle.conftest import Oracle

SIDE = "tests.oracle.sides.variables_side"
TYPES = {"a": gc.float32, "b": gc.float32, "c": gc.int32}
SIZES = {"a": 2, "b": 3, "c": 2}


def _references() -> list[str]:
    """Three nodes of one variable, with nodes that set, change and read it."""
    names: list[str] = []
    for name, dtype in TYPES.items():
        size = SIZES[name]
        shared = {"dtype": dtype, "shape": gc.Shape([size]), "shared_name": "s"}
        variable: Any = gc.apply_op("VariableV2", [], shared, name)
        value = gc.constant(list(range(1, size + 1)), dtype)
        gc.apply_op("Assign", [variable, value], {}, f"set_{name}")
        gc.apply_op("Assign", [variable, value], {"validate_shape": False}, f"replace_{name}")
        gc.apply_op("AssignAdd", [variable, value], {}, f"add_{name}")
        gc.apply_op("Identity", [variable], {}, f"read_{name}")
        gc.apply_op("IsVariableInitialized", [variable], {}, f"has_{name}")
        names += [f"{does}_{name}:0" for does in ("set", "replace", "add", "read", "has")]
    return names


def _handles() -> list[str]:
    names: list[str] = []
    for name, dtype in TYPES.items():
        size = SIZES[name]
        handle: Any = gc.apply_op("VarHandleOp", [], {"dtype": dtype, "shape": gc.Shape([size]), "shared_name": "s"}, name)
        value = gc.constant(list(range(1, size + 1)), dtype)
        gc.apply_op("AssignVariableOp", [handle, value], {"validate_shape": True}, f"set_{name}")
        gc.apply_op("AssignVariableOp", [handle, value], {}, f"replace_{name}")
        gc.apply_op("AssignAddVariableOp", [handle, value], {}, f"add_{name}")
        gc.apply_op("ReadVariableOp", [handle], {"dtype": dtype}, f"read_{name}")
        gc.apply_op("VarIsInitializedOp", [handle], {}, f"has_{name}")
        names += [f"{does}_{name}" for does in ("set", "replace", "add")] + [f"{does}_{name}:0" for does in ("read", "has")]
    return names


def outcome(session: gc.Session, name: str) -> Any:
    """The result of a run, or TensorFlow's part of its error."""
    try:
        return session.run(name)
    except GraphError as error:
        return error.message.split("\n")[0].removeprefix(f"{error.op} node '{error.node}': ").partition(": ")[0]


@pytest.mark.parametrize("engine", ["plan", "dataflow"])
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("make", [_references, _handles], ids=["references", "handles"])
def test_variables_that_share_a_name_do_what_they_do_in_tensorflow(make: Any, seed: int, engine: str, oracle: Oracle) -> None:
    with gc.Graph().as_default() as graph:
        names = make()
    chosen = random.Random(seed)
    # Initialised first: the owner before that is an implementation detail of TensorFlow.
    first = chosen.choice([name for name in names if name.startswith("replace")])
    runs = [first, *chosen.choices(names, k=30)]
    theirs = oracle.call(f"{SIDE}:run_each", graph_def_to_bytes(graph.as_graph_def()), runs)
    session = gc.Session(graph, engine=engine)
    told = 0
    for number, (name, expected) in enumerate(zip(runs, theirs, strict=True)):
        got = outcome(session, name)
        where = f"{got}, not {expected}, in run {number} of {list(itertools.islice(runs, number + 1))}"
        if isinstance(got, str):
            told += 1
            assert isinstance(expected, str), where
            assert got in expected, where
        elif got is not None:
            assert not isinstance(expected, str), where
            np.testing.assert_array_equal(got, expected, where)
    assert told > 3
