"""Each check of `gc.testing` accepts its own case; failures say what was required and what came."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphcore as gc
from graphcore.testing import CheckFailed


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def failure(check: Callable[..., None], *args: Any, **keywords: Any) -> str:
    with pytest.raises(CheckFailed) as caught:
        check(*args, **keywords)
    assert isinstance(caught.value, AssertionError)
    return str(caught.value)


def classifier(prefix: str = "", activation: Callable[..., gc.Tensor] = gc.tanh) -> gc.Tensor:
    x = gc.placeholder(gc.float32, [None, 4], name=f"{prefix}x")
    w = gc.constant(np.ones((4, 3), np.float32), name=f"{prefix}w")
    return activation(gc.matmul(x, w, name=f"{prefix}product"), name=f"{prefix}y")


# ---- same_graph ---------------------------------------------------------------------------------------------------------


def test_graphs_with_other_names_are_the_same() -> None:
    gc.testing.same_graph(classifier("mine_"), classifier("theirs_"))


def test_a_graph_is_compared_with_its_file(tmp_path: Path, graph: gc.Graph) -> None:
    classifier()
    gc.save(graph, tmp_path / "graph.pb")
    gc.testing.same_graph(graph, tmp_path / "graph.pb")


def test_another_op_is_a_difference() -> None:
    text = failure(gc.testing.same_graph, classifier("a/"), classifier("b/", gc.sigmoid))
    assert "Tanh" in text
    assert "Sigmoid" in text


def test_a_difference_is_shown_at_its_place_whatever_the_names_are() -> None:
    mine = gc.reduce_mean(
        gc.matmul(gc.placeholder(gc.float32, [2, 3], name="mine"), gc.constant(np.ones((2, 3), np.float32)), transpose_b=True)
    )
    other = gc.reduce_mean(
        gc.matmul(gc.placeholder(gc.float32, [2, 3], name="other"), gc.constant(np.ones((2, 3), np.float32)), transpose_a=True)
    )
    text = failure(gc.testing.same_graph, mine, other)
    assert "transpose_b" in text
    assert "added" not in text
    assert "removed" not in text


@pytest.mark.parametrize(
    "other",
    [
        lambda: gc.subtract(gc.constant(2.0), gc.constant(1.0)),
        lambda: gc.subtract(gc.constant(2.0) - 0.0, gc.constant(1.0)),
        lambda: gc.add(gc.constant(1.0), gc.constant(2.0)),
        lambda: gc.subtract((one := gc.constant(1.0)), one),
    ],
)
def test_order_of_inputs_values_and_sharing_count(other: Callable[[], gc.Tensor]) -> None:
    failure(gc.testing.same_graph, other(), gc.subtract(gc.constant(1.0), gc.constant(2.0)))


def test_control_edges_and_devices_count() -> None:
    plain = gc.identity(gc.constant(1.0))
    with gc.control_dependencies([gc.no_op()]):
        waiting = gc.identity(gc.constant(1.0))
    with gc.device("/cpu:0"):
        placed = gc.identity(gc.constant(1.0))
    failure(gc.testing.same_graph, waiting, plain)
    assert "device" in failure(gc.testing.same_graph, placed, plain)


def test_other_outputs_of_the_same_node_are_a_difference() -> None:
    first, second = gc.ops.split(gc.constant(0), gc.constant([1.0, 2.0]), num_split=2)
    assert "other outputs" in failure(gc.testing.same_graph, first, second)


def test_functions_are_compared_by_their_definitions() -> None:
    @gc.function
    def twice(x: Any) -> Any:
        return x + x

    @gc.function
    def doubled(x: Any) -> Any:
        return x + x

    @gc.function
    def squared(x: Any) -> Any:
        return x * x

    gc.testing.same_graph(twice(gc.constant(1.0)), doubled(gc.constant(1.0)))
    failure(gc.testing.same_graph, twice(gc.constant(1.0)), squared(gc.constant(1.0)))
    assert "function" not in failure(gc.testing.same_graph, gc.tanh(gc.constant(1.0)), gc.sigmoid(gc.constant(1.0)))


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.booleans()), min_size=1, max_size=8), st.randoms())
def test_the_order_in_which_nodes_are_made_does_not_count(steps: list[tuple[int, int, bool]], random: Any) -> None:
    def build(shuffled: bool) -> gc.Graph:
        with gc.Graph().as_default() as graph:
            starts = [
                gc.placeholder(gc.float32, [], name=f"s{number}") for number in (random.sample(range(3), 3) if shuffled else range(3))
            ]
            tensors = sorted(starts, key=lambda tensor: tensor.name)
            for first, second, add in steps:
                one, other = tensors[first % len(tensors)], tensors[second % len(tensors)]
                tensors.append(gc.add(one, other) if add else gc.subtract(one, other, name=f"n{random.randrange(10**6)}"))
        return graph

    gc.testing.same_graph(build(True), build(False))


def test_symmetric_graphs_that_differ_in_their_cycles_of_sharing_are_told_apart() -> None:
    def ring(lengths: list[int]) -> gc.Graph:
        with gc.Graph().as_default() as graph:
            for length in lengths:
                starts = [gc.placeholder(gc.float32, []) for _ in range(length)]
                for number in range(length):
                    gc.add_n([starts[number], starts[(number + 1) % length]])
        return graph

    gc.testing.same_graph(ring([3, 3]), ring([3, 3]))
    failure(gc.testing.same_graph, ring([3, 3]), ring([6]))


# ---- shapes, ops, gradients, devices --------------------------------------------------------------------------------------


def test_a_shape_is_compared_size_by_size() -> None:
    y = classifier()
    gc.testing.shape_is(y, [None, 3])
    gc.testing.shape_is("y:0", [None, 3])
    gc.testing.shape_is("y", gc.Shape([None, 3]))
    text = failure(gc.testing.shape_is, y, [None, 10])
    assert text.startswith("Required 'y:0' of shape [?,10], got [?,3]\n")
    assert "`w` (op Const)" in text


def test_a_name_that_is_missing_fails_the_check() -> None:
    assert "scores" in failure(gc.testing.shape_is, "scores:0", [1])


def test_ops_are_counted_in_what_a_tensor_needs_and_in_functions() -> None:
    y = classifier()
    gc.testing.uses_ops(y, ["MatMul"])
    gc.testing.uses_ops(y, {"MatMul": 1, "Sigmoid": 0}, without=["Softmax"])
    assert "Required 2 nodes of op MatMul, got 1: 'product'" in failure(gc.testing.uses_ops, y, {"MatMul": 2})
    assert "test_checks.py, line" in failure(gc.testing.uses_ops, y, [], without=["Tanh"])
    text = failure(gc.testing.uses_ops, y, ["Softmax"])
    assert text == "Required a node of op Softmax, got none\nThe ops are: 1 Const, 1 MatMul, 1 Placeholder, 1 Tanh"

    @gc.function
    def softened(x: Any) -> Any:
        return gc.softmax(x)

    gc.testing.uses_ops(softened(y), ["Softmax"])


def test_a_gradient_that_is_none_names_the_cut() -> None:
    y = classifier()
    gc.testing.has_gradient_path(y, "x:0")
    rounded = gc.cast(gc.cast(y, gc.int32), gc.float32)
    text = failure(gc.testing.has_gradient_path, rounded, "x:0")
    assert "got none" in text
    assert "'Cast'" in text


def test_a_gradient_that_should_be_none_is_told_with_its_path() -> None:
    y = classifier()
    gc.testing.has_no_gradient_path(gc.stop_gradient(y), "x:0")
    text = failure(gc.testing.has_no_gradient_path, y, "x:0")
    assert text.startswith("Required no gradient of ")
    assert "along 1 path" in text


def test_a_device_may_leave_parts_out() -> None:
    devices = gc.simulated_devices("2 tasks x (1 cpu, 2 gpu)")
    with gc.device("/task:1/gpu:1"):
        y = gc.identity(gc.constant(1.0), name="y")
    gc.testing.placed_on(y, "/gpu:1", devices)
    assert "requested" in failure(gc.testing.placed_on, y, "/gpu:0", devices)


# ---- runs -----------------------------------------------------------------------------------------------------------------


def test_values_are_compared_within_tolerances() -> None:
    v = gc.Variable([1.0, 2.0], name="v")
    y = gc.multiply(v, 3.0, name="y")
    gc.testing.runs_to(y, [3.0, 6.0])
    gc.testing.runs_to([y, "v/read:0"], [[3.0, 6.0 + 1e-7], [1.0, 2.0]])
    text = failure(gc.testing.runs_to, y, [3.0, 7.0])
    assert text.startswith("Required 'y:0' (test_checks.py, line ")
    assert "to run to 7.0 at [1], got 6.0" in text
    assert "1 of 2 elements differ" in text
    assert "of shape [3], got [2]" in failure(gc.testing.runs_to, y, [1, 2, 3])
    assert failure(gc.testing.runs_to, [y], 3.0).startswith("Required one tensor, got a list of 1: take the tensor out")


def test_a_run_may_use_a_session_and_feeds() -> None:
    x = gc.placeholder(gc.float32, [], name="x")
    v = gc.Variable(0.0, name="v")
    with gc.Session() as session:
        session.run(v.assign(5.0))
        gc.testing.runs_to(x + v, 7.0, {x: 2.0}, session=session)
    gc.testing.runs_to(x + v, 2.0, {x: 2.0})


def test_checks_leave_the_graph_as_it_is(graph: gc.Graph) -> None:
    loss, step = regression(0.1)
    before = graph.version
    gc.testing.runs_to(loss, 4.0, {"x:0": 1.0})
    gc.testing.trains(loss, step, {"x:0": 1.0}, below=0.01, steps=30)
    gc.testing.shape_is(loss, [])
    gc.testing.has_gradient_path(loss, "w/read:0")
    assert graph.version == before


def regression(rate: float) -> tuple[gc.Tensor, gc.Node]:
    x = gc.placeholder(gc.float32, [], name="x")
    w = gc.Variable(0.0, name="w")
    loss = gc.square(x * w - 2.0, name="loss")
    return loss, gc.GradientDescentOptimizer(rate).minimize(loss)


def test_training_passes_as_soon_as_the_loss_is_below_the_bound() -> None:
    loss, step = regression(0.1)
    seen = []

    def feeds(number: int) -> dict[str, float]:
        seen.append(number)
        return {"x:0": 1.0}

    gc.testing.trains(loss, step, feeds, below=1.0, steps=100)
    assert seen == [0, 1, 2, 3, 4]


def test_training_that_stalls_or_diverges_shows_the_losses() -> None:
    loss, step = regression(0.001)
    text = failure(gc.testing.trains, loss, step, {"x:0": 1.0}, below=0.1, steps=3)
    assert "below 0.1 within 3 steps, the least was 3.968" in text
    assert "losses: 4 (step 1), 3.984 (step 2), 3.968 (step 3)" in text
    loss, step = regression(1e30)
    assert "was inf in step" in failure(gc.testing.trains, loss, step, [{"x_1:0": 1.0}, {"x_1:0": 2.0}], below=0.1, steps=9)


def test_training_with_random_ops_is_the_same_each_time() -> None:
    w = gc.Variable(gc.random_normal([]), name="w")
    loss = gc.square(w - 2.0)
    step = gc.GradientDescentOptimizer(0.0).minimize(loss)

    def text(seed: int) -> str:
        return failure(gc.testing.trains, loss, step, below=-1.0, steps=1, seed=seed)

    assert text(3) == text(3) != text(4)


# ---- the order of reads and changes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("use_resource", [False, True])
def test_a_read_that_does_not_wait_for_a_change_is_found(use_resource: bool) -> None:
    count = gc.Variable(0.0, name="count", use_resource=use_resource)
    more = count.assign_add(1.0, name="more")
    with gc.control_dependencies([more]):
        after = gc.identity(count.read_value() if use_resource else count, name="after")
    gc.testing.no_missing_control_edge(after)
    before = gc.identity(count, name="before")
    text = failure(gc.testing.no_missing_control_edge, [more, before])
    assert "two uses of 'count'" in text
    assert "changes it\n" in text
    assert "test_checks.py, line" in text
    assert "gc.control_dependencies" in text


def test_two_changes_without_an_order_are_found_and_two_reads_are_not() -> None:
    count = gc.Variable(0.0, name="count")
    gc.testing.no_missing_control_edge([gc.identity(count), count.snapshot + 1.0])
    text = failure(gc.testing.no_missing_control_edge, [count.assign(1.0, name="one"), count.assign(2.0, name="two")])
    assert "'one'" in text
    assert "'two'" in text


def test_an_expression_that_waits_for_a_change_reads_after_it_and_one_that_does_not_has_no_order() -> None:
    account = gc.Variable(100.0, name="account")
    deposit = account.assign_add(50.0, name="deposit")
    with gc.control_dependencies([deposit]):
        for late in (account.assign(1.1 * account), account.assign(1.1 * account.read_value())):
            gc.testing.no_missing_control_edge(late)
            gc.testing.runs_to(late, 165.0)
    double = gc.multiply(2.0, account, name="double")
    text = failure(gc.testing.no_missing_control_edge, [deposit, double])
    assert "To read after the change, make 'double' within gc.control_dependencies(['deposit'])" in text
    assert "To read before it, make the change within gc.control_dependencies(['double'])" in text
    with gc.control_dependencies([double]):
        withdrawal = account.assign_sub(50.0)
    gc.testing.no_missing_control_edge([double, withdrawal])


def test_a_training_step_has_an_order() -> None:
    loss, step = regression(0.1)
    gc.testing.no_missing_control_edge([loss, step])


def test_small_arrays_that_differ_are_shown_in_rows() -> None:
    text = failure(gc.testing.runs_to, gc.constant([[1.0, 2.0, 3.0]] * 4), np.zeros((4, 3)))
    assert "  required [[0. 0. 0.]\n            [0. 0. 0.]" in text
    assert "  got      [[1. 2. 3.]\n            [1. 2. 3.]" in text
    assert failure(gc.testing.runs_to, gc.constant([[1.0, 2.0, 3.0]] * 40), np.zeros((40, 3))).endswith("\n120 of 120 elements differ")


# ---- missing answers ----------------------------------------------------------------------------------------------------


def test_every_check_says_that_an_answer_is_missing() -> None:
    y = classifier()
    calls: list[tuple[Callable[..., None], tuple[Any, ...]]] = [
        (gc.testing.answered, (y, {"x": [1, ...]})),
        (gc.testing.has_gradient_path, (y, ...)),
        (gc.testing.has_no_gradient_path, (y, ...)),
        (gc.testing.no_missing_control_edge, ([y, ...],)),
        (gc.testing.placed_on, (..., "/cpu:0")),
        (gc.testing.runs_to, (y, 1.0, {"x:0": ...})),
        (gc.testing.same_graph, (..., y)),
        (gc.testing.shape_is, (..., [None, 3])),
        (gc.testing.uses_ops, (..., ["MatMul"])),
    ]
    for check, arguments in calls:
        assert failure(check, *arguments).startswith("The answer is missing: '...' still stands in its place")
    assert "The answer is missing" in failure(gc.testing.trains, y, ..., below=1.0, steps=1)


def test_a_condition_fails_in_its_own_words() -> None:
    gc.testing.holds(True, "words for a false one")
    assert failure(gc.testing.holds, False, "the step is too long") == "the step is too long"
    assert failure(gc.testing.holds, ..., "anything").startswith("The answer is missing")


def test_an_answer_without_dots_is_accepted() -> None:
    gc.testing.answered(classifier(), None, 0, [], {}, np.zeros(3), "...")
