"""Runs that are stepped through from a view."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import graphcore as gc
from tests.graphcore.runtime.loop_graphs import enter, op, while_loop
from widgets import messages, requests
from widgets.port import Port
from widgets.scene.steps import RUNNING
from widgets.scene.types import Openings
from widgets.steps import StepTest


class View:
    """The messages of one view of a graph."""

    def __init__(self, graph: gc.Graph) -> None:
        self.sent: list[Any] = []
        self.port = Port(graph, lambda message, _buffers: self.sent.append(message))

    def ask(self, known: str = "") -> messages.StepsMessage:
        self.port.answer(requests.StepsRequest(known=known))
        return self.last()

    def go(self, way: Any = "step", **fields: Any) -> messages.StepsMessage:
        """Let the run go on; a request for a long way is repeated."""
        self.port.answer(requests.LiveStepRequest(way=way, **fields))
        found = self.last()
        return self.go(way, **fields) if found.live is not None and found.live.is_on_way else found

    def last(self) -> messages.StepsMessage:
        return next(message for message in reversed(self.sent) if isinstance(message, messages.StepsMessage))


def name_at(message: messages.StepsMessage) -> str:
    """The node that was last."""
    assert message.steps is not None
    assert message.live is not None
    return message.steps.nodes[message.steps.runs.labels[message.live.row]]


@contextmanager
def layer(values: list[float]) -> Iterator[tuple[View, gc.SteppedRun]]:
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [2], name="x")
        with gc.name_scope("layer"):
            y = gc.log(gc.multiply(x, 2.0, name="twice"), name="log")
        z = gc.reduce_sum(y, name="z")
    session = gc.Session(graph)
    yield View(graph), session.step_through(z, {x: values})
    session.close()


def test_a_view_opens_its_stepper_when_a_run_begins_and_sends_each_step() -> None:
    with layer([1.0, 2.0]) as (view, run):
        view.port.refresh(lambda _what, error: pytest.fail(str(error)))
        view.port.refresh(lambda _what, error: pytest.fail(str(error)))
        assert [message.pane for message in view.sent if isinstance(message, messages.ShowPaneMessage)] == ["stepper"]
        first = view.ask()
        assert first.live is not None
        assert (first.live.state, name_at(first), first.live.next) == ("waits", "x", run.next)
        assert view.ask(first.key).steps is None
        second = view.ask()
        while run.next != "layer/twice":
            second = view.go()
        third = view.go()
        assert third.run == first.run
        assert third.key != second.key
        assert name_at(third) == "layer/twice"
        assert third.live is not None
        assert third.live.next == "layer/log"
        waiting = [(third.steps.nodes[third.steps.runs.labels[row]], name) for row, name in third.live.waiting] if third.steps else []
        assert ("layer/twice", "layer/log") in waiting
        assert ("x", "layer/twice") not in waiting
        while not run.is_over:
            view.go()
        last = view.last()
        assert last.live is not None
        assert (last.live.state, last.live.error, name_at(last)) == ("over", "", "z")
        assert isinstance(view.sent[-1], messages.ChangeMessage)


def test_stepping_over_passes_a_closed_box_and_a_breakpoint_stops_in_it() -> None:
    with layer([0.0, 1.0]) as (view, run):
        view.port.answer(requests.OpeningsReport(openings=Openings(mode="none")))
        while run.next != "layer/twice":
            view.go()
        assert view.go("over").live.next == "z"  # type: ignore[union-attr]  # the run is live
    for stops in ({"on_bad": True}, {"stops": ["layer/log"]}, {"where": [StepTest(quantity="inf", operator=">", number=0)]}):
        with layer([0.0, 1.0]) as (view, run):
            assert name_at(view.go("run", **stops)) == "layer/log"
            assert run.next == "z"
            ended = view.go("run", **stops)
            assert ended.live is not None
            assert ended.live.state == "over"


def test_iterations_of_both_kinds_of_loops_stop_at_a_condition() -> None:
    frames, functional = gc.Graph(), gc.Graph()
    with frames.as_default():
        limit, two = gc.constant(3, name="limit"), gc.constant(2.0, name="two")
        out = while_loop(
            lambda i, _x: op("Less", [i, enter(limit, "turns", constant=True)]),
            lambda i, x: [
                op("Add", [i, enter(gc.constant(1), "turns", constant=True)]),
                op("Mul", [x, enter(two, "turns", constant=True)]),
            ],
            [gc.constant(0), gc.constant(1.0)],
            "turns",
        )
    with functional.as_default():
        body = gc.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, v * 2.0), [gc.constant(0), gc.constant(1.0)], name="loop")
    where = [StepTest(quantity="iteration", operator="==", number=1), StepTest(quantity="name", text="MUL")]
    for graph, fetches, loop in ((frames, out, "turns"), (functional, list(body), "loop")):
        session = gc.Session(graph)
        session.step_through(fetches)
        found = View(graph).go("run", where=where)
        assert found.steps is not None
        assert found.live is not None
        row = found.live.row
        runs = found.steps.runs
        assert (found.steps.loops[runs.loops[row]], runs.turns[row], found.steps.texts[runs.texts[row]]) == (loop, 1, "4")
        assert (RUNNING in runs.states) == (graph is functional)
        session.close()


def test_the_error_of_a_node_ends_a_run_in_the_view() -> None:
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [None], name="x")
        y = gc.add(x, gc.constant([1.0, 2.0]), name="sum")
    session = gc.Session(graph)
    session.step_through(y, {x: [1.0, 2.0, 3.0]})
    found = View(graph).go("run")
    assert found.live is not None
    assert found.live.state == "over"
    assert "Incompatible shapes: [3] vs. [2]" in found.live.error
    assert name_at(found) == "sum"


def test_a_run_recorded_later_takes_the_place_of_one_that_is_over() -> None:
    with layer([1.0, 2.0]) as (view, run):
        run.finish()
        assert view.ask().live is not None
        graph = view.port.graph
        gc.Session(graph).run("z:0", {"x:0": [1.0, 2.0]}, gc.RunOptions(values=True))
        later = view.ask()
        assert later.live is None
        assert later.steps is not None


def test_small_vectors_have_their_values_in_each_iteration() -> None:
    graph = gc.Graph()
    with graph.as_default():
        v = gc.while_loop(lambda i, _: i < 2, lambda i, v: (i + 1, v * 2.0), [gc.constant(0), gc.constant([1.0, 2.0])], name="loop")[1]
    gc.Session(graph).run(v, options=gc.RunOptions(values=True))
    steps = View(graph).ask().steps
    assert steps is not None
    rows = [steps.texts[steps.runs.texts[row]] for row, label in enumerate(steps.runs.labels) if steps.nodes[label].endswith("/mul")]
    assert rows == ["float [2] [2. 4.]", "float [2] [4. 8.]"]


def test_loops_say_which_values_go_on_to_the_next_iteration_and_are_named_as_in_the_picture() -> None:
    graph = gc.Graph()
    with graph.as_default():
        x = gc.constant([1.0, 2.0], name="x")
        v = gc.while_loop(lambda i, _: i < 2, lambda i, v: (i + 1, gc.exp(v * 0.5, name="go")), [gc.constant(0), x], name="loop")[1]
        gradients = gc.gradients(v, [x])
    gc.Session(graph).run([v, gradients], options=gc.RunOptions(values=True))
    steps = View(graph).ask().steps
    assert steps is not None
    carried = {steps.nodes[place] for place in steps.carried}
    assert {"loop:body/go", "loop:body/add"} <= carried
    assert "loop:body/mul" not in carried
    assert "loop" in steps.loops
