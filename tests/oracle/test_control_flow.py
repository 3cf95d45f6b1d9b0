"""Branches and loops against TensorFlow: the same graph, run by both engines and by TensorFlow."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import graphcore as gc
from graphcore.definitions.wire import graph_def_to_bytes
from graphcore.runtime import needed_nodes
from tests.graphcore.runtime.loop_graphs import cond, enter, op, outputs, switch, while_loop
from tests.graphcore.runtime.random_programs import Program
from tests.oracle.conftest import Oracle
from tests.support.remote import RemoteError

Array = npt.NDArray[Any]
SIDE = "tests.oracle.sides.control_flow_side"
PROGRAMS = 60


def assert_same(ours: list[Any], theirs: list[Array]) -> None:
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        array = np.asarray(mine)
        assert (array.shape, array.dtype) == (other.shape, other.dtype)
        np.testing.assert_allclose(array, other, rtol=1e-4, atol=1e-5)


def run_both(graph: gc.Graph, oracle: Oracle, fetches: list[gc.Tensor], feeds: dict[gc.Tensor, Array], start: list[str]) -> None:
    """Run in both engines and in TensorFlow, and compare."""
    names = [tensor.name for tensor in fetches]
    data = graph_def_to_bytes(graph.as_graph_def())
    theirs = oracle.call(f"{SIDE}:run_twice", data, {tensor.name: value for tensor, value in feeds.items()}, names, start)
    for engine in ("plan", "dataflow"):
        with gc.Session(graph, engine=engine) as session:
            for name in start:
                session.run(name)
            assert_same([value for _ in range(2) for value in session.run(fetches, dict(feeds))], theirs)


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_a_random_graph_with_branches_loops_and_variables_gives_what_it_gives_in_tensorflow(seed: int, oracle: Oracle) -> None:
    chosen = random.Random(seed)
    program = Program([chosen.randrange(2**16) for _ in range(chosen.randrange(20, 160))])
    feeds = {program.x: np.array([0.75, -0.5], np.float32), program.p: np.array(chosen.random() < 0.5)}
    run_both(program.graph, oracle, [*program.values, program.end], feeds, ["start"])


class Steps:
    """A partial run that is fed one value a step, and fetches everything as soon as possible.

    Attributes:
        gives, refuses: by step, possible fetches and impossible ones.
        values: the values of the possible ones.
    """

    def __init__(self, graph: gc.Graph, feeds: dict[str, Array], fetches: list[str], start: list[str]) -> None:
        self.gives: list[list[str]] = []
        self.refuses: list[list[str]] = []
        self.values: list[Any] = []
        with gc.Session(graph) as session:
            for name in start:
                session.run(name)
            handle = session.partial_run_setup(fetches, list(feeds))
            left, unfed = list(fetches), list(feeds)
            for name, value in feeds.items():
                session.partial_run(handle, [], {name: value})
                unfed.remove(name)
                later = [fetch for fetch in left if not self._fetch(session, handle, fetch)]
                self.gives.append([fetch for fetch in left if fetch not in later])
                self.refuses.append([fetch for fetch in later if takes(graph, fetch, unfed)])
                left = later
        assert not left

    def _fetch(self, session: gc.Session, handle: str, fetch: str) -> bool:
        try:
            self.values.append(session.partial_run(handle, fetch))
        except gc.errors.InvalidArgumentError as error:
            if "can't be computed from the feeds" not in error.message:
                raise
            return False
        return True


def takes(graph: gc.Graph, fetch: str, unfed: list[str]) -> bool:
    """True iff a tensor needed by `fetch` depends on the value of one of `unfed`.

    For mere control dependencies, or loops entered, TensorFlow waits for ever.
    """
    tensors = {graph.get_tensor_by_name(name) for name in unfed}
    return any(not tensors.isdisjoint(node.inputs) for node in needed_nodes([graph.get_tensor_by_name(fetch)], [], []))


@pytest.mark.parametrize("seed", range(30))
def test_a_partial_run_of_a_random_graph_gives_and_refuses_what_tensorflow_does(seed: int, oracle: Oracle) -> None:
    chosen = random.Random(seed)
    program = Program([chosen.randrange(2**16) for _ in range(chosen.randrange(20, 160))])
    feeds = {"x:0": np.array([0.75, -0.5], np.float32), "p:0": np.array(chosen.random() < 0.5)}
    if chosen.random() < 0.5:
        feeds = dict(reversed(feeds.items()))
    fetches = list(dict.fromkeys([tensor.name for tensor in [*program.values, program.end] if tensor.name not in feeds]))
    steps = Steps(program.graph, feeds, fetches, ["start"])
    data = graph_def_to_bytes(program.graph.as_graph_def())
    theirs, refused = oracle.call(f"{SIDE}:run_in_steps", data, feeds, steps.gives, steps.refuses, ["start"])
    assert_same(steps.values, theirs)
    assert len(refused) == sum(map(len, steps.refuses))
    assert all("can't be computed from the feeds" in text for text in refused)


def ref_branch() -> list[gc.Tensor]:
    """A variable passed by reference along a branch, changed there, and merged again."""
    v = op("VariableV2", attrs={"dtype": gc.float32, "shape": gc.Shape([2])})
    gc.get_default_graph().apply_op("Assign", [v, gc.constant(np.array([1.0, 2.0], np.float32))], name="start")
    no, yes = outputs("RefSwitch", [v, gc.constant(True)])
    changed = op("AssignAdd", [yes, gc.constant(np.array([1.0, 1.0], np.float32))])
    merged, number = outputs("RefMerge", [[changed, no]])
    return [op("Identity", [merged]), number]


def ref_loop() -> list[gc.Tensor]:
    """A variable passed around a loop by reference."""
    v = op("VariableV2", attrs={"dtype": gc.float32, "shape": gc.Shape([])})
    gc.get_default_graph().apply_op("Assign", [v, gc.constant(np.float32(1.0))], name="start")
    inside = outputs("RefEnter", [v], {"frame_name": "around", "is_constant": True})[0]
    one = enter(gc.constant(np.float32(1.5)), "around", constant=True)
    step, limit = enter(gc.constant(1), "around", constant=True), enter(gc.constant(3), "around", constant=True)

    def body(i: gc.Tensor, _last: gc.Tensor) -> list[Any]:
        with gc.control_dependencies([i.node]):
            changed = op("AssignAdd", [inside, one])
            return [op("AddV2", [i, step]), op("Identity", [changed])]

    return while_loop(lambda i, _: op("Less", [i, limit]), body, [gc.constant(0), gc.constant(np.float32(0.0))], "around")


def dead_loop() -> list[gc.Tensor]:
    """A loop on a branch that is not taken."""

    def looped(x: gc.Tensor) -> list[Any]:
        limit = enter(gc.constant(np.float32(9.0)), "never", constant=True)
        return while_loop(lambda y: op("Less", [y, limit]), lambda y: [op("AddV2", [y, y])], [x], "never")

    x = gc.constant(np.float32(3.0))
    return [tensor for flag in (True, False) for tensor in cond(gc.constant(flag), [x], looped, lambda y: [op("Neg", [y])])][:1]


def ways() -> list[gc.Tensor]:
    """_SwitchN with an index beyond the last."""
    found: list[gc.Tensor] = []
    for number in (0, 1, 2, 7, -1):
        sides = outputs("_SwitchN", [gc.constant(np.float32(2.0)), gc.constant(number)], {"num_outs": 3}, f"switch{len(found)}")
        merged = [op("Neg", [sides[0]]), op("Identity", [sides[1]]), op("Square", [sides[2]])]
        found += outputs("Merge", [merged])
    return found


def trigger() -> list[gc.Tensor]:
    """A consumer of a ControlTrigger runs even though the trigger's branch was not taken."""
    _, yes = switch(gc.constant(np.float32(2.0)), gc.constant(False))
    with gc.control_dependencies([op("Neg", [yes]).node]):
        triggered = gc.get_default_graph().apply_op("ControlTrigger", [])
    with gc.control_dependencies([triggered]):
        return [op("Identity", [gc.constant(np.float32(5.0))])]


