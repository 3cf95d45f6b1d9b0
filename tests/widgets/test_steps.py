"""Recorded runs, node by node."""

from __future__ import annotations

import json
from typing import Any

import pytest

import graphcore as gc
import widgets
from tests.graphcore.runtime.loop_graphs import cond, enter, op, while_loop
from tests.support.live_page import LivePage
from widgets.scene.steps import DEAD, FED, steps_of
from widgets.steps import RecordedSteps

RECORDED = gc.RunOptions(values=True)


def rows(steps: RecordedSteps) -> list[tuple[str, int, str, int, str, list[str]]]:
    """Of each run: its node, state, loop, iteration, value, and the nodes that it takes from."""
    runs = steps.runs
    names = [steps.nodes[label] for label in runs.labels]
    found, begin = [], 0
    for place, name in enumerate(names):
        end = begin + runs.counts[place]
        loop = steps.loops[runs.loops[place]] if runs.loops[place] >= 0 else ""
        text = steps.texts[runs.texts[place]] if runs.texts[place] >= 0 else ""
        found.append((name, runs.states[place], loop, runs.turns[place], text, [names[taken] for taken in runs.takes[begin:end]]))
        begin = end
    return found


def recorded(graph: gc.Graph, fetches: Any, feeds: dict[Any, Any] | None = None) -> RecordedSteps:
    """The steps of a run."""
    with gc.Session(graph) as session:
        session.run(fetches, feeds or {}, RECORDED)
    steps = steps_of(graph)
    assert steps is not None
    return steps


def test_an_unrecorded_graph_has_no_steps() -> None:
    assert steps_of(gc.Graph()) is None


def test_fed_values_come_first_and_are_taken_by_their_readers() -> None:
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [], name="x")
        y = gc.exp(x, name="y")
    found = rows(recorded(graph, y, {x: 0.0}))
    assert found == [("x", FED, "", 0, "0", []), ("y", 0, "", 0, "1", ["x"])]


def test_iterations_of_frames_have_values_and_end_with_a_dead_body() -> None:
    graph = gc.Graph()
    with graph.as_default():
        one, limit = gc.constant(1), gc.constant(2)
        out = while_loop(
            lambda i: op("Less", [i, enter(limit, "loop", constant=True)]),
            lambda i: [op("Add", [i, enter(one, "loop", constant=True)])],
            [gc.constant(0)],
        )
    found = rows(recorded(graph, out))
    assert [(turn, text) for name, _, loop, turn, text, _ in found if name == "Merge" and loop == "loop"] == [(0, "0"), (1, "1"), (2, "2")]
    assert [(turn, state) for name, state, _, turn, _, _ in found if name == "Add"] == [(0, 0), (1, 0), (2, DEAD)]
    assert next(takes for name, _, _, turn, _, takes in found if name == "Merge" and turn == 1) == ["NextIteration"]
    assert [text for name, state, _, _, text, _ in found if name == "Exit" and state != DEAD] == ["2"]


def test_iterations_of_functional_loops_are_within_their_node() -> None:
    graph = gc.Graph()
    with graph.as_default():
        out = gc.while_loop(lambda i: i < 3, lambda i: i + 1, [gc.constant(0)], name="loop")
    steps = recorded(graph, out)
    found = rows(steps)
    adds = [(name, loop, turn, text) for name, _, loop, turn, text, _ in found if name.endswith("/add")]
    assert [row[1:] for row in adds] == [("loop", 0, "1"), ("loop", 1, "2"), ("loop", 2, "3")]
    names = [row[0] for row in found]
    assert steps.runs.lasts[names.index("loop")] == max(place for place, name in enumerate(names) if name.startswith("loop:"))


def test_a_constant_in_a_frame_has_its_value_in_each_iteration() -> None:
    graph = gc.Graph()
    with graph.as_default():
        end = gc.while_loop(lambda i: i < 2, lambda i: i + 1, [gc.constant(0)], name="loop")
    gc.lower_functional_ops(None, graph)
    found = rows(recorded(graph, end.name))
    inside = [(name, turn, text) for name, state, loop, turn, text, _ in found if loop and "Const" in name and state != DEAD]
    assert [(turn, text) for name, turn, text in inside if "cond" in name] == [(0, "2"), (1, "2"), (2, "2")]
    assert [(turn, text) for name, turn, text in inside if "body" in name] == [(0, "1"), (1, "1")]


@pytest.mark.parametrize("engine", ["plan", "dataflow"])
def test_a_node_that_passes_on_a_second_output_has_the_value_of_that_output(engine: str) -> None:
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [3], name="x")
        second = gc.ops.split(gc.constant(0), x, num_split=3, name="parts")[1]
        y = gc.negative(gc.identity(gc.identity(second, name="once"), name="twice"), name="y")
    with gc.Session(graph, engine=engine) as session:
        session.run(y, {x: [1.0, 2.0, 3.0]}, RECORDED)
    steps = steps_of(graph)
    assert steps is not None
    texts = {name: text for name, _, _, _, text, _ in rows(steps)}
    assert texts["parts"] == "float [1] [1.]; float [1] [2.]; 1 more"
    assert (texts["once"], texts["twice"], texts["y"]) == ("float [1] [2.]", "float [1] [2.]", "float [1] [-2.]")


