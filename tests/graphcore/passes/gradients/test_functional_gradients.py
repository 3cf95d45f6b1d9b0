"""Gradients of If, Case and While: through their functions, once and again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from tests.graphcore.api.cell_runs import Cells
from tests.graphcore.passes.functional_programs import LOSSES, POINTS, rounds


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def differences(session: gc.Session, y: Any, x: Any, point: Any) -> Any:
    size = 1e-6
    result = np.zeros(3)
    for i in range(3):
        ends = [session.run(y, {x: point + sign * size * np.eye(3)[i]}) for sign in (1, -1)]
        result[i] = (ends[0] - ends[1]) / (2 * size)
    return result


@pytest.mark.slow
@pytest.mark.parametrize("known", [True, False], ids=["known shapes", "unknown shapes"])
@pytest.mark.parametrize("name", LOSSES)
def test_gradients_and_second_derivatives_agree_with_central_differences(name: str, known: bool) -> None:
    x = gc.placeholder(gc.float64, [3] if known else [None], name="x")
    y = LOSSES[name](x)
    loss = gc.reduce_sum(y * gc.constant([1.0, -0.7, 0.4], gc.float64)) if name != "growing" else y
    (first,) = gc.gradients(loss, x)
    assert first.shape.is_compatible_with(x.shape)
    second_loss = gc.reduce_sum(first * gc.constant([0.3, 1.1, -0.5], gc.float64))
    (second,) = gc.gradients(second_loss, x)
    with gc.Session() as session:
        for point in POINTS:
            for value, gradient in ((loss, first), (second_loss, second)):
                got = np.zeros(3) if gradient is None else session.run(gradient, {x: point})
                np.testing.assert_allclose(got, differences(session, value, x, point), rtol=1e-5, atol=1e-7)


def test_the_loop_that_goes_back_takes_what_the_rounds_have_left_and_computes_nothing_again(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [3], name="x")
    (gradient,) = gc.gradients(rounds(5, lambda a: gc.tanh(a) * x, x), x)
    back = graph.get_operation_by_name("gradients/while_grad/while")
    body = graph.library.find("gradients_while_grad_while_body")
    assert body is not None
    assert "Tanh" not in [node.op for node in body.node_def]
    assert "TensorListPopBack" in [node.op for node in body.node_def]
    record = graph.gradient_records[back.name]
    assert record.forward == "while"
    assert gradient.shape == x.shape


def test_loops_of_many_rounds_take_time_in_proportion() -> None:
    x = gc.placeholder(gc.float32, [], name="x")
    n = gc.placeholder(gc.int32, [], name="n")
    (gradient,) = gc.gradients(rounds(n, lambda a: a * x, x), x)
    with gc.Session() as session:
        assert session.run(gradient, {x: 1.0, n: 2000}) == 2001


def test_what_no_output_depends_on_has_no_gradient() -> None:
    x, z = gc.placeholder(gc.float32, [], name="x"), gc.placeholder(gc.float32, [], name="z")
    y = gc.cond(True, lambda: (x * x, z), lambda: (x, z * 2.0))
    assert gc.gradients(y[0], [x, z])[1] is None
    a, b = gc.while_loop(lambda a, _: a < 3.0, lambda a, b: (a + x, b * z), (x, z))
    assert gc.gradients(a, [x, z])[1] is None
    assert gc.gradients(b, [x, z])[0] is None, "how long it goes on is no value"


@pytest.mark.parametrize("engine", ["auto", "dataflow"])
def test_random_numbers_of_a_branch_are_those_of_its_gradient(engine: Any) -> None:
    x = gc.placeholder(gc.float32, [100], name="x")
    y = gc.cond(True, lambda: x * gc.random_uniform([100]), lambda: x)
    (gradient,) = gc.gradients(y, x)
    with gc.Session(engine=engine) as session:
        values, slopes = session.run([y, gradient], {x: np.ones(100, np.float32)})
        np.testing.assert_array_equal(values, slopes)


def test_state_within_a_loop_changes_once_a_round_though_its_gradient_runs_too() -> None:
    handle = gc.apply_op("VarHandleOp", attrs={"dtype": gc.float32, "shape": gc.Shape([])})
    start = gc.apply_op("AssignVariableOp", [handle, gc.constant(0.0)])
    x = gc.placeholder(gc.float32, [], name="x")

    def step(value: gc.Tensor) -> Any:
        with gc.control_dependencies([gc.apply_op("AssignAddVariableOp", [handle, gc.constant(1.0)])]):
            return value * x

    y = rounds(3, step, x)
    (gradient,) = gc.gradients(y, x)
    read = gc.apply_op("ReadVariableOp", [handle], {"dtype": gc.float32})
    for engine in ("auto", "dataflow"):
        session = gc.Session(engine=engine)
        session.run(start)
        assert session.run([y, gradient], {x: 2.0}) == [16.0, 32.0]
        assert session.run(read) == 3


def test_a_call_of_a_function_with_loops_and_branches_has_second_derivatives() -> None:
    @gc.function
    def inner(x: gc.Tensor) -> Any:
        return rounds(3, lambda y: gc.cond(y > 0.0, lambda: gc.tanh(y) * x, lambda: y * y), x)

    x = gc.placeholder(gc.float64, [], name="x")
    y = inner(x)
    (first,) = gc.gradients(y, x)
    assert gc.check_gradient(y, [x], {x: 0.8}).passed
    assert gc.check_gradient(first, [x], {x: 0.8}).passed


def test_what_a_call_draws_at_random_is_what_its_gradient_takes() -> None:
    @gc.function
    def dropped(x: gc.Tensor) -> Any:
        return x * gc.random_uniform([100])

    x = gc.placeholder(gc.float32, [100], name="x")
    y = dropped(x)
    (gradient,) = gc.gradients(y, x)
    with gc.Session() as session:
        values, slopes = session.run([y, gradient], {x: np.ones(100, np.float32)})
        np.testing.assert_array_equal(values, slopes)


@pytest.mark.parametrize("by", ["PartitionedCall[Tin={double, int32}, Tout={double}, f=Power]", "Again"])
def test_the_gradient_of_a_function_that_calls_itself_goes_as_deep_as_the_call(graph: gc.Graph, by: str) -> None:
    for text in (
        """Base(x:double, n:int32) -> (y:double) {
          return y = x
        }""",
        """Step(x:double, n:int32) -> (y:double) {
          one = Const[dtype=int32, value=Tensor<type: int32 shape: [] values: 1>]()
          less = Sub[T=int32](n, one:output:0)
          @1
          y = Mul[T=double](rest:output:0, x)
          return y = y:z:0
        }""",
        """Power(x:double, n:int32) -> (y:double) {
          one = Const[dtype=int32, value=Tensor<type: int32 shape: [] values: 1>]()
          more = Greater[T=int32](n, one:output:0)
          if = StatelessIf[Tcond=bool, Tin={double, int32}, Tout={double}, else_branch=Base, then_branch=Step](more:z:0, x, n)
          return y = if:output:0
        }""",
    ):
        call = f"rest = {by}(x, less:z:0)"
        again = """more = Greater[T=int32](less:z:0, one:output:0)
          rest = StatelessIf[Tcond=bool, Tin={double, int32}, Tout={double}, else_branch=Base, then_branch=Step](more:z:0, x, less:z:0)"""
        graph.library.add_function_def(gc.parse_function(text.replace("@1", again if by == "Again" else call)))
    x, n = gc.placeholder(gc.float64, [], name="x"), gc.placeholder(gc.int32, [], name="n")
    node = graph.apply_op("PartitionedCall", [[x, n]], {"f": gc.Func("Power"), "Tout": [gc.float64]})
    (gradient,) = gc.gradients(node.outputs[0], x)
    assert gc.Session().run([node.outputs[0], gradient], {x: 2.0, n: 5}) == [32.0, 80.0]


def test_a_loop_whose_cell_runs_again_keeps_its_gradient_and_a_changed_one_gets_another(graph: gc.Graph) -> None:
    cells, factor = Cells(graph), [2.0]
    x = gc.placeholder(gc.float64, [], name="x")

    def forward() -> None:
        gc.identity(rounds(3, lambda v: gc.cond(v > 0.0, lambda: gc.tanh(v) * x * factor[0], lambda: v), x), name="y")

    def backward() -> None:
        gc.identity(gc.gradients(graph.get_tensor_by_name("y:0"), x)[0], name="dy")

    def run() -> list[float]:
        return session.run(["y:0", "dy:0"], {x: 0.7})  # type: ignore[no-any-return]  # two scalars

    session = gc.Session()
    cells.run("forward", forward)
    cells.run("backward", backward)
    before, names, functions = run(), [node.name for node in graph.nodes], graph.library.num_functions
    cells.run("forward", forward)
    assert run() == before, "the gradient depends on nothing that belongs to the other cell's functions"
    cells.run("backward", backward)
    assert run() == before
    factor[0] = 1.0
    cells.run("forward", forward)
    assert run()[0] != before[0]
    cells.run("backward", backward)
    value, slope = run()
    ends = [session.run("y:0", {x: 0.7 + step}) for step in (1e-6, -1e-6)]
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / 2e-6, rtol=1e-6)
    assert value != before[0]
    assert [node.name for node in graph.nodes] == names
    assert graph.library.num_functions == functions, "what nothing uses any more is gone"


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_a_loop_within_loops_has_no_gradient_by_what_only_its_stopped_values_depend_on(levels: int) -> None:
    x = gc.constant(0.5)

    def nested(level: int) -> Any:
        if level == 0:
            return gc.stop_gradient(x) * 0.3
        return gc.while_loop(lambda i, _: i < 2, lambda i, _: (i + 1, nested(level - 1)), [gc.constant(0), gc.constant(0.0)])[1]

    assert gc.gradients(nested(levels), [x]) == [None]


def test_a_scan_in_a_map_has_no_gradient_by_elements_that_it_does_not_use() -> None:
    x = gc.constant(0.5)

    def body(row: gc.Tensor) -> gc.Tensor:
        return gc.reduce_sum(gc.scan(lambda a, _: gc.tanh(a * 0.4), gc.stack([row, gc.constant(-0.4)]), gc.constant(0.2)))

    assert gc.gradients(gc.map_fn(body, gc.stack([x, gc.constant(0.3)])), [x]) == [None]


def test_a_gradient_in_a_loop_does_not_mind_a_start_that_the_x_affects_only_through_another_result_of_a_branch() -> None:
    x = gc.constant(0.5)
    first, _ = gc.cond(gc.constant(True), lambda: [gc.constant(0.2), x * 2.0], lambda: [gc.constant(0.3), x * 3.0])

    def body(i: gc.Tensor, a: gc.Tensor) -> tuple[gc.Tensor, gc.Tensor]:
        (found,) = gc.gradients(a * x, [x])
        return i + 1, found

    result = gc.while_loop(lambda i, _: i < 2, body, [gc.constant(0), first])[1]
    with gc.Session() as session:
        assert session.run(result) == pytest.approx(0.2)
