"""Gradients through branches and loops in Switch/Merge form, against central differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import InvalidArgumentError, UnimplementedError
from tests.graphcore.passes.v1_control_flow import V1Branch, V1Loop, v1_cond, v1_while

X = np.array([0.3, -0.7, 1.2])
Build = Callable[[gc.Tensor, gc.Tensor], gc.Tensor]


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def one_variable(x: gc.Tensor, n: gc.Tensor) -> gc.Tensor:
    return v1_while("loop", n, lambda loop, _, v: [gc.tanh(v[0]) * loop.constant(1.5)], [x])[0]


def an_invariant(x: gc.Tensor, n: gc.Tensor) -> gc.Tensor:
    def body(loop: V1Loop, _: gc.Tensor, v: list[gc.Tensor]) -> list[gc.Tensor]:
        return [gc.tanh(v[0] * loop.capture(x)) + loop.capture(x)]

    return v1_while("loop", n, body, [x])[0]


def two_variables(x: gc.Tensor, n: gc.Tensor) -> gc.Tensor:
    a, b = v1_while("loop", n, lambda _, __, v: [v[0] * v[1], gc.tanh(v[0])], [x, gc.exp(x)])
    return a + gc.square(b)


def only_one_of_two_is_used(x: gc.Tensor, n: gc.Tensor) -> gc.Tensor:
    return v1_while("loop", n, lambda _, __, v: [v[1] * v[1], gc.tanh(v[0])], [x, gc.exp(x)])[0]


def a_variable_that_starts_from_a_constant(x: gc.Tensor, n: gc.Tensor) -> gc.Tensor:
    total = gc.constant(np.zeros(3), name="zeros")
    return v1_while("loop", n, lambda loop, _, v: [v[0] + gc.square(v[1]), v[1] * loop.constant(0.5)], [total, x])[0]


def a_variable_that_is_replaced(x: gc.Tensor, n: gc.Tensor) -> gc.Tensor:
    return v1_while("loop", n, lambda _, __, v: [gc.exp(v[1]), v[1]], [x, gc.sqrt(gc.square(x) + 1.0)])[0]


def the_counter_is_used(x: gc.Tensor, n: gc.Tensor) -> gc.Tensor:
    return v1_while("loop", n, lambda _, i, v: [gc.tanh(v[0] * gc.cast(i, gc.float64) + gc.square(v[0]))], [x])[0]


def a_matrix_product(x: gc.Tensor, n: gc.Tensor) -> gc.Tensor:
    matrix = gc.reshape(x, [3, 1]) * gc.reshape(x, [1, 3])
    return v1_while("loop", n, lambda loop, _, v: [gc.tanh(gc.matmul(v[0], loop.capture(matrix)))], [matrix])[0]


def a_sum_and_a_broadcast(x: gc.Tensor, n: gc.Tensor) -> gc.Tensor:
    return v1_while("loop", n, lambda _, __, v: [gc.tanh(v[0]) * gc.reduce_sum(gc.tanh(v[0]))], [x])[0]


def a_sign_whose_gradient_is_zero(x: gc.Tensor, n: gc.Tensor) -> gc.Tensor:
    return v1_while("loop", n, lambda _, __, v: [gc.ops.sign(v[0]) + gc.tanh(v[0])], [x])[0]


def several_outputs_of_which_one_is_used(x: gc.Tensor, n: gc.Tensor) -> gc.Tensor:
    def body(loop: V1Loop, _: gc.Tensor, v: list[gc.Tensor]) -> list[gc.Tensor]:
        parts = gc.ops.split(loop.constant(0, gc.int32), v[0], 3)
        return [gc.concat([gc.tanh(parts[1]), parts[1], gc.tanh(parts[2])], 0)]

    return v1_while("loop", n, body, [x])[0]


def nested(x: gc.Tensor, n: gc.Tensor) -> gc.Tensor:
    def outer(loop: V1Loop, i: gc.Tensor, v: list[gc.Tensor]) -> list[gc.Tensor]:
        (inner,) = v1_while("inner", i + loop.constant(1, gc.int32), lambda _, __, w: [gc.tanh(w[0]) + gc.ops.cos(w[0])], [v[0]], loop)
        return [inner * v[0]]

    return v1_while("outer", n, outer, [x])[0]


def nested_with_an_invariant(x: gc.Tensor, n: gc.Tensor) -> gc.Tensor:
    def outer(loop: V1Loop, _: gc.Tensor, v: list[gc.Tensor]) -> list[gc.Tensor]:
        outside = loop.capture(x)
        return v1_while("inner", 2, lambda inner, __, w: [gc.tanh(w[0] * inner.capture(outside) + inner.capture(v[0]))], [v[0]], loop)

    return v1_while("outer", n, outer, [x])[0]


def two_loops_one_after_the_other(x: gc.Tensor, n: gc.Tensor) -> gc.Tensor:
    first = one_variable(x, n)
    return v1_while("second", n, lambda loop, _, v: [gc.exp(-gc.square(v[0])) * loop.capture(first)], [first])[0]


def a_branch(x: gc.Tensor, n: gc.Tensor) -> gc.Tensor:
    return v1_cond("cond", n > 1, lambda b: gc.square(b.capture(x)) + b.constant(1.0), lambda b: gc.exp(b.capture(x)))


def a_branch_that_does_not_use_it(x: gc.Tensor, n: gc.Tensor) -> gc.Tensor:
    return v1_cond("cond", n > 1, lambda b: gc.square(b.capture(x)), lambda b: b.constant([1.0, 2.0, 3.0]))


def a_branch_within_a_branch(x: gc.Tensor, n: gc.Tensor) -> gc.Tensor:
    def yes(b: V1Branch) -> gc.Tensor:
        captured = b.capture(x)
        pred = b.capture(n) > b.constant(2, gc.int32)
        return v1_cond("inner", pred, lambda c: gc.tanh(c.capture(captured)), lambda c: gc.exp(c.capture(captured)) * c.capture(captured))

    return v1_cond("cond", n > 0, yes, lambda b: gc.square(b.capture(x))) * x


def a_branch_in_a_loop(x: gc.Tensor, n: gc.Tensor) -> gc.Tensor:
    def body(loop: V1Loop, i: gc.Tensor, v: list[gc.Tensor]) -> list[gc.Tensor]:
        pred = gc.equal(gc.ops.floor_mod(i, loop.constant(2, gc.int32)), loop.constant(0, gc.int32))
        outside = loop.capture(x)
        return [
            v1_cond(
                "cond", pred, lambda b: gc.tanh(b.capture(v[0])) * b.capture(outside), lambda b: gc.exp(b.capture(v[0])) + b.constant(1.0)
            )
        ]

    return v1_while("loop", n, body, [x])[0]


def a_loop_in_a_branch(x: gc.Tensor, n: gc.Tensor) -> gc.Tensor:
    def yes(b: V1Branch) -> gc.Tensor:
        start, times = b.capture(x), b.capture(n)
        zero = b.constant(0, gc.int32)
        loop = V1Loop("loop")
        limit = loop.capture(times)
        return loop.run(lambda v: v[0] < limit, lambda v: [v[0] + loop.constant(1, gc.int32), gc.tanh(v[1]) * v[1]], [zero, start])[1]

    return v1_cond("cond", n > 1, yes, lambda b: gc.exp(b.capture(x)))


def a_while_op_in_a_branch(x: gc.Tensor, n: gc.Tensor) -> gc.Tensor:
    def yes(b: V1Branch) -> gc.Tensor:
        start, zero, times = b.capture(x), b.constant(0, gc.int32), b.capture(n)
        results: list[gc.Tensor] = gc.while_loop(lambda i, _, m: i < m, lambda i, v, m: [i + 1, gc.tanh(v) * v, m], [zero, start, times])
        return results[1]

    return v1_cond("cond", n > 1, yes, lambda b: gc.exp(b.capture(x)))


def an_if_in_a_loop(x: gc.Tensor, n: gc.Tensor) -> gc.Tensor:
    def body(loop: V1Loop, i: gc.Tensor, v: list[gc.Tensor]) -> list[gc.Tensor]:
        outside = loop.capture(x)
        chosen: gc.Tensor = gc.cond(i > loop.constant(0, gc.int32), lambda: gc.tanh(v[0]) * v[0], lambda: v[0] * outside)
        return [chosen]

    return v1_while("loop", n, body, [x])[0]


def an_if_that_does_not_use_it_in_one_branch(x: gc.Tensor, n: gc.Tensor) -> gc.Tensor:
    def body(loop: V1Loop, i: gc.Tensor, v: list[gc.Tensor]) -> list[gc.Tensor]:
        chosen: gc.Tensor = gc.cond(i > loop.constant(0, gc.int32), lambda: gc.exp(v[0]), lambda: gc.zeros_like(v[0]) + 0.5)
        return [chosen * v[0]]

    return v1_while("loop", n, body, [x])[0]


def a_case_in_a_loop(x: gc.Tensor, n: gc.Tensor) -> gc.Tensor:
    def body(loop: V1Loop, i: gc.Tensor, v: list[gc.Tensor]) -> list[gc.Tensor]:
        outside = loop.capture(x)
        chosen: gc.Tensor = gc.switch_case(i, [lambda: gc.tanh(v[0]), lambda: v[0] * v[0] * outside, lambda: gc.exp(-v[0])])
        return [chosen]

    return v1_while("loop", n, body, [x])[0]


def a_while_op_in_a_loop(x: gc.Tensor, n: gc.Tensor) -> gc.Tensor:
    def body(loop: V1Loop, i: gc.Tensor, v: list[gc.Tensor]) -> list[gc.Tensor]:
        outside, start = loop.capture(x), loop.constant(0, gc.int32)
        return [gc.while_loop(lambda j, _: j <= i, lambda j, w: (j + 1, gc.tanh(w) * w + outside), (start, v[0]))[1]]

    return v1_while("loop", n, body, [x])[0]


def a_while_op_in_a_nested_loop(x: gc.Tensor, n: gc.Tensor) -> gc.Tensor:
    def inner(loop: V1Loop, i: gc.Tensor, v: list[gc.Tensor]) -> list[gc.Tensor]:
        start = loop.constant(0, gc.int32)
        return [gc.while_loop(lambda j, _: j <= i, lambda j, w: (j + 1, gc.ops.sin(w) * w), (start, v[0]))[1]]

    return v1_while("outer", n, lambda loop, _, v: v1_while("inner", 2, inner, [gc.tanh(v[0])], loop), [x])[0]


def a_while_op_in_a_branch_in_a_loop(x: gc.Tensor, n: gc.Tensor) -> gc.Tensor:
    def body(loop: V1Loop, i: gc.Tensor, v: list[gc.Tensor]) -> list[gc.Tensor]:
        pred = gc.equal(gc.ops.floor_mod(i, loop.constant(2, gc.int32)), loop.constant(0, gc.int32))

        def yes(b: V1Branch) -> gc.Tensor:
            start, value, last = b.constant(0, gc.int32), b.capture(v[0]), b.capture(i)
            found: gc.Tensor = gc.while_loop(lambda j, _: j <= last, lambda j, w: (j + 1, gc.tanh(w) * w), (start, value))[1]
            return found

        return [v1_cond("cond", pred, yes, lambda b: gc.exp(-b.capture(v[0])))]

    return v1_while("loop", n, body, [x])[0]


def a_call_in_a_loop(x: gc.Tensor, n: gc.Tensor) -> gc.Tensor:
    @gc.function
    def curved(value: gc.Tensor, factor: gc.Tensor) -> gc.Tensor:
        return gc.tanh(value) * gc.exp(factor)

    @gc.function
    def chosen(value: gc.Tensor, factor: gc.Tensor) -> gc.Tensor:
        found: gc.Tensor = gc.cond(gc.reduce_sum(value) > 0.5, lambda: curved(value, factor), lambda: value * factor)
        return found

    def body(loop: V1Loop, _: gc.Tensor, v: list[gc.Tensor]) -> list[gc.Tensor]:
        outside = loop.capture(x)
        return [chosen(curved(v[0], outside), outside)]

    return v1_while("loop", n, body, [x])[0]


PROGRAMS: dict[str, Build] = {
    function.__name__.replace("_", " "): function
    for function in (
        one_variable,
        an_invariant,
        two_variables,
        only_one_of_two_is_used,
        a_variable_that_starts_from_a_constant,
        a_variable_that_is_replaced,
        the_counter_is_used,
        a_matrix_product,
        a_sum_and_a_broadcast,
        a_sign_whose_gradient_is_zero,
        several_outputs_of_which_one_is_used,
        nested,
        nested_with_an_invariant,
        two_loops_one_after_the_other,
        a_branch,
        a_branch_that_does_not_use_it,
        a_branch_within_a_branch,
        a_branch_in_a_loop,
        a_loop_in_a_branch,
        a_while_op_in_a_branch,
        an_if_in_a_loop,
        an_if_that_does_not_use_it_in_one_branch,
        a_case_in_a_loop,
        a_while_op_in_a_loop,
        a_while_op_in_a_nested_loop,
        a_while_op_in_a_branch_in_a_loop,
        a_call_in_a_loop,
    )
}


def differences(run: Callable[[np.ndarray], float], step: float = 1e-5) -> np.ndarray:
    result = np.zeros_like(X)
    for i in range(X.size):
        moved = np.zeros_like(X)
        moved[i] = step
        result[i] = (run(X + moved) - run(X - moved)) / (2 * step)
    return result


@pytest.mark.slow
@pytest.mark.parametrize("simplify", [True, False], ids=["simplified", "plain"])
@pytest.mark.parametrize("shape", [[3], [None]], ids=["known", "unknown"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_agree_with_central_differences_however_often_a_loop_runs(name: str, shape: list[int | None], simplify: bool) -> None:
    x = gc.placeholder(gc.float64, shape, name="x")
    n = gc.placeholder(gc.int32, [], name="n")
    y = gc.reduce_sum(PROGRAMS[name](x, n))
    (gradient,) = gc.gradients(y, x, simplify=simplify)
    assert gradient is not None
    assert gradient.shape.rank == 1
    with gc.Session() as session, gc.Session(engine="dataflow") as dataflow:
        for times in (0, 1, 3):
            wanted = differences(lambda value, times=times: session.run(y, {x: value, n: times}))  # type: ignore[misc]  # bound at once
            for each in (session, dataflow):
                got = each.run(gradient, {x: X, n: times})
                np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-8, err_msg=f"{times} times")


def test_only_what_the_way_back_needs_is_kept_in_lists(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float64, [3], name="x")
    y = one_variable(x, gc.constant(3))
    gc.gradients(y, x)
    pushes = [node for node in graph.nodes if node.op == "TensorListPushBack"]
    assert [node.inputs[1].node.op for node in pushes] == ["Tanh"]


def test_values_taken_from_a_list_have_a_known_shape_also_if_they_are_lists(graph: gc.Graph) -> None:
    x, n = gc.placeholder(gc.float64, [3]), gc.placeholder(gc.int32, [])
    gc.gradients(PROGRAMS["a while op in a loop"](x, n), x)
    taken = [node.outputs[1] for node in graph.op_nodes() if node.op == "TensorListPopBack"]
    assert gc.variant in {tensor.dtype for tensor in taken}
    assert all(tensor.shape.rank is not None for tensor in taken)


def test_what_is_the_same_in_all_iterations_enters_the_backward_loop_instead(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float64, [3], name="x")
    y = v1_while("loop", 3, lambda loop, _, v: [v[0] * loop.capture(x)], [gc.constant(np.ones(3))])[0]
    before = len(graph)
    gc.gradients(y, x)
    pushed = [node.inputs[1].name for node in graph.nodes[before:] if node.op == "TensorListPushBack"]
    assert pushed == ["loop/Identity_1:0"]


def test_the_forward_loop_is_the_same_but_for_its_counter(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float64, [3], name="x")
    y = one_variable(x, gc.constant(3))
    before = {node.name: node.node_def for node in graph.nodes}
    gc.gradients(y, x)
    assert {name: graph.find(name).node_def for name in before} == before  # type: ignore[union-attr]  # the nodes exist
    ops = [node.op for node in graph.nodes[len(before) :]]
    assert ops.count("LoopCond") == 1
    assert all(node.error is None for node in graph.nodes)


def test_each_node_of_the_backward_loop_tells_what_it_is_for(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float64, [3], name="x")
    y = one_variable(x, gc.constant(3))
    before = len(graph)
    gc.gradients(y, x)
    made = {node.name for node in graph.nodes[before:]}
    assert made == set(graph.gradient_records)
    assert graph.gradient_records["gradients/loop_grad/f_keep"].forward == "Tanh"
    assert graph.gradient_records["gradients/Tanh_grad/dx"].body_node == "dx"


def test_two_gradients_of_one_loop_do_not_disturb_each_other() -> None:
    x = gc.placeholder(gc.float64, [3], name="x")
    y = one_variable(x, gc.constant(3))
    first = gc.gradients(y, x)[0]
    second = gc.gradients(gc.square(y), x)[0]
    with gc.Session() as session:
        alone = session.run([y, first], {x: X})
        together = session.run([first, second], {x: X})
    np.testing.assert_allclose(together[0], alone[1])
    np.testing.assert_allclose(together[1], 2 * alone[0] * alone[1])


def test_arrays_of_tensors_carry_gradients_around_a_loop() -> None:
    x = gc.placeholder(gc.float64, [3], name="x")
    handle, flow = gc.ops.tensor_array_v3(gc.constant(4), gc.float64)

    def body(loop: V1Loop, i: gc.Tensor, v: list[gc.Tensor]) -> list[gc.Tensor]:
        following = gc.tanh(v[0]) * v[0]
        return [following, gc.ops.tensor_array_write_v3(loop.capture(handle), i, following, v[1])]

    _, end = v1_while("loop", 4, body, [x, flow])
    rows = gc.ops.tensor_array_gather_v3(handle, gc.constant([0, 1, 2, 3]), end, gc.float64)
    y = gc.reduce_sum(gc.square(rows))
    (gradient,) = gc.gradients(y, x)
    with gc.Session() as session:
        wanted = differences(lambda value: session.run(y, {x: value}))
        np.testing.assert_allclose(session.run(gradient, {x: X}), wanted, rtol=1e-6)


def test_loops_are_checked_by_check_gradient_and_explained_by_explain_gradient() -> None:
    x = gc.placeholder(gc.float64, [3], name="x")
    y = gc.reduce_sum(a_branch_in_a_loop(x, gc.constant(3)), name="y")
    assert gc.check_gradient(y, x, {x: X}).passed
    found = gc.explain_gradient(y, x)
    assert found.path_count == 4
    assert found.paths[0][0] == "x"
    assert found.paths[0][-1] == "y"
    assert {"loop/Merge_1", "cond/Merge", "cond/Switch"} <= {step.node for step in found.steps}
    assert [item.tensor for item in found.sums if item.tensor == "x:0"] == ["x:0"]


def test_a_tensor_within_a_loop_is_refused() -> None:
    x = gc.placeholder(gc.float64, [3], name="x")
    y = one_variable(x, gc.constant(3))
    inside = gc.get_default_graph().get_tensor_by_name("Tanh:0")
    with pytest.raises(InvalidArgumentError, match="'Tanh:0' is within the loop 'loop': it has a value in each iteration"):
        gc.gradients(y, inside)


def test_a_loop_of_integers_has_no_gradient() -> None:
    x = gc.placeholder(gc.float64, [], name="x")
    times = gc.cast(x, gc.int32)
    y = v1_while("loop", times, lambda _, __, v: [gc.tanh(v[0])], [gc.constant(0.5, gc.float64)])[0]
    assert gc.gradients(y, x) == [None]
    assert [cut.kind for cut in gc.explain_gradient(y, x).cuts] == ["dtype"]


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "simplify"), [([3], False), ([None], True)], ids=["known-plain", "unknown-simplified"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_second_derivatives_agree_with_central_differences_of_the_first(name: str, shape: list[int | None], simplify: bool) -> None:
    x = gc.placeholder(gc.float64, shape, name="x")
    n = gc.placeholder(gc.int32, [], name="n")
    (first,) = gc.gradients(gc.reduce_sum(PROGRAMS[name](x, n)), x, simplify=simplify)
    assert first is not None
    y = gc.reduce_sum(first * gc.constant([1.0, -2.0, 0.5], gc.float64))
    (second,) = gc.gradients(y, x, simplify=simplify)
    assert second is not None
    assert second.shape.rank == 1
    with gc.Session() as session, gc.Session(engine="dataflow") as dataflow:
        for times in (0, 1, 3):
            wanted = differences(lambda value, times=times: session.run(y, {x: value, n: times}))  # type: ignore[misc]  # bound at once
            for each in (session, dataflow):
                got = each.run(second, {x: X, n: times})
                np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-7, err_msg=f"{times} times")


def test_the_gradient_through_a_stack_is_refused_and_names_what_was_pushed() -> None:
    x = gc.placeholder(gc.float64, [3], name="x")
    handle = gc.ops.stack_v2(gc.constant(-1), gc.float64)

    def push(loop: V1Loop, _: gc.Tensor, v: list[gc.Tensor]) -> list[gc.Tensor]:
        return [gc.ops.stack_push_v2(loop.capture(handle), gc.tanh(v[0], name="pushed"))]

    end = v1_while("loop", 2, push, [x])[0]
    with gc.control_dependencies([end]):
        back = gc.ops.stack_pop_v2(handle, gc.float64, name="back")
    y = end * back
    with pytest.raises(UnimplementedError, match=r"'back' gives back what 'pushed:0' was in an iteration of a loop"):
        gc.gradients(y, x)
    assert "Gradients through stacks are not supported" in gc.explain_gradient(y, x).error


def test_a_loop_has_a_third_derivative() -> None:
    x = gc.placeholder(gc.float64, [3], name="x")
    n = gc.placeholder(gc.int32, [], name="n")
    y = an_invariant(x, n)
    for _ in range(2):
        (y,) = gc.gradients(gc.reduce_sum(y), x)
    y = gc.reduce_sum(y)
    assert gc.check_gradient(y, x, {x: X, n: 3}).passed


def unrolled(x: gc.Tensor, times: int) -> gc.Tensor:
    """The computation of `nested`, unrolled."""
    for i in range(times):
        inner = x
        for _ in range(i + 1):
            inner = gc.tanh(inner) + gc.ops.cos(inner)
        x = inner * x
    return x


def test_loops_have_the_second_derivatives_of_what_they_do_unrolled() -> None:
    x = gc.placeholder(gc.float64, [3], name="x")
    seconds = []
    for y in (nested(x, gc.constant(3)), unrolled(x, 3)):
        (first,) = gc.gradients(gc.reduce_sum(y), x)
        seconds += gc.gradients(gc.reduce_sum(gc.exp(first)), x)
    with gc.Session() as session:
        looping, wanted = session.run(seconds, {x: X})
    np.testing.assert_allclose(looping, wanted, rtol=1e-12)


def test_a_branch_has_a_second_derivative() -> None:
    x = gc.placeholder(gc.float64, [3], name="x")
    n = gc.placeholder(gc.int32, [], name="n")
    (first,) = gc.gradients(a_branch(x, n), x)
    (second,) = gc.gradients(first, x)
    with gc.Session() as session:
        np.testing.assert_allclose(session.run(second, {x: X, n: 2}), [2.0, 2.0, 2.0])
        np.testing.assert_allclose(session.run(second, {x: X, n: 0}), np.exp(X))


def test_an_exit_outside_of_a_loop_is_refused_by_its_name(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float64, [3], name="x")
    y = graph.apply_op("Exit", [x], name="left").outputs[0]
    with pytest.raises(InvalidArgumentError, match="'x:0' is in none") as raised:
        gc.gradients(y, x)
    assert (raised.value.op, raised.value.node) == ("Exit", "left")
