"""`gc.cond`, `gc.switch_case` and `gc.case`: Python functions as branches of one node."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import InvalidArgumentError
from tests.graphcore.api.cell_runs import Cells

X = np.array([[1.0, -2.0], [3.0, 4.0]], np.float32)


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def run(fetches: Any, feed: dict[Any, Any] | None = None) -> Any:
    with gc.Session() as session:
        return session.run(fetches, feed)


def test_cond_is_one_node_that_runs_one_of_two_functions(graph: gc.Graph) -> None:
    pred, x = gc.placeholder(gc.bool_, [], name="p"), gc.placeholder(gc.float32, [2, 2], name="x")
    y = gc.cond(pred, lambda: x * 2.0, lambda: -x)
    assert [node.op for node in graph.nodes] == ["Placeholder", "Placeholder", "StatelessIf"]
    assert graph.library.list_function_names() == ["cond_true", "cond_false"]
    np.testing.assert_array_equal(run(y, {pred: True, x: X}), X * 2)
    np.testing.assert_array_equal(run(y, {pred: False, x: X}), -X)


def test_only_the_branch_that_is_chosen_runs() -> None:
    pred, x = gc.placeholder(gc.bool_, [], name="p"), gc.placeholder(gc.float32, [], name="x")
    checked = gc.cond(pred, lambda: gc.apply_op("CheckNumerics", [x], {"message": "bad"}), lambda: gc.constant(0.0))
    assert run(checked, {pred: False, x: np.nan}) == 0
    with pytest.raises(InvalidArgumentError, match="bad"):
        run(checked, {pred: True, x: np.nan})


def test_the_shape_is_what_all_branches_agree_on() -> None:
    x = gc.placeholder(gc.float32, [2, None], name="x")
    y = gc.cond(True, lambda: (x, x * 2.0), lambda: (gc.ones([2, 5]), -x))
    assert [str(tensor.shape) for tensor in y] == ["[2,?]", "[2,?]"]


@pytest.mark.parametrize(
    ("value", "taken"),
    [(0.0, False), (0.5, True), (-1, True), (0, False), ("", False), ("no", True)],
)
def test_what_is_no_bool_is_true_as_in_the_reference(value: Any, taken: bool) -> None:
    y = gc.cond(gc.constant(value), lambda: gc.constant(1), lambda: gc.constant(0))
    assert run(y) == int(taken)


def test_branches_give_structures_and_constants_take_the_type_of_the_other_branch() -> None:
    pred, x = gc.placeholder(gc.bool_, [], name="p"), gc.placeholder(gc.float32, [2, 2], name="x")
    y = gc.cond(pred, lambda: {"a": x, "b": (x, [1])}, lambda: {"b": (0, [2]), "a": x + 1.0})
    assert list(y) == ["a", "b"]
    result = run(y, {pred: False, x: X})
    np.testing.assert_array_equal(result["a"], X + 1)
    assert result["b"][0].dtype == np.float32
    assert result["b"] == (0.0, [2])


def test_an_error_within_a_branch_points_at_the_line_in_it() -> None:
    x = gc.placeholder(gc.float32, [], name="x")

    def checked() -> Any:
        inverse = 1.0 / x
        return gc.apply_op("CheckNumerics", [inverse], {"message": "not in the branch's line"})

    y = gc.cond(True, checked, lambda: x)
    with pytest.raises(InvalidArgumentError, match=r"made in test_branches.py, line \d+: return gc.apply_op\(.CheckNumerics"):
        run(y, {x: 0.0})


def test_conds_within_conds_take_what_they_need_from_outside() -> None:
    pred, x, z = gc.placeholder(gc.bool_, [], name="p"), gc.placeholder(gc.float32, [], name="x"), gc.constant(3.0)
    y = gc.cond(pred, lambda: gc.cond(x > 0.0, lambda: x * z, lambda: z), lambda: x)
    assert [run(y, {pred: True, x: value}) for value in (2.0, -2.0)] == [6.0, 3.0]
    assert run(y, {pred: False, x: 7.0}) == 7.0


def test_a_branch_with_state_makes_an_if_with_state() -> None:
    y = gc.cond(True, lambda: gc.random_uniform([3], seed=1), lambda: gc.zeros([3]))
    assert y.node.op == "If"


@pytest.mark.parametrize(
    ("false_fn", "text"),
    [
        (
            lambda: gc.constant(3),
            r"Output 0 of 'cond': required one type in all branches. true gives float \[2\] from 'mul:0', made in test_",
        ),
        (lambda: gc.constant(3), r"false gives int32 \[\] from 'Const:0', made in test_branches.py, line \d+: \(lambda: gc.constant\(3\)"),
        (lambda: (gc.constant(1.0), 2), r"same number of values in the same form: true gives \* \(.*\), false gives \(\*, \*\)"),
        (lambda: None, r"same form: true gives \* \(.*\), false gives None"),
    ],
)
def test_branches_that_differ_are_refused_and_leave_nothing(graph: gc.Graph, false_fn: Callable[[], Any], text: str) -> None:
    x = gc.placeholder(gc.float32, [2], name="x")
    with pytest.raises(InvalidArgumentError, match=text):
        gc.cond(True, lambda: x * 2.0, false_fn)
    assert [node.name for node in graph.nodes] == ["x"]
    assert graph.library.num_functions == 0


def test_a_branch_may_wait_for_nodes_outside_which_then_run_in_any_case() -> None:
    p, count = gc.placeholder(gc.bool, []), gc.Variable(0.0)
    counted = count.assign_add(1.0)

    def waiting() -> Any:
        with gc.control_dependencies([gc.group(counted), counted]):
            return gc.cond(p, lambda: gc.identity(counted), lambda: gc.constant(-2.0))

    y = gc.cond(p, waiting, lambda: gc.constant(-1.0))
    all_counted = gc.group(counted)
    done = gc.cond(p, lambda: all_counted, gc.no_op)
    with gc.Session() as session:
        session.run(count.initializer)
        assert [float(session.run(y, {p: value})) for value in (True, False, True)] == [1.0, -1.0, 3.0]
        session.run(done, {p: False})
        assert session.run(count) == 4.0


def test_a_branch_of_a_loop_waits_for_what_is_outside() -> None:
    count = gc.Variable(0.0, name="count")
    changed = count.assign_add(1.0)

    def body(i: gc.Tensor) -> gc.Tensor:
        with gc.control_dependencies([changed]):
            return i + 1

    y = gc.while_loop(lambda i: i < 3, lambda i: gc.cond(i > 1, lambda: body(i), lambda: i + 1), [0])
    with gc.Session() as session:
        session.run(count.initializer)
        assert session.run(y) == 3
        assert session.run(count) == 1.0


def test_switch_case_runs_the_branch_of_that_number_and_the_default_otherwise() -> None:
    index, x = gc.placeholder(gc.int32, [], name="i"), gc.constant(10.0)
    y = gc.switch_case(index, {1: lambda: x * 4.0, 0: lambda: x * 2.0}, default=lambda: x * 16.0)
    assert y.node.op == "StatelessCase"
    assert [float(run(y, {index: i})) for i in (0, 1, 2, -1)] == [20.0, 40.0, 160.0, 160.0]
    last = gc.switch_case(index, [lambda: x, lambda: -x])
    assert [float(run(last, {index: i})) for i in (0, 1, 7)] == [10.0, -10.0, -10.0]


def test_switch_case_wants_its_branches_numbered_and_its_index_to_be_an_int32() -> None:
    with pytest.raises(InvalidArgumentError, match=r"must be numbered from 0 on, got the numbers \[0, 2\]"):
        gc.switch_case(0, {0: lambda: 1, 2: lambda: 2})
    with pytest.raises(InvalidArgumentError, match=r"branch_index of switch_case must be an int32, got float"):
        gc.switch_case(gc.constant(1.0), [lambda: 1])


def test_case_takes_the_first_true_condition() -> None:
    x = gc.placeholder(gc.float32, [], name="x")
    y = gc.case([(x > 100.0, lambda: x), (x > 10.0, lambda: x * 10.0)], default=lambda: x * 0.5)
    assert [float(run(y, {x: value})) for value in (200.0, 20.0, 2.0)] == [200.0, 200.0, 1.0]


def test_a_cell_that_runs_again_replaces_the_node_and_its_functions(graph: gc.Graph) -> None:
    cells = Cells(graph)
    factor = [2.0]
    x = gc.placeholder(gc.float32, [], name="x")
    cells.run("a", lambda: gc.cond(x > 0.0, lambda: x * factor[0], lambda: gc.cond(x > -1.0, lambda: x, lambda: x * 0.0)))
    node = graph.get_operation_by_name("cond")
    cells.run("b", lambda: gc.add(graph.get_tensor_by_name("cond:0"), 1.0, name="after"))
    session = gc.Session()
    assert session.run("after:0", {x: 3.0}) == 7
    names = set(graph.library.list_function_names())

    cells.run("a", lambda: gc.cond(x > 0.0, lambda: x * factor[0], lambda: gc.cond(x > -1.0, lambda: x, lambda: x * 0.0)))
    assert set(graph.library.list_function_names()) == names, "the same code makes the same functions"
    factor[0] = 5.0
    cells.run("a", lambda: gc.cond(x > 0.0, lambda: x * factor[0], lambda: gc.cond(x > -1.0, lambda: x, lambda: x * 0.0)))
    assert graph.get_operation_by_name("cond") is node
    assert session.run("after:0", {x: 3.0}) == 16
    assert graph.library.num_functions == len(names), "what nothing uses any more is gone"
    assert graph.find("cond_1") is None


def test_a_graph_function_called_within_branches_is_traced_once(graph: gc.Graph) -> None:
    traced: list[int] = []

    @gc.function
    def twice(value: gc.Tensor) -> Any:
        traced.append(1)
        return value * 2.0

    x = gc.placeholder(gc.float32, [], name="x")
    cells = Cells(graph)
    cells.run("a", lambda: gc.cond(x > 0.0, lambda: twice(x), lambda: twice(x) + 1.0))
    names = set(graph.library.list_function_names())
    cells.run("a", lambda: gc.cond(x > 0.0, lambda: twice(x), lambda: twice(x) + 1.0))
    assert len(traced) == 1
    assert set(graph.library.list_function_names()) == names == {"twice", "cond_true", "cond_false"}
    assert [run("cond:0", {x: value}) for value in (3.0, -3.0)] == [6.0, -5.0]
