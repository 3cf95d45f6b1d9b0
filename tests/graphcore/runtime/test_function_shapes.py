"""Functions called repeatedly with the same shapes get plans for these shapes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import InvalidArgumentError
from graphcore.runtime.functions import specialise
from graphcore.runtime.plan import parallel

CHAIN = """Chain(x:float) -> (y:float) {
  a = Exp[T=float](x)
  b = Tanh[T=float](a:y)
  c = Neg[T=float](b:y)
  return y = c:y:0
}"""
HEAVY = """Heavy(x:float) -> (y:float) {
  a = Exp[T=float](x)
  b = Tanh[T=float](x)
  c = Add[T=float](a:y, b:y)
  return y = c:z:0
}"""
SUMMED = """Summed(x:float, v:float) -> (dx:float) {
  s = Shape[T=float](x)
  t = Shape[T=float](v)
  r = BroadcastGradientArgs(s:output, t:output)
  z = Sum[T=float, Tidx=int32, keep_dims=false](v, r:r0)
  return dx = z:output:0
}"""


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def runtime_of(*texts: str) -> gc.FunctionLibraryRuntime:
    library = gc.FunctionLibraryDefinition(gc.op_registry)
    for text in texts:
        library.add_function_def(gc.parse_function(text))
    return gc.FunctionLibraryRuntime(library)


def source_for(runtime: gc.FunctionLibraryRuntime, handle: int, *args: Any) -> str:
    """The plan used for such arguments after enough calls."""
    for _ in range(4):
        runtime.run(handle, args)
    specialised = runtime.get_or_create_item(handle).specialised
    assert specialised is not None
    return specialised.plan_for(args).source


def test_results_go_into_the_buffers_of_inputs() -> None:
    runtime = runtime_of(CHAIN)
    handle = runtime.instantiate("Chain")
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    text = source_for(runtime, handle, x)
    assert "tanh(t0_0, t0_0)" in text
    for shape in ((3, 4), (12,), (2, 2, 3), ()):
        value = x.reshape(-1)[: int(np.prod(shape))].reshape(shape)
        for _ in range(4):
            np.testing.assert_allclose(runtime.run(handle, [value])[0], -np.tanh(np.exp(value)), rtol=1e-6)
    assert x.tolist() == np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4).tolist()


def test_heavy_nodes_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "core_count", lambda: 2)
    runtime = runtime_of(HEAVY)
    handle = runtime.instantiate("Heavy")
    x = np.linspace(0, 1, 360_000, dtype=np.float32).reshape(600, 600)
    assert source_for(runtime, handle, x).count("submit(") == 1
    np.testing.assert_allclose(runtime.run(handle, [x])[0], np.exp(x) + np.tanh(x), rtol=1e-5)
    assert source_for(runtime, handle, x[:2]).count("submit(") == 0


def test_computations_on_shapes_are_left_out() -> None:
    runtime = runtime_of(SUMMED)
    handle = runtime.instantiate("Summed")
    x, v = np.zeros((3,), np.float32), np.arange(6, dtype=np.float32).reshape(2, 3)
    text = source_for(runtime, handle, x, v)
    assert text.count(" = k") == 1
    assert runtime.run(handle, [x, v])[0].tolist() == [3, 5, 7]
    assert runtime.run(handle, [v, v])[0].tolist() == v.tolist()


@pytest.mark.parametrize("engine", ["plan", "dataflow"])
def test_a_call_in_a_graph_gives_the_same_before_and_after(engine: str) -> None:
    x = gc.placeholder(gc.float32, [None, None], name="x")
    called = gc.function(lambda v: gc.reduce_sum(gc.tanh(gc.exp(v) * 2.0) + v, 0), name="f")
    y = called(x)
    gradient = gc.gradients(y, x)[0]
    with gc.Session(engine=engine) as session:
        for rows in (3, 5, 3):
            value = np.linspace(-1, 1, rows * 2, dtype=np.float32).reshape(rows, 2)
            found = [session.run([y, gradient], {x: value}) for _ in range(5)]
            for other in found[1:]:
                np.testing.assert_allclose(other[0], found[0][0], rtol=1e-6)
                np.testing.assert_allclose(other[1], found[0][1], rtol=1e-6)
            np.testing.assert_allclose(found[0][0], (np.tanh(np.exp(value) * 2) + value).sum(0), rtol=1e-5)


def test_random_numbers_continue_when_a_function_is_planned_for_its_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn() -> list[list[float]]:
        with gc.Graph().as_default():
            gc.set_random_seed(4)
            x = gc.placeholder(gc.float32, [None])
            y = gc.function(lambda v: v * 2.0 + gc.random_uniform(gc.shape(v), seed=2), name="noisy")(x)
            with gc.Session() as session:
                return [session.run(y, {x: np.zeros(3)}).tolist() for _ in range(6)]

    often = drawn()
    monkeypatch.setattr(specialise, "_RUNS_BEFORE", 1000)
    assert drawn() == often


def test_a_function_that_is_replaced_runs_anew() -> None:
    runtime = runtime_of(CHAIN)
    handle = runtime.instantiate("Chain")
    x = np.ones(3, np.float32)
    source_for(runtime, handle, x)
    runtime.library.replace_function("Chain", gc.parse_function(CHAIN.replace("Neg", "Square")))
    for _ in range(4):
        np.testing.assert_allclose(runtime.run(handle, [x])[0], np.tanh(np.exp(x)) ** 2, rtol=1e-6)


def test_an_error_in_such_a_plan_names_its_node() -> None:
    runtime = runtime_of(HEAVY.replace("Heavy(x:float)", "Heavy(x:float, v:float)").replace("(a:y, b:y)", "(a:y, v)"))
    handle = runtime.instantiate("Heavy")
    args = [np.ones(3, np.float32), np.ones(2, np.float32)]
    for _ in range(5):
        with pytest.raises(InvalidArgumentError) as caught:
            runtime.run(handle, args)
        assert caught.value.node == "c"


def test_a_loop_over_scalars_does_not_look_at_shapes_for_ever() -> None:
    body = "Body(x:float) -> (y:float) {\n  a = Sqrt[T=float](x)\n  b = Neg[T=float](a:y)\n  return y = b:y:0\n}"
    runtime = runtime_of(body)
    handle = runtime.instantiate("Body")
    for _ in range(5):
        assert runtime.run(handle, [np.float32(4.0)]) == [-2.0]
    assert runtime.get_or_create_item(handle).specialised is None


def test_control_dependencies_on_arguments_hold_in_plans_for_shapes_too() -> None:
    runtime = runtime_of("""Waits(x:float, v:float) -> (y:float) {
      a = Exp[T=float](x) @ v
      b = Mul[T=float](a:y, v)
      return y = b:z:0
    }""")
    handle = runtime.instantiate("Waits")
    x, v = np.zeros(3, np.float32), np.full(3, 2, np.float32)
    for _ in range(5):
        np.testing.assert_array_equal(runtime.run(handle, [x, v])[0], v)
    assert runtime.get_or_create_item(handle).specialised is not None
