"""The plan engine: folding, merging, pruning, overwriting, freeing, and generated code."""

from __future__ import annotations

import gc as collector
import linecache
import traceback
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphcore as gc
from graphcore.errors import GraphError
from graphcore.runtime.plan import plan_text
from graphcore.runtime.plan.plan import Plan


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def ops_of(plan: Plan) -> list[str]:
    return [node.op for node in plan.nodes]


def calls_of(plan: Plan) -> list[str]:
    """The lines of its code, without node names."""
    return [line.partition("  # ")[0] for line in plan.source.splitlines()]


def last_plan(session: gc.Session) -> Plan:
    """The plan for the shapes last fed in the session's only run."""
    (prepared,) = session.planner.plans.values()
    assert prepared.specialised is not None
    return list(prepared.specialised._plans.values())[-1]


def test_each_node_is_a_line_and_a_traceback_points_at_it() -> None:
    x = gc.placeholder(gc.float32, None, name="x")
    y = gc.placeholder(gc.float32, None, name="y")
    z = gc.add(gc.exp(x), y, name="z")
    with pytest.raises(GraphError) as caught:
        gc.Session().run(z, {x: [1.0, 2.0, 3.0], y: [1.0, 2.0]})
    frames = traceback.extract_tb(caught.value.__cause__.__traceback__ if caught.value.__cause__ else None)
    (line,) = [frame for frame in frames if frame.filename.startswith("<graphcore plan")]
    assert line.line is not None
    assert line.line.startswith("t0_0 = k1(t0_0, feed1")
    assert line.line.endswith(f"  # z ({z.node.op})")
    assert "on float32 [3], float32 [2]" in caught.value.message


def test_a_plan_shows_how_much_it_runs_from_what_to_what_and_where_its_code_is() -> None:
    many = [gc.placeholder(gc.float32, [2], name=f"x{i}") for i in range(6)]
    p = gc.placeholder(gc.bool_, [], name="p")
    y = gc.add(gc.exp(many[0]), many[1], name="y")
    scale = gc.constant(2, name="scale")  # if fed, its copy has another name

    def shown(fetches: Any, *feeds: gc.Tensor) -> str:
        return repr(gc.Session().plan(fetches, dict.fromkeys(feeds)))

    assert shown(y, *many[:2]) == "<Plan of 2 nodes: x0:0, x1:0 -> y:0; its code is in .source>"
    assert shown(gc.exp(y, name="z"), y) == "<Plan of 1 node: y:0 -> z:0; its code is in .source>"
    assert shown([y, *many], *many).endswith(": x0:0, x1:0, x2:0, x3:0, 2 more -> y:0, x0:0, x1:0, x2:0, 3 more; its code is in .source>")
    assert shown(gc.no_op()) == "<Plan of 0 nodes: nothing -> nothing; its code is in .source>"
    assert ": scale:0, x0:0 -> " in shown(many[0] * gc.cast(scale, gc.float32), scale, many[0])
    merged = gc.ops.merge([gc.exp(branch) for branch in gc.ops.switch(many[0], p)])[0]
    assert shown(merged, many[0], p).endswith(" nodes: x0:0, p:0 -> Merge:0; its code is in .source>")
    assert repr(gc.Session(engine="dataflow").planner.prepare(y, many[:2]).program).startswith("<DataflowProgram of ")


@pytest.mark.parametrize("traced", [False, True])
def test_the_line_of_a_node_in_a_traceback_names_it_also_in_parts_loops_and_recorded_runs(
    traced: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_text, "PART", 2)
    x = gc.placeholder(gc.float32, None, name="x")
    y = gc.placeholder(gc.float32, None, name="y")
    p = gc.placeholder(gc.bool_, [], name="p")
    z = gc.add(gc.exp(gc.tanh(gc.sqrt(x))), y, name="sum")
    taken = gc.get_default_graph().apply_op("Switch", [z, p], name="way").outputs[1]
    options = gc.RunOptions(trace=True) if traced else None
    for fetch, name in ((gc.exp(z), "sum"), (gc.subtract(taken, [1.0, 2.0, 3.0, 4.0], name="difference"), "difference")):
        with pytest.raises(GraphError) as caught:
            gc.Session().run(fetch, {x: [1.0, 2.0, 3.0], y: [1.0] if name == "difference" else [1.0, 2.0], p: True}, options)
        cause = caught.value.__cause__
        assert cause is not None
        shown = "".join(traceback.format_exception(cause))
        assert f"  # {name} (" in shown
        assert caught.value.node == name


