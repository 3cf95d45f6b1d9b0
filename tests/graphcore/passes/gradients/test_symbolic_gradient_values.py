"""`symbolic_gradient` of random functions: gradients, first and second, match finite differences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphcore as gc
from tests.graphcore.passes.function_examples import ADD_AND_MUL, X_TIMES_16, X_TIMES_FOUR, X_TIMES_TWO, library, lines

OPS = ("Add", "Mul", "Sub", "Neg", "Tanh", "Square", "Identity", "XTimesFour", "Unused", "PartitionedCall", "AddN")
Line = tuple[str, int, int]
bodies = st.lists(st.tuples(st.sampled_from(OPS), st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=9)
POINT = (0.4, -0.7)
STEP = 1e-5
SLOPE = """Slope(x:double, y:double) -> (dx:double, dy:double) @stateless {
  one = Const[dtype=double, value=Tensor<type: double shape: [] values: 1>]()
  s = SymbolicGradient[Tin={double, double, double, double}, Tout={double, double}, f=F](x, y, one:output:0, one:output:0)
  return dx = s:output:0
  return dy = s:output:1
}"""


def function(some: Sequence[Line]) -> str:
    """A function of two numbers that returns its last two values."""
    values, text = ["x", "y"], []
    for number, (op, first, second) in enumerate(some):
        x, y, name = values[first % len(values)], values[second % len(values)], f"n{number}"
        if op in {"Add", "Mul", "Sub"}:
            text.append(f"  {name} = {op}[T=double]({x}, {y})")
        elif op == "AddN":
            text.append(f"  {name} = AddN[N=3, T=double]({x}, {y}, {x})")
        elif op == "PartitionedCall":
            text.append(f"  {name} = PartitionedCall[Tin={{double}}, Tout={{double}}, f=XTimesTwo[T=double]]({x})")
        elif op == "Unused":
            text.append(f"  {name} = Exp[T=double]({x})")
            continue
        else:
            text.append(f"  {name} = {op}[T=double]({x})")
        output = {
            "Neg": "y",
            "Tanh": "y",
            "Square": "y",
            "Identity": "output",
            "XTimesFour": "y",
            "PartitionedCall": "output",
            "AddN": "sum",
        }
        values.append(f"{name}:{output.get(op, 'z')}:0")
    returns = f"  return p = {values[-1]}\n  return q = {values[-2]}"
    body = "\n".join(text)
    return f"F(x:double, y:double) -> (p:double, q:double) @stateless {{\n{body}\n{returns}\n}}"


def differences(run: gc.FunctionLibraryRuntime, handle: int) -> list[float]:
    """Finite differences of the sum of a function's results by each argument."""
    found = []
    for index in range(2):
        ends = []
        for sign in (1, -1):
            at = [np.float64(value + (sign * STEP if place == index else 0)) for place, value in enumerate(POINT)]
            ends.append(sum(float(value) for value in run.run(handle, at)))
        found.append((ends[0] - ends[1]) / (2 * STEP))
    return found


@given(bodies)
@settings(max_examples=25, deadline=None)
def test_gradients_and_their_gradients_are_those_of_finite_differences(some: list[Line]) -> None:
    run = gc.FunctionLibraryRuntime(library(X_TIMES_TWO, X_TIMES_FOUR, function(some), SLOPE))
    forward, slope = run.instantiate("F"), run.instantiate("Slope")
    body = run.get_function_body(forward)
    before = lines(body.graph)
    gradient = gc.symbolic_gradient(body)
    assert lines(body.graph) == before, "the forward function is copied"
    assert (gradient.arg_types, gradient.ret_types) == ((gc.float64,) * 4, (gc.float64,) * 2)
    assert {line for line in before if "_Retval" not in line} <= lines(gradient.graph)
    at = [np.float64(value) for value in POINT]
    np.testing.assert_allclose(run.run(slope, at), differences(run, forward), rtol=1e-5, atol=1e-6)
    second = run.instantiate("SymbolicGradient", {"f": gc.Func("Slope")})
    np.testing.assert_allclose(run.run(second, [*at, np.float64(1), np.float64(1)]), differences(run, slope), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "text", [X_TIMES_TWO, X_TIMES_FOUR, X_TIMES_16, ADD_AND_MUL], ids=["XTimesTwo", "XTimesFour", "XTimes16", "AddAndMul"]
)
def test_the_functions_of_the_examples_have_gradients(text: str) -> None:
    run = gc.FunctionLibraryRuntime(library(*dict.fromkeys([X_TIMES_TWO, X_TIMES_FOUR, X_TIMES_16, text])))
    name = text.partition("[")[0].partition("(")[0]
    dtype = gc.int32 if name == "AddAndMul" else gc.float64
    attrs = {} if name == "AddAndMul" else {"T": dtype}
    of = {"XTimesTwo": 2, "XTimesFour": 4, "XTimes16": 16, "AddAndMul": 2 * 3}[name]
    body = run.instantiate_symbolic_gradient(gc.Func(name, dict(attrs)))
    assert body.arg_types == (dtype, dtype)
    handle = run.instantiate("SymbolicGradient", {"f": gc.Func(name, dict(attrs))})
    assert run.run(handle, [np.asarray(3, dtype.as_numpy), np.asarray(5, dtype.as_numpy)]) == [5 * of]
    assert run.get_function_body(handle) is body