@pytest.mark.parametrize("build", [ref_branch, ref_loop, dead_loop, ways, trigger], ids=lambda build: build.__name__)
def test_a_graph_with_control_flow_gives_what_it_gives_in_tensorflow(build: Any, oracle: Oracle) -> None:
    graph = gc.Graph()
    with graph.as_default():
        fetches = build()
    run_both(graph, oracle, fetches, {}, ["start"] if graph.find("start") is not None else [])


@pytest.mark.parametrize("engine", ["plan", "dataflow"])
def test_fetching_what_was_not_computed_is_the_error_that_tensorflow_raises(engine: str, oracle: Oracle) -> None:
    graph = gc.Graph()
    with graph.as_default():
        _, yes = switch(gc.constant(2.0), gc.constant(False))
        y = op("Neg", [yes])
    with pytest.raises(RemoteError, match="Retval") as theirs:
        oracle.call(f"{SIDE}:run_twice", graph_def_to_bytes(graph.as_graph_def()), {}, [y.name], [])
    with pytest.raises(gc.errors.InvalidArgumentError) as ours, gc.Session(graph, engine=engine) as session:
        session.run(y)
    assert theirs.value.kind == "InvalidArgumentError"
    assert "does not have value" in str(theirs.value)
    assert "does not have value" in ours.value.message