def test_values_are_freed_at_their_last_use() -> None:
    x = gc.placeholder(gc.float32, [4], name="x")
    first = gc.exp(x)
    plan = gc.Session().plan([gc.tanh(first) + first, gc.sqrt(x)], {x: None})
    lines = calls_of(plan)
    assert "del" not in lines[1] + lines[2]
    assert lines[3].startswith("    t1_0 = add(t1_0, t0_0, t1_0)")
    assert lines[3].endswith("; del t0_0")


def test_a_result_gets_the_name_of_a_value_read_for_the_last_time() -> None:
    x = gc.placeholder(gc.float32, [2, 2], name="x")
    e, t = gc.exp(x), gc.tanh(x)
    kept = gc.sqrt(e + t)
    plan = gc.Session().plan([gc.matmul(kept, x), kept], {x: None})
    assert [line.strip() for line in calls_of(plan)[1:]] == [
        "t0_0 = exp(feed0)",
        "t1_0 = tanh(feed0)",
        "t0_0 = add(t0_0, t1_0, t0_0); del t1_0",
        "t0_0 = sqrt(t0_0, t0_0)",
        "t4_0 = dot(t0_0, feed0)",  # fetched values are kept
        "return [t4_0, t0_0]",
    ]


_CALLS: list[tuple[Callable[..., gc.Tensor], Callable[..., Any], int]] = [
    (gc.add, np.add, 2),
    (gc.multiply, np.multiply, 2),
    (gc.matmul, np.matmul, 2),
    (gc.maximum, np.maximum, 2),
    (gc.tanh, np.tanh, 1),
    (gc.negative, np.negative, 1),
    (gc.square, np.square, 1),
    (gc.sigmoid, lambda a: 1 / (1 + np.exp(-a)), 1),
]
_numbers = st.integers(0, 30)


@given(
    st.lists(st.tuples(st.sampled_from(_CALLS), _numbers, _numbers), min_size=1, max_size=24), st.sampled_from([2, 3, 7, 2000]), st.data()
)
@settings(max_examples=60, deadline=None)
def test_names_taken_over_never_mix_values(steps: list[tuple[Any, int, int]], part: int, data: st.DataObject) -> None:
    """Any fetches of a random graph, traced or not, give the same values as alone."""
    with gc.Graph().as_default() as graph, np.errstate(all="ignore"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan_text, "PART", part)
        x = gc.placeholder(gc.float64, [2, 2], name="x")
        fed = np.array([[0.1, 0.2], [0.3, -0.4]])
        tensors, arrays = [x], [fed]
        for (ours, numpy, count), *places in steps:
            taken = [place % len(arrays) for place in places[:count]]
            tensors.append(ours(*[tensors[place] for place in taken]))
            arrays.append(numpy(*[arrays[place] for place in taken]))
        wanted = data.draw(st.lists(st.integers(0, len(tensors) - 1), min_size=1, max_size=4))
        session = gc.Session(graph=graph)
        for trace in (False, True, False):
            found = session.run([tensors[i] for i in wanted], {x: fed}, gc.RunOptions(trace=trace))
            for i, value in zip(wanted, found, strict=True):
                np.testing.assert_allclose(value, arrays[i], rtol=1e-12)


def test_an_elementwise_result_goes_into_the_buffer_of_an_input_that_nobody_needs_any_more() -> None:
    x = gc.placeholder(gc.float32, [None, 3], name="x")
    y = gc.tanh(gc.exp(x) * 2.0)
    plan = gc.Session().plan(y, {x: None})
    lines = calls_of(plan)
    assert lines[1].strip() == "t0_0 = exp(feed0)"
    assert lines[2].strip() == "t0_0 = multiply(t0_0, c0, t0_0)"
    assert lines[3].strip() == "t0_0 = tanh(t0_0, t0_0)"


