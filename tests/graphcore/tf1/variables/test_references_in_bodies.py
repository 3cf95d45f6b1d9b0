"""Reference variables that branches, loops and functions change, as in TensorFlow 1."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import UnimplementedError
from tests.graphcore.api.cell_runs import Cells

TF1: Any = import_module("graphcore.compat.v1")


@pytest.fixture
def graph() -> Iterator[gc.Graph]:
    graph = gc.Graph()
    with graph.as_default():
        yield graph


def outcomes(fetch: Any, feeds: list[dict[Any, Any]], variables: list[gc.Variable], **options: Any) -> list[Any]:
    """For each feed the fetched value and the variables afterwards."""
    found = []
    with gc.Session(variables[0].graph, **options) as session:
        session.run([variable.initializer for variable in variables])
        for feed in feeds:
            value = session.run(fetch, feed)
            found.append((None if value is None else np.asarray(value).tolist(), *[float(each) for each in session.run(variables)]))
    return found


ENGINES: list[dict[str, Any]] = [{}, {"engine": "dataflow"}, {"devices": ["/cpu:0", "/cpu:1"]}]


@pytest.mark.parametrize("options", ENGINES, ids=["plan", "dataflow", "devices"])
def test_a_branch_changes_a_variable_only_if_it_is_taken(graph: gc.Graph, options: dict[str, Any]) -> None:
    with gc.device("/cpu:1"):
        mean = gc.Variable(1.0, name="mean")
    batch, training = gc.placeholder(gc.float32, [], name="batch"), gc.placeholder(gc.bool_, [], name="training")

    def train() -> Any:
        moved = mean.assign(mean * 0.5 + batch * 0.5)
        with gc.control_dependencies([moved]):
            return batch * 10.0, mean + 0.0

    found = gc.stack(gc.cond(training, train, lambda: (mean * 10.0, mean + 0.0)))
    feeds = [{batch: 3.0, training: True}, {batch: 9.0, training: False}, {batch: 4.0, training: True}]
    assert outcomes(found, feeds, [mean], **options) == [([30.0, 2.0], 2.0), ([20.0, 2.0], 2.0), ([40.0, 3.0], 3.0)]


@pytest.mark.parametrize("options", ENGINES[:2], ids=["plan", "dataflow"])
def test_each_round_of_a_loop_reads_what_the_one_before_has_assigned(graph: gc.Graph, options: dict[str, Any]) -> None:
    count = gc.Variable(1.0, name="count")

    def body(i: gc.Tensor, total: gc.Tensor) -> Any:
        def more() -> gc.Tensor:
            with gc.control_dependencies([count.assign(count * 2.0)]):
                return count + 0.0

        return i + 1, total * 10.0 + gc.cond(count < 3.0, more, lambda: count * 0.0)

    found = gc.while_loop(lambda i, _: i < 3, body, [0, 0.0])[1]
    assert outcomes(found, [{}, {}], [count], **options) == [(240.0, 4.0), (0.0, 4.0)]

    def add_ten(i: gc.Tensor) -> Any:
        with gc.control_dependencies([count.assign_add(10.0)]):
            return i + 1

    until = gc.while_loop(lambda _: count < 50.0, add_ten, [0])
    assert outcomes(until, [{}], [count], **options) == [(5.0, 51.0)]


def test_what_waits_for_a_call_reads_after_its_changes(graph: gc.Graph) -> None:
    count = gc.Variable(1.0, name="count")
    step = gc.function(lambda x: count.assign_add(x * 1.0))
    called = step(gc.constant(2.0))
    with gc.control_dependencies([called]):
        after = gc.stack([called, count * 10.0])
    assert outcomes(after, [{}, {}], [count]) == [([3.0, 30.0], 3.0), ([5.0, 50.0], 5.0)]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda v: v.assign_sub([1.0, 1.0]), [0.0, 1.0]),
        (lambda v: v.scatter_add([1], [5.0]), [1.0, 7.0]),
        (lambda v: TF1.scatter_update(v, [0], [9.0]), [9.0, 2.0]),
        (lambda v: TF1.assign(v, [3.0, 4.0], validate_shape=False), [3.0, 4.0]),
        (lambda v: v.read_value(), [1.0, 2.0]),
    ],
    ids=["assign_sub", "scatter_add", "scatter_update", "assign", "read_value"],
)
def test_all_changes_have_the_new_value_in_a_branch(
    graph: gc.Graph, change: Callable[[gc.Variable], gc.Tensor], expected: list[float]
) -> None:
    variable = gc.Variable([1.0, 2.0], name="variable")
    found = gc.cond(gc.constant(True), lambda: change(variable), lambda: variable * 0.0)
    with gc.Session(graph) as session:
        session.run(variable.initializer)
        assert session.run(found).tolist() == expected
        assert session.run(variable).tolist() == expected


def test_a_branch_on_one_device_changes_a_variable_on_another(graph: gc.Graph) -> None:
    with gc.device("/job:worker/task:1/cpu:0"):
        count = gc.Variable(1.0, name="count")
    with gc.device("/job:worker/task:0/cpu:0"):
        found = gc.cond(gc.constant(True), lambda: count.assign_add(1.0), lambda: count * 1.0)
    devices = ["/job:worker/task:0/cpu:0", "/job:worker/task:1/cpu:0"]
    assert outcomes(found, [{}, {}], [count], devices=devices) == [(2.0, 2.0), (3.0, 3.0)]


def test_one_body_changes_a_variable_twice(graph: gc.Graph) -> None:
    count = gc.Variable(1.0, name="count")

    def change() -> gc.Tensor:
        with gc.control_dependencies([count.assign_add(1.0)]):
            between = count * 10.0
        with gc.control_dependencies([between]):
            return count.assign(count * 5.0) + between

    assert outcomes(gc.cond(gc.constant(True), change, lambda: count * 1.0), [{}, {}], [count]) == [(30.0, 10.0), (165.0, 55.0)]
    assert sum(node.op == "VarHandleOp" for node in graph.nodes) == 1


def test_a_gradient_through_a_read_after_a_change_is_refused_and_others_are_there(graph: gc.Graph) -> None:
    weight = gc.Variable(3.0, name="weight")
    changed = gc.cond(gc.constant(True), lambda: weight.assign_add(1.0), lambda: weight * 1.0)
    with pytest.raises(UnimplementedError, match="reads variable 'weight/handle' within a function"):
        gc.gradients(changed * 2.0, weight)
    (gradient,) = gc.gradients(gc.square(weight), weight)
    assert outcomes(gradient, [{}], [weight]) == [(6.0, 3.0)]


def test_a_branch_follows_the_variable_that_its_cell_makes_anew(graph: gc.Graph) -> None:
    names: dict[str, Any] = {}
    cells = Cells(graph)
    cells.run("variable", lambda: names.update(v=gc.Variable([1.0, 2.0], name="v")))
    cells.run(
        "branch",
        lambda: names.update(found=gc.cond(gc.constant(True), lambda: names["v"].assign_add(names["v"]), lambda: names["v"] * 1.0)),
    )
    cells.run("variable", lambda: names.update(v=gc.Variable([1.0, 2.0, 3.0], name="v")))
    with gc.Session(graph) as session:
        session.run(names["v"].initializer)
        found = graph.find("cond")
        assert found is not None
        assert found.outputs[0].shape.as_list() == [3]
        assert session.run("cond:0").tolist() == [2.0, 4.0, 6.0]
        assert session.run(names["v"]).tolist() == [2.0, 4.0, 6.0]


def resources() -> tuple[gc.Variable, gc.Variable]:
    """Two resource variables."""
    return gc.Variable(1.0, name="v", use_resource=True), gc.Variable(2.0, name="w", use_resource=True)


def test_a_branch_reads_a_resource_after_the_assignments_that_its_call_waits_for() -> None:
    with gc.Graph().as_default(), gc.Session() as session:
        v, w = resources()
        yes = gc.constant(True)
        with gc.control_dependencies([v.assign(5.0)]):
            branch = gc.cond(yes, lambda: v * w, lambda: w)
            nested = gc.cond(yes, lambda: gc.cond(yes, lambda: v + w, lambda: w), lambda: w)
            _, loop = gc.while_loop(lambda i, _: i < 2, lambda i, s: (i + 1, s + v), [0, 0.0])
            gradient = gc.gradients(branch, [v])[0]
        session.run(gc.initialize_all_variables())
        assert session.run([branch, nested, loop, gradient]) == [10.0, 7.0, 10.0, 2.0]


def test_bodies_read_resources_after_their_own_changes_and_rounds_those_of_the_rounds_before() -> None:
    with gc.Graph().as_default(), gc.Session() as session:
        v, w = resources()
        start = gc.initialize_all_variables()

        def step(i: gc.Tensor, total: gc.Tensor) -> tuple[gc.Tensor, gc.Tensor]:
            return i + 1, total + v.assign(v * 2.0)

        def changed() -> gc.Tensor:
            with gc.control_dependencies([w.assign(4.0)]):
                return gc.reduce_sum(gc.stack([w, w + 1.0]))

        for built, expected in (
            (gc.while_loop(lambda i, _: i < 3, step, [0, 0.0])[1], 2.0 + 4.0 + 8.0),
            (gc.while_loop(lambda *_: v < 5.0, step, [0, 0.0])[1], 2.0 + 4.0 + 8.0),
            (gc.cond(gc.constant(True), changed, lambda: w), 9.0),
            (gc.function(changed)(), 9.0),
        ):
            session.run(start)
            assert session.run(built) == expected
