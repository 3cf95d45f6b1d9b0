"""Sessions: feeds, fetches, variables, and errors with node and line."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import FailedPreconditionError, GraphError, InvalidArgumentError, NotFoundError


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def test_a_fetch_gives_the_value_with_the_declared_dtype() -> None:
    x = gc.placeholder(gc.float32, [None, 2], name="x")
    y = x * 2.0 + 1.0
    result = gc.Session().run(y, {x: [[1, 2], [3, 4]]})
    assert result.dtype == np.float32
    assert result.tolist() == [[3, 5], [7, 9]]


def test_fetches_nest_and_come_back_in_the_same_structure() -> None:
    a = gc.constant(1.0, name="a")
    b = gc.constant([1, 2], name="b")
    done = gc.no_op("done")
    result = gc.Session().run({"list": [a, (b, "a:0")], "op": done, "name": "done"})
    assert result["list"][0] == 1.0
    assert result["list"][1][0].tolist() == [1, 2]
    assert isinstance(result["list"][1], tuple)
    assert (result["op"], result["name"]) == (None, None)


def test_any_tensor_can_be_fed() -> None:
    a = gc.constant(3.0)
    b = gc.square(a)
    c = gc.sqrt(b)
    assert gc.Session().run(c, {b: 16.0}) == 4.0
    assert gc.Session().run([b, c], {b: 16.0}) == [16.0, 4.0]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.zeros((100, 63), np.float32), "Cannot feed value of shape [100,63] for Tensor 'x:0', which has shape [?,64]"),
        (np.zeros(64, np.float32), "Cannot feed value of shape [64] for Tensor 'x:0', which has shape [?,64]"),
        (np.zeros((1, 64), np.complex64), "Cannot feed a value of type complex64 for Tensor 'x:0', which has dtype float"),
        ([["a"] * 64], "Cannot feed a value of type"),
    ],
)
def test_a_feed_that_does_not_fit_is_refused_before_anything_runs(value: object, text: str) -> None:
    x = gc.placeholder(gc.float32, [None, 64], name="x")
    ran = gc.Variable(0.0, name="ran")
    session = gc.Session()
    session.run(gc.initialize_all_variables())
    with gc.control_dependencies([ran.assign_add(1.0)]):
        y = gc.reduce_sum(x)
    with pytest.raises(InvalidArgumentError) as caught:
        session.run(y, {x: value})
    assert text in caught.value.message
    assert (caught.value.node, caught.value.op) == ("x", "Placeholder")
    assert caught.value.source is not None
    assert "placeholder" in caught.value.source.text
    assert session.run(ran) == 0.0


def test_float_values_are_not_cut_down_to_integers() -> None:
    n = gc.placeholder(gc.int32, [], name="n")
    with pytest.raises(InvalidArgumentError, match="has dtype int32"):
        gc.Session().run(n + 1, {n: 1.5})
    assert gc.Session().run(n + 1, {n: 2}) == 3


def test_an_unfed_placeholder_names_itself_its_type_and_its_line() -> None:
    x = gc.placeholder(gc.float32, [None, 3], name="x")
    y = gc.negative(x)
    with pytest.raises(InvalidArgumentError) as caught:
        gc.Session().run(y)
    assert "You must feed a value for placeholder tensor 'x' with dtype float and shape [?,3]" in caught.value.message
    assert (caught.value.node, caught.value.op) == ("x", "Placeholder")
    assert caught.value.source is not None


def test_the_error_of_an_uninitialised_variable_names_it_and_its_initializer() -> None:
    w = gc.Variable([1.0, 2.0], name="W")
    with pytest.raises(FailedPreconditionError) as caught:
        gc.Session().run(w * 2.0)
    assert "uninitialized value W" in caught.value.message
    assert "initialize_all_variables" in caught.value.message
    assert (caught.value.node, caught.value.op) == ("W", "VariableV2")
    assert caught.value.source is not None
    assert "gc.Variable" in caught.value.source.text


def test_a_foreign_tensor_cannot_be_fetched() -> None:
    with gc.Graph().as_default():
        foreign = gc.constant(1.0, name="foreign")
    with pytest.raises(InvalidArgumentError) as caught:
        gc.Session().run(foreign)
    assert "Cannot fetch" in caught.value.message
    assert "'foreign:0' (op Const) belongs to another graph" in caught.value.message
    assert (caught.value.node, caught.value.op) == ("foreign", "Const")
    assert caught.value.source is not None


def test_unknown_names_and_things_that_are_no_fetch_are_refused() -> None:
    session = gc.Session()
    with pytest.raises(NotFoundError, match="No node named 'nothing' in the graph, which has no nodes"):
        session.run("nothing:0")
    with pytest.raises(InvalidArgumentError, match="Cannot fetch 3"):
        session.run(3)
    with pytest.raises(NotFoundError, match="unable to find feed output foo:0"):
        session.run(gc.constant(1.0), {"foo:0": 1})


def test_variables_keep_their_values_between_runs_and_sessions_do_not_share_them() -> None:
    w = gc.Variable(np.zeros(3, np.float32), name="W")
    step = w.assign_add([1.0, 2.0, 3.0])
    init = gc.initialize_all_variables()
    first, second = gc.Session(), gc.Session()
    for session in (first, second):
        session.run(init)
    first.run(step)
    assert first.run(step).tolist() == [2, 4, 6]
    assert second.run(w).tolist() == [0, 0, 0]


def test_a_variable_can_be_initialised_from_another_alone() -> None:
    w = gc.Variable([2.0], name="W")
    v = gc.Variable(w.initialized_value(), name="V")
    session = gc.Session()
    session.run(v.initializer)
    assert session.run(v).tolist() == [2.0]


def test_fetched_arrays_belong_to_the_caller() -> None:
    w = gc.Variable([1.0, 2.0], name="W")
    session = gc.Session()
    session.run(gc.initialize_all_variables())
    value = session.run(w)
    value[:] = 9
    assert session.run(w).tolist() == [1, 2]


def test_fed_arrays_are_never_changed_nor_kept() -> None:
    x = gc.placeholder(gc.float32, [2], name="x")
    w = gc.Variable([0.0, 0.0], name="W")
    session = gc.Session()
    mine = np.array([1, 2], np.float32)
    session.run(w.assign(x), {x: mine})
    mine[:] = 7
    assert session.run(w).tolist() == [1, 2]
    assert mine.flags.writeable


def test_the_graph_may_grow_between_runs() -> None:
    x = gc.placeholder(gc.float32, [], name="x")
    session = gc.Session()
    y = x + 1.0
    assert session.run(y, {x: 1.0}) == 2.0
    z = y * 3.0
    assert session.run(z, {x: 1.0}) == 6.0


def test_the_same_value_is_computed_once() -> None:
    x = gc.placeholder(gc.float32, [4], name="x")
    a, b = gc.exp(x), gc.exp(x)
    plan = gc.Session().plan([a + b], {x: None})
    assert [node.op for node in plan.nodes].count("Exp") == 1


def test_constants_are_folded_before_the_run() -> None:
    x = gc.placeholder(gc.float32, [4], name="x")
    scale = gc.square(gc.constant(3.0)) + 1.0
    plan = gc.Session().plan(x * scale, {x: None})
    assert [node.op for node in plan.nodes] == ["Mul"]


def test_control_dependencies_order_side_effects() -> None:
    w = gc.Variable(1.0, name="W")
    with gc.control_dependencies([w.assign(5.0)]):
        after = w.read_value() * 2.0
    session = gc.Session()
    session.run(gc.initialize_all_variables())
    assert session.run(after) == 10.0


def test_a_kernel_error_names_the_node_and_its_inputs() -> None:
    x = gc.placeholder(gc.float32, None, name="x")
    y = gc.placeholder(gc.float32, None, name="y")
    z = gc.add(x, y, name="z")
    with pytest.raises(GraphError) as caught:
        gc.Session().run(z, {x: [1, 2, 3], y: [1, 2]})
    assert (caught.value.node, caught.value.op) == ("z", "AddV2")
    assert "x:0 float ?" in caught.value.message
    assert caught.value.source is not None


def test_a_session_works_after_an_error_and_not_after_close() -> None:
    x = gc.placeholder(gc.float32, [], name="x")
    session = gc.Session()
    with pytest.raises(GraphError):
        session.run(x + 1.0)
    assert session.run(x + 1.0, {x: 1.0}) == 2.0
    session.close()
    with pytest.raises(FailedPreconditionError, match="closed Session"):
        session.run(x + 1.0, {x: 1.0})


def test_a_session_is_the_default_within_its_block() -> None:
    a = gc.constant(4.0)
    with gc.Session() as session:
        assert gc.get_default_session() is session
        assert a.eval() == 4.0
    with pytest.raises(FailedPreconditionError, match="no default session"):
        a.eval()
    with gc.Session().as_default() as session:
        assert (a.eval(), gc.get_default_session()) == (4.0, session)


def test_a_node_is_run_in_the_default_session_or_in_a_given_one() -> None:
    x = gc.placeholder(gc.float32, [], name="x")
    w = gc.Variable(1.0, dtype=gc.float32, name="w")
    step = w.assign_add(x).node
    with pytest.raises(FailedPreconditionError, match="Cannot run 'AssignAdd': no default session"):
        step.run({x: 2.0})
    with gc.Session() as session:
        w.initializer.run()
        step.run(feed_dict={x: 2.0})
        assert w.eval() == 3.0
    step.run({x: 4.0}, session=session)
    assert session.run(w) == 7.0


def test_one_session_runs_in_several_threads_at_once() -> None:
    x = gc.placeholder(gc.float32, [None], name="x")
    y = gc.reduce_sum(x * x)
    session = gc.Session()
    results: dict[int, float] = {}

    def work(i: int) -> None:
        for _ in range(50):
            results[i] = float(session.run(y, {x: np.full(10, i, np.float32)}))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {i: 10.0 * i * i for i in range(4)}


def test_a_deep_graph_runs() -> None:
    x = gc.placeholder(gc.float32, [], name="x")
    y = x
    for _ in range(3000):
        y = y + 1.0
    assert gc.Session().run(y, {x: 0.0}) == 3000.0


def test_a_plan_shows_its_source() -> None:
    x = gc.placeholder(gc.float32, [2], name="x")
    plan = gc.Session().plan(gc.exp(x * 2.0), {x: None})
    assert plan.source.startswith("def run(feed0):")
    assert [node.op for node in plan.nodes] == ["Mul", "Exp"]


def test_feeding_the_same_tensor_twice_is_refused() -> None:
    x = gc.placeholder(gc.float32, [], name="x")
    with pytest.raises(InvalidArgumentError, match="fed more than once"):
        gc.Session().run(x + 1.0, {x: 1.0, "x:0": 2.0})


def test_a_variable_whose_cell_changed_its_shape_must_be_initialised_again(graph: gc.Graph) -> None:
    session = gc.Session()
    w = gc.Variable([1.0, 2.0], name="W")
    session.run(gc.initialize_all_variables())
    assert session.run(w).shape == (2,)


def test_random_values_repeat_with_a_seed_and_differ_between_runs() -> None:
    gc.set_random_seed(7)
    drawn = gc.random_uniform([4])
    first, second = gc.Session(), gc.Session()
    a, b = first.run(drawn), first.run(drawn)
    assert not np.array_equal(a, b)
    assert np.array_equal(second.run(drawn), a)


def test_a_session_on_a_graph_that_is_still_empty_runs_that_graph() -> None:
    graph = gc.Graph()
    assert graph  # true even if empty
    session = gc.Session(graph=graph)
    assert session.graph is graph
    with graph.as_default():
        y = gc.constant(2.0) * 3.0
    assert session.run(y) == 6.0