@pytest.mark.parametrize("case", ["feed", "constant", "variable", "fetched", "view", "other shape", "other type", "scalar"])
def test_arrays_visible_elsewhere_are_never_overwritten(case: str) -> None:
    x = gc.placeholder(gc.float32, [2, 3], name="x")
    value = np.arange(6, dtype=np.float32).reshape(2, 3)
    fetches: list[Any]
    w = gc.Variable(value, name="w")
    if case == "feed":
        fetches, expected = [gc.exp(x)], [np.exp(value)]
    elif case == "constant":
        c = gc.constant(value)
        fetches, expected = [c * x, c + x], [value * value, value + value]
    elif case == "variable":
        fetches, expected = [gc.exp(w.value()), w], [np.exp(value), value]
    elif case == "fetched":
        e = gc.exp(x)
        fetches, expected = [e, gc.negative(e)], [np.exp(value), -np.exp(value)]
    elif case == "view":
        e = gc.exp(x)
        flat = gc.reshape(e, [6])
        fetches, expected = [flat, gc.negative(e)], [np.exp(value).reshape(6), -np.exp(value)]
    elif case == "other shape":
        row = gc.exp(gc.reduce_sum(x, 0))
        fetches, expected = [row + gc.exp(x)], [np.exp(value.sum(0)) + np.exp(value)]
    elif case == "other type":
        e = gc.exp(x)
        fetches, expected = [gc.tanh(e) > e], [np.tanh(np.exp(value)) > np.exp(value)]
    else:
        s = gc.exp(gc.reduce_sum(x))
        fetches, expected = [gc.negative(gc.sqrt(s))], [-np.sqrt(np.exp(value.sum()))]
    session = gc.Session()
    session.run(w.initializer)
    for _ in range(2):
        for got, wanted in zip(session.run(fetches, {x: value}), expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-5)
    assert value.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert session.run(w).tolist() == value.tolist()


def test_repeated_shapes_of_feeds_are_constants_and_their_computation_is_left_out() -> None:
    x = gc.placeholder(gc.float32, [None, 3], name="x")
    w = gc.Variable(np.ones((3, 2), np.float32), name="w")
    loss = gc.reduce_mean(gc.reduce_sum(gc.log(gc.softmax(x @ w)), 1))
    (slope,) = gc.gradients(loss, [w])
    session = gc.Session()
    session.run(w.initializer)
    rng = np.random.default_rng(0)
    session.planner.plans.clear()
    for rows in (4, 4, 4, 4, 7, 7, 7, 2):
        value = rng.random((rows, 3), np.float32)
        first = session.run(slope, {x: value})
        np.testing.assert_allclose(first, gc.Session(slope.graph).run(slope, {x: value, w: np.ones((3, 2))}), rtol=1e-5, atol=1e-6)
    general = session.plan(slope, {x: None})
    assert "Shape" in ops_of(general)
    special = last_plan(session)
    assert not {"Shape", "Tile", "DynamicStitch", "Log"} & set(ops_of(special))


def test_random_numbers_go_on_when_a_run_is_planned_for_its_shapes() -> None:
    x = gc.placeholder(gc.float32, [None], name="x")
    drawn = gc.random_uniform(gc.shape(x), seed=5)
    one, other = gc.Session(), gc.Session()
    first = [one.run(drawn, {x: np.zeros(3)}) for _ in range(6)]
    second = []
    for _ in range(6):
        second.append(other.run(drawn, {x: np.zeros(3)}))
        other.planner.plans.clear()
    assert np.array_equal(first, second)
    assert len({row.tobytes() for row in first}) == 6


def test_a_reshape_to_the_same_shape_and_a_sum_over_no_axes_cost_nothing() -> None:
    x = gc.placeholder(gc.float32, [2, 3], name="x")
    y = gc.exp(gc.reduce_sum(gc.reshape(x, [2, -1]), []))
    assert ops_of(gc.Session().plan(y, {x: None})) == ["Exp"]


def test_equal_computations_are_merged_unless_they_have_state() -> None:
    x = gc.placeholder(gc.float32, [3], name="x")
    w = gc.Variable(np.zeros(3, np.float32), name="w")
    same = gc.tanh(gc.exp(x)) * gc.tanh(gc.exp(x))
    assert sorted(ops_of(gc.Session().plan(same, {x: None}))) == ["Exp", "Mul", "Tanh"]
    other = gc.exp(x) + gc.exp(gc.negative(x))
    assert ops_of(gc.Session().plan(other, {x: None})).count("Exp") == 2
    drawn = gc.random_uniform([3], seed=1) - gc.random_uniform([3], seed=1)
    assert ops_of(gc.Session().plan(drawn)).count("RandomUniform") == 2
    one = gc.constant(np.ones(3, np.float32))
    twice = gc.group(w.assign_add(one), w.assign_add(one))
    session = gc.Session()
    session.run(w.initializer)
    session.run(twice)
    assert session.run(w).tolist() == [2, 2, 2]