@pytest.mark.parametrize(("taken", "dead"), [(True, "Exp"), (False, "Neg")])
def test_the_branch_that_was_not_taken_is_dead(taken: bool, dead: str) -> None:
    graph = gc.Graph()
    with graph.as_default():
        pred = gc.placeholder(gc.bool, [], name="pred")
        out = cond(pred, [gc.constant(1.0)], lambda a: [op("Neg", [a])], lambda a: [op("Exp", [a])])
    found = rows(recorded(graph, out, {pred: taken}))
    assert [name for name, state, *_ in found if state == DEAD] == [dead]


def test_bad_values_are_counted_and_a_run_without_values_says_so() -> None:
    graph = gc.Graph()
    with graph.as_default():
        y = gc.log(gc.placeholder(gc.float32, [2], name="x"), name="y")
    steps = recorded(graph, y, {"x:0": [0.0, 1.0]})
    assert (steps.runs.infs, steps.notes) == ([0, 1], [])
    with gc.Session(graph) as session:
        session.run(y, {"x:0": [0.0, 1.0]}, gc.RunOptions(trace=True))
    bare = steps_of(graph)
    assert bare is not None
    assert "without values" in bare.notes[0]
    limited = steps_of(graph, most=1)
    assert limited is not None
    assert "first 1 runs" in limited.notes[-1]


def test_views_get_the_steps_once_and_pages_carry_them() -> None:
    graph = gc.Graph()
    with graph.as_default(), gc.name_scope("scope"):
        y = gc.exp(gc.placeholder(gc.float32, [], name="x"), name="y")
    recorded(graph, y, {"scope/x:0": 0.0})
    _, page = LivePage.of(graph)
    page.ask(type="ready")
    (scene,) = page.ask(type="collapse", id="*")
    first = page.ask_one(type="want_steps")
    assert first["steps"]["nodes"] == ["scope/x", "scope/y"]
    assert first["boxes"].keys() == {"scope/x", "scope/y"}
    assert set(first["boxes"].values()) <= {node["id"] for node in scene["scene"]["nodes"]}
    again = page.ask_one(type="want_steps", known=first["key"])
    assert (again["steps"], again["boxes"]) == (None, first["boxes"])
    data = json.loads(widgets.to_html(graph).partition('id="graphloupe-data">')[2].partition("</script>")[0])
    assert data["steps"]["nodes"] == ["scope/x", "scope/y"]


def many_passing(x: gc.Tensor) -> gc.Tensor:
    """Nodes without kernels: aliases with control inputs, repeated ops, NoOps, further outputs."""
    with gc.control_dependencies([gc.exp(x, name="control")]):
        alias = gc.identity(x * 2.0, name="alias")
    first = gc.square(x, name="first")
    again = gc.square(x, name="again")
    second = gc.identity(gc.split(x, 2, name="parts")[1], name="second")
    with gc.control_dependencies([alias]):
        nothing = gc.no_op(name="nothing")
    with gc.control_dependencies([nothing]):
        return gc.add_n([alias, first + again]) + gc.reduce_sum(second)


PASSED_ON = {"alias": "float [2] [2. 4.]", "again": "float [2] [1. 4.]", "second": "float [1] [2.]", "nothing": ""}


@pytest.mark.parametrize("engine", ["plan", "dataflow"])
@pytest.mark.parametrize("way", ["run", "step"])
def test_a_node_without_a_kernel_has_its_own_value_and_never_that_of_another_input(engine: str, way: str) -> None:
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [2], name="x")
        call = gc.function(many_passing)(x)
        end = gc.add(many_passing(x), call, name="both")
    with gc.Session(graph, engine=engine) as session:
        if way == "run":
            session.run(end, {x: [1.0, 2.0]}, RECORDED)
        else:
            session.step_through(end, {x: [1.0, 2.0]}).finish()
        steps = steps_of(graph)
    assert steps is not None
    found = {name: text for name, _, _, _, text, _ in rows(steps)}
    assert {name: found[name] for name in PASSED_ON} == PASSED_ON
    inner = {name.rpartition("/")[2]: text for name, text in found.items() if ":" in name}  # the optimizer removes some
    assert {"alias", "nothing"} <= set(inner)
    assert [(name, text) for name, text in inner.items() if name in PASSED_ON and text != PASSED_ON[name]] == []


@pytest.mark.parametrize("engine", ["plan", "dataflow"])
def test_an_op_repeated_in_a_loop_has_the_value_of_its_iteration(engine: str) -> None:
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [], name="x")
        end = gc.while_loop(
            lambda i, _: i < 3, lambda i, y: (i + 1, gc.multiply(gc.square(y, name="one"), gc.square(y, name="two"))), [gc.constant(0), x]
        )[1]
    gc.lower_functional_ops(None, graph)
    with gc.Session(graph, engine=engine) as session:
        session.run(end.name, {x: 2.0}, RECORDED)
    steps = steps_of(graph)
    assert steps is not None
    found = {(name.rpartition("/")[2], turn): text for name, state, _, turn, text, _ in rows(steps) if state != DEAD}
    assert [found["two", turn] for turn in range(3)] == [found["one", turn] for turn in range(3)] == ["4", "256", "4.295e+09"]
