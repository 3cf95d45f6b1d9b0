"""A called function is differentiated once for all calls, and passes its values to the backward pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.definitions import GradientDef
from tests.graphcore.api.cell_runs import Cells
from tests.graphcore.passes.v1_control_flow import v1_while

FUNCTIONS = [
    """Inner(x:double, w:double) -> (y:double) {
      t = Tanh[T=double](x)
      y = Mul[T=double](t:y:0, w)
      return y = y:z:0
    }""",
    """Outer(x:double, w:double) -> (y:double, z:double) {
      first = Inner(x, w)
      second = Inner(first:y:0, w)
      e = Exp[T=double](second:y:0)
      return y = e:y:0
      return z = second:y:0
    }""",
]
POINT = {"x:0": [0.1, -0.2, 0.3], "w:0": [1.0, 2.0, -1.0]}


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        for text in FUNCTIONS:
            graph.library.add_function_def(gc.parse_function(text, graph.library.look_up_op_def))
        yield graph


def call(name: str, *inputs: gc.Tensor) -> Any:
    outputs = gc.get_default_graph().apply_op(name, list(inputs), None, "call").outputs
    return outputs[0] if len(outputs) == 1 else outputs


def arguments() -> tuple[gc.Tensor, gc.Tensor]:
    return gc.placeholder(gc.float64, [3], name="x"), gc.placeholder(gc.float64, [3], name="w")


def runs_by_name(fetches: Sequence[Any], feeds: dict[Any, Any], engine: Any = "auto") -> tuple[list[Any], Counter[str]]:
    """The values, and the number of kernel runs by node name, over all functions."""
    metadata = gc.RunMetadata()
    with gc.Session(engine=engine) as session:
        values = session.run(list(fetches), feeds, options=gc.RunOptions(trace=True), run_metadata=metadata)
    assert metadata.trace is not None
    return values, Counter([event.node.rpartition("/")[2] for event in metadata.trace.events if event.kind == "start" and not event.how])


@pytest.mark.parametrize("engine", ["plan", "dataflow"])
def test_each_forward_op_runs_once_though_its_gradient_takes_what_it_gave(engine: Any) -> None:
    x, w = arguments()
    y, z = call("Outer", x, w)
    gradients = gc.gradients([y, z], [x, w])
    values, count = runs_by_name([y, *gradients], POINT, engine)
    assert (count["t"], count["e"]) == (2, 1)
    plain = gc.gradients([y, z], [x, w], simplify=False)
    with gc.Session() as session:
        for got, wanted in zip(values[1:], session.run(plain, POINT), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-12)


def test_gradients_by_one_argument_and_by_another_take_the_values_of_one_run() -> None:
    x, w = arguments()
    y, z = call("Outer", x, w)
    fetches = [y, *gc.gradients(z, w), *gc.gradients(y, x), *gc.gradients([y, z], [x, w])]
    _, count = runs_by_name(fetches, POINT)
    assert (count["t"], count["e"]) == (2, 1)


def test_all_calls_share_one_forward_function_and_one_gradient_function(graph: gc.Graph) -> None:
    x, w = arguments()
    y = x
    for _ in range(50):
        y = call("Inner", y, w)
    before = set(graph.library.list_function_names())
    dx, dw = gc.gradients(y, [x, w])
    assert sorted(set(graph.library.list_function_names()) - before) == ["Inner_forward", "Inner_gradient"]
    gradient = graph.library.find("Inner_gradient")
    assert gradient is not None
    assert "Tanh" not in [node.op for node in gradient.node_def]
    _, count = runs_by_name([y, dx, dw], POINT)
    assert count["t"] == 50


def test_the_functions_read_like_what_they_are(graph: gc.Graph) -> None:
    x, w = arguments()
    gc.gradients(call("Inner", x, w), [x, w])
    forward, gradient = graph.library.find("Inner_forward"), graph.library.find("Inner_gradient")
    assert forward is not None
    assert gradient is not None
    assert [arg.name for arg in forward.signature.output_arg] == ["y", "t"]
    assert [arg.name for arg in gradient.signature.input_arg] == ["w", "dy_0", "t"]
    assert [arg.name for arg in gradient.signature.output_arg] == ["dx", "dw"]


def test_functions_with_other_shapes_and_other_types_have_gradients_of_their_own(graph: gc.Graph) -> None:
    text = """Scaled[T:{float, double}](x:T, w:T) -> (y:T) {
      t = Tanh[T=$T](x)
      y = Mul[T=$T](t:y:0, w)
      return y = y:z:0
    }"""
    graph.library.add_function_def(gc.parse_function(text))
    for dtype in (gc.float32, gc.float64):
        for size in (3, 4):
            x, w = gc.placeholder(dtype, [size]), gc.placeholder(dtype, [])
            y = graph.apply_op("Scaled", [x, w]).outputs[0]
            dx, dw = gc.gradients(y, [x, w])
            assert (dx.shape, dx.dtype, dw.shape) == (gc.Shape([size]), dtype, gc.Shape([]))
            feeds = {x: np.linspace(-1, 1, size), w: 1.5}
            t = np.tanh(np.linspace(-1, 1, size))
            values = gc.Session().run([dx, dw], feeds)
            np.testing.assert_allclose(values[0], 1.5 * (1 - t * t), rtol=1e-5)
            np.testing.assert_allclose(values[1], t.sum(), atol=1e-6)


def test_second_and_third_derivatives_go_through_nested_calls() -> None:
    x, w = arguments()
    y, z = call("Outer", x, w)
    first = gc.gradients(y * z, [x, w])
    second = gc.gradients(gc.add_n(first), [x, w])
    for value in (y * z, gc.add_n(first), gc.add_n(second)):
        assert gc.check_gradient(value, [x, w], POINT).passed


@pytest.mark.parametrize("known", [True, False], ids=["known shapes", "unknown shapes"])
def test_calls_within_branches_and_loops_are_differentiated(known: bool, graph: gc.Graph) -> None:
    shape = [3] if known else [None]
    x, w = gc.placeholder(gc.float64, shape, name="x"), gc.placeholder(gc.float64, shape, name="w")

    def body(i: gc.Tensor, v: gc.Tensor) -> Any:
        return i + 1, gc.cond(i > 0, lambda: call("Outer", v, w)[1], lambda: call("Inner", v, w))

    y = gc.while_loop(lambda i, _: i < 3, body, (0, x))[1]
    dx, dw = gc.gradients(y, [x, w])
    assert gc.check_gradient(y, [x, w], POINT).passed
    assert gc.check_gradient(dx + dw, [x, w], POINT).passed
    back = [function for function in graph.library if function.name.startswith("gradients_while_grad_while_body")]
    reached = [function for each in back for function in (each, *graph.library.reachable_definitions(each))]
    assert back
    assert "Tanh" not in {node.op for function in reached for node in function.node_def}


def test_a_call_in_a_loop_in_switch_and_merge_form_is_differentiated() -> None:
    x, w = arguments()
    y = v1_while("loop", 3, lambda loop, _, v: [call("Inner", v[0], loop.constant(1.5, gc.float64)) * v[0]], [x])[0]
    dx = gc.gradients(y, x)[0]
    assert gc.check_gradient(y, [x], POINT).passed
    _, count = runs_by_name([y, dx], POINT, "dataflow")
    assert count["t"] == 3
    del w


def test_what_an_inner_call_draws_at_random_is_what_the_gradient_of_the_outer_one_takes() -> None:
    @gc.function
    def noise(v: gc.Tensor) -> Any:
        return v * gc.random_uniform([100])

    @gc.function
    def outer(v: gc.Tensor) -> Any:
        return noise(v) * 2.0

    x = gc.placeholder(gc.float32, [100], name="x")
    y = outer(x)
    by_x, again = gc.gradients(y, x)[0], gc.gradients(3.0 * y, x)[0]
    with gc.Session() as session:
        drawn, slope, steeper = session.run([y, by_x, again], {x: np.ones(100, np.float32)})
        np.testing.assert_array_equal(drawn, slope)
        np.testing.assert_allclose(steeper, 3 * drawn, rtol=1e-6)


def test_gradients_that_a_function_builds_within_itself_take_what_it_drew() -> None:
    @gc.function
    def noise(v: gc.Tensor) -> Any:
        return v * gc.random_uniform([100])

    @gc.function
    def both(v: gc.Tensor) -> tuple[gc.Tensor, gc.Tensor]:
        y = noise(v)
        return y, gc.gradients(y, v)[0]

    x = gc.placeholder(gc.float32, [100], name="x")
    with gc.Session() as session:
        drawn, slope = session.run(both(x), {x: np.ones(100, np.float32)})
        np.testing.assert_array_equal(drawn, slope)


def test_an_op_without_a_gradient_matters_only_on_the_way(graph: gc.Graph) -> None:
    text = """Mixed(x:float, w:float) -> (y:float, z:float) {
      y = Square[T=float](x)
      z = IgammaGradA[T=float](w, x)
      return y = y:y:0
      return z = z:z:0
    }"""
    graph.library.add_function_def(gc.parse_function(text))
    x, w = gc.placeholder(gc.float32, [3], name="x"), gc.placeholder(gc.float32, [3], name="w")
    y, z = call("Mixed", x, w)
    names = graph.library.list_function_names()
    (dx,) = gc.gradients(y, x)
    np.testing.assert_allclose(gc.Session().run(dx, POINT), [0.2, -0.4, 0.6], rtol=1e-6)
    assert sorted(set(graph.library.list_function_names()) - set(names)) == ["Mixed_gradient_of_y_by_x"]
    with pytest.raises(gc.errors.NotFoundError, match="No gradient defined for op: IgammaGradA"):
        gc.gradients(z, w)


def test_the_plain_body_stays_a_symbolic_gradient(graph: gc.Graph) -> None:
    x, w = arguments()
    gc.gradients(call("Inner", x, w), x, simplify=False)
    assert "SymbolicGradient" in {node.op for node in graph.op_nodes()}
    assert "Inner_gradient" not in graph.library


def test_a_gradient_that_the_library_names_for_an_inner_function_is_used(graph: gc.Graph) -> None:
    text = """Doubled(x:double, w:double, dy:double) -> (dx:double, dw:double) {
      dx = Add[T=double](dy, dy)
      return dx = dx:z:0
      return dw = dy
    }"""
    graph.library.add_function_def(gc.parse_function(text))
    graph.library.add_gradient_def(GradientDef("Inner", "Doubled"))
    x, w = arguments()
    (dx,) = gc.gradients(call("Outer", x, w)[1], x)
    assert gc.Session().run(dx, POINT).tolist() == [4.0, 4.0, 4.0]


def test_a_gradient_that_is_explained_first_is_the_one_that_is_built_then(graph: gc.Graph) -> None:
    x, w = arguments()
    y = call("Inner", x, w)
    names = graph.library.list_function_names()
    before = gc.explain_gradient(y, x)
    assert graph.library.list_function_names() == names
    (dx,) = gc.gradients(y, x)
    after = gc.explain_gradient(y, x)
    assert before.steps == after.steps
    assert [back.name for back in after.steps[0].backward] == ["gradients/call_grad/forward", "gradients/call_grad/gradient"]
    assert after.built
    assert after.gradient == dx.name


def test_what_is_not_used_any_more_leaves_no_function_behind(graph: gc.Graph) -> None:
    cells = Cells(graph)
    x, w = arguments()
    factor = [1.5]
    called = [True]

    def define() -> None:
        text = f"""Changing(x:double) -> (y:double) {{
          c = Const[dtype=double, value=Tensor<type: double shape: [] values: {factor[0]}>]()
          t = Tanh[T=double](x)
          y = Mul[T=double](t:y:0, c:output:0)
          return y = y:z:0
        }}"""
        made = gc.parse_function(text)
        if "Changing" in graph.library:
            graph.library.replace_function("Changing", made)
        else:
            graph.library.add_function_def(made)

    def forward() -> None:
        gc.identity(graph.apply_op("Changing", [x], None, "call").outputs[0] if called[0] else w * x, name="y")

    def backward() -> None:
        gc.identity(gc.gradients(graph.get_tensor_by_name("y:0"), x)[0], name="dx")

    def run() -> Any:
        define()
        cells.run("forward", forward)
        cells.run("backward", backward)
        return gc.Session().run("dx:0", POINT)

    slope = 1 - np.tanh(POINT["x:0"]) ** 2
    np.testing.assert_allclose(run(), 1.5 * slope)
    functions = graph.library.list_function_names()
    assert {"Changing_forward", "Changing_gradient"} <= set(functions)
    np.testing.assert_allclose(run(), 1.5 * slope)
    assert sorted(graph.library.list_function_names()) == sorted(functions)
    factor[0] = 2.5
    np.testing.assert_allclose(run(), 2.5 * slope)
    assert graph.library.num_functions == len(functions), "the gradient of the function that was before is gone"
    called[0] = False
    np.testing.assert_allclose(run(), POINT["w:0"])
    assert set(graph.library.list_function_names()) == {"Inner", "Outer", "Changing"}


def test_gradients_in_a_function_leave_the_functions_of_the_graph_around_it_alone(graph: gc.Graph) -> None:
    x, w = arguments()
    y = call("Inner", x, w)
    dx = gc.gradients(gc.cond(gc.reduce_sum(y) > 0.0, lambda: y * x, lambda: y), x)[0]

    @gc.function
    def slope(v: gc.Tensor) -> Any:
        return gc.gradients(gc.cond(gc.reduce_sum(v) > 0.0, lambda: call("Inner", v, v), lambda: v), v)

    slopes = slope(x)
    values = gc.Session().run([dx, *slopes], POINT)
    assert [value.shape for value in values] == [(3,), (3,)]
    assert all(np.isfinite(values[0]))