def test_values_that_are_the_same_in_every_run_are_folded() -> None:
    x = gc.placeholder(gc.float32, [2, 3], name="x")
    size = gc.cast(gc.reduce_prod(gc.shape(x)) * 2, gc.float32)
    plan = gc.Session().plan(x * (gc.constant(2.0) + gc.exp(gc.constant(0.0))) / size, {x: None})
    assert len(plan.nodes) == 2
    assert set(ops_of(plan)) <= {"Mul", "RealDiv", "Div"}
    assert plan.run(np.full((2, 3), 8, np.float32))[0].tolist() == [[2, 2, 2], [2, 2, 2]]


def test_an_update_runs_even_if_only_its_shape_is_needed() -> None:
    w = gc.Variable(np.zeros(3, np.float32), name="w")
    size = gc.shape(w.assign_add([1.0, 1.0, 1.0]))
    session = gc.Session()
    session.run(w.initializer)
    assert session.run(size).tolist() == [3]
    assert session.run(w).tolist() == [1, 1, 1]


def test_a_chain_of_seven_thousand_nodes_runs_in_parts() -> None:
    x = gc.placeholder(gc.float32, [], name="x")
    y, middle = x, x
    for i in range(7_000):
        y = y + 1.0
        middle = y if i == 5_000 else middle
    with gc.Session() as session:
        assert session.run([y, middle], {x: 0.0}) == [7_000.0, 5_001.0]
        source = session.plan([y, middle], {x: None}).source
    assert source.count("def part") == 4


def test_a_part_takes_the_feeds_that_it_reads_and_no_others(graph: gc.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_text, "PART", 2)
    feeds = [gc.placeholder(gc.float32, [2], name=f"x{i}") for i in range(6)]
    total = feeds[0]
    for feed in feeds[1:]:
        total = gc.maximum(total, feed)
    session = gc.Session(graph)
    values = {feed: np.array([i, -i], np.float32) for i, feed in enumerate(feeds)}
    assert session.run([total, feeds[5]], values)[0].tolist() == [5.0, 0.0]
    (prepared,) = session.planner.plans.values()
    assert isinstance(prepared.program, Plan)
    parts = [line.partition("(")[2] for line in prepared.program.source.splitlines() if line.startswith("def part")]
    assert parts == ["v, feed0, feed1, feed2):", "v, feed3, feed4):", "v, feed5):"]


def test_parts_give_the_results_of_one_function_and_errors_find_their_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_text, "PART", 3)
    x = gc.placeholder(gc.float32, None, name="x")
    t = gc.placeholder(gc.float32, None, name="t")
    values = [x]
    for i in range(10):
        values.append(gc.tanh(values[-1] + values[i // 2]))
    z = gc.add(values[-1], t, name="z")
    session = gc.Session()
    fed = np.linspace(-1, 1, 5, dtype=np.float32)
    got = session.run([z, values[3]], {x: fed, t: fed})
    expected = [fed]
    for i in range(10):
        expected.append(np.tanh(expected[-1] + expected[i // 2]))
    np.testing.assert_allclose(got[0], expected[-1] + fed, rtol=1e-6)
    np.testing.assert_allclose(got[1], expected[3], rtol=1e-6)
    with pytest.raises(GraphError) as caught:
        session.run(z, {x: fed, t: [1.0, 2.0]})
    assert caught.value.node == "z"
    assert "float32 [5], float32 [2]" in caught.value.message


def test_a_closed_session_leaves_no_source_text_behind() -> None:
    x = gc.placeholder(gc.float32, [], name="x")
    session = gc.Session()
    session.run(x + 1.0, {x: 1.0})
    (prepared,) = session.planner.plans.values()
    program = prepared.program
    assert isinstance(program, Plan)
    assert program.filename in linecache.cache
    session.close()
    assert program.filename not in linecache.cache


def test_a_session_can_be_collected_while_its_graph_lives_on(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [], name="x")
    session = gc.Session()
    session.run(x + 1.0, {x: 1.0})
    gone = weakref.ref(session)
    del session
    collector.collect()
    assert gone() is None
    gc.constant(1.0)
    assert graph.find("Const") is not None


def test_only_runs_that_depend_on_a_change_are_planned_again() -> None:
    x = gc.placeholder(gc.float32, [2], name="x")
    y, z = gc.exp(x, name="y"), gc.sqrt(x, name="z")
    session = gc.Session()
    session.run(y, {x: [1, 2]})
    session.run(z, {x: [1, 2]})
    before = {key: prepared.program for key, prepared in session.planner.plans.items()}
    gc.constant(3.0, name="new")
    session.run(y, {x: [1, 2]})
    session.run(z, {x: [1, 2]})
    assert {key: prepared.program for key, prepared in session.planner.plans.items()} == before
    y.node.add_attr("_note", 1)
    session.run(y, {x: [1, 2]})
    session.run(z, {x: [1, 2]})
    changed = [key for key, prepared in session.planner.plans.items() if prepared.program is not before[key]]
    assert len(changed) == 1


def test_fetches_in_dicts_and_nested_lists_are_planned_once() -> None:
    x = gc.placeholder(gc.float32, [2], name="x")
    y = gc.exp(x)
    session = gc.Session()
    for _ in range(3):
        assert set(session.run({"a": [y, (y,)], "b": {"c": x}}, {x: [1, 2]})) == {"a", "b"}
    assert len(session.planner.plans) == 1


UNARY = (gc.exp, gc.tanh, gc.negative, gc.square, gc.relu, gc.sigmoid)
BINARY = (gc.add, gc.subtract, gc.multiply, gc.maximum)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_random_graphs_give_the_results_of_their_nodes_run_one_by_one(data: st.DataObject) -> None:
    """The result of each node fetched alone, with all its inputs fed, determines the whole."""
    with gc.Graph().as_default() as graph:
        x = gc.placeholder(gc.float32, [None, 3], name="x")
        made = [x, gc.constant([[0.5, -1.0, 2.0]]), gc.constant([[0.25]])]
        for _ in range(data.draw(st.integers(3, 14))):
            kind = data.draw(st.integers(0, 5))
            a, b = (made[data.draw(st.integers(0, len(made) - 1))] for _ in range(2))
            if kind <= 1:
                made.append(data.draw(st.sampled_from(UNARY))(a))
            elif kind <= 3:
                made.append(data.draw(st.sampled_from(BINARY))(a, b))
            elif kind == 4:
                made.append(gc.reshape(gc.reduce_sum(a), [1, 1]))
            else:
                made.append(gc.identity(gc.reduce_max(a, 0, keepdims=True)))
        fetches = [made[i] for i in data.draw(st.lists(st.integers(0, len(made) - 1), min_size=1, max_size=4))]
        value = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
        session = gc.Session()
        with np.errstate(all="ignore"):
            whole = [session.run(fetches, {x: value}) for _ in range(4)]
            known: dict[gc.Tensor, Any] = {x: value}
            for node in graph.nodes:
                for tensor in node.outputs:
                    if tensor is not x:
                        known[tensor] = session.run(tensor, {t: known[t] for t in dict.fromkeys(node.inputs)})
        for results in whole:
            for tensor, got in zip(fetches, results, strict=True):
                np.testing.assert_allclose(got, known[tensor], rtol=1e-4, atol=1e-5)
        assert value.tolist() == np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3).tolist()


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_gradients_of_random_graphs_are_the_same_before_and_after_shapes_are_known_and_in_both_engines(data: st.DataObject) -> None:
    with gc.Graph().as_default():
        x = gc.placeholder(gc.float32, [None, 3], name="x")
        w = gc.placeholder(gc.float32, [None], name="w")
        made = [x, gc.constant([[0.5, -1.0, 2.0]]), w]
        for _ in range(data.draw(st.integers(2, 8))):
            a, b = (made[data.draw(st.integers(0, len(made) - 1))] for _ in range(2))
            kind = data.draw(st.integers(0, 3))
            if kind == 0:
                made.append(gc.tanh(a))
            elif kind <= 2:
                made.append(data.draw(st.sampled_from(BINARY))(a, b))
            else:
                made.append(gc.reduce_mean(a * b, 0, keepdims=True))
        slopes = [slope for slope in gc.gradients(gc.reduce_sum(gc.tanh(made[-1])), [x, w]) if slope is not None]
        session, other = gc.Session(), gc.Session(engine="dataflow")
        for rows, size in ((2, 3), (2, 3), (2, 3), (4, 1), (2, 3), (4, 1), (4, 1)):
            feeds = {x: np.linspace(-1, 1, rows * 3, dtype=np.float32).reshape(rows, 3), w: np.linspace(0.5, 1, size, dtype=np.float32)}
            for mine, theirs in zip(session.run(slopes, feeds), other.run(slopes, feeds), strict=True):
                np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)
