"""Runs of JAX programs in sessions, compared with JAX's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import InvalidArgumentError
from graphcore.frontends.frontend import Call
from graphcore.frontends.record import foreign_of
from widgets.scene.time_lens import recorded_times
from widgets.scene.value_lens import recorded_values

jax: Any = pytest.importorskip("jax")
jnp = jax.numpy
pytestmark = pytest.mark.frameworks
VALUES = gc.RunOptions(values=True)
X = jnp.arange(6.0).reshape(2, 3)
Function = Callable[..., Any]


def log_of_zero(x: Any) -> Any:
    return jnp.log(x * 0).sum()  # here


def zero_by_zero(x: Any) -> Any:
    y = x - x
    return (y / y).sum()  # here


def root_of_negative(x: Any) -> Any:
    return jnp.sqrt(-1 - x)  # here


def overflow_of_exponential(x: Any) -> Any:
    return jnp.exp(x * 100) * 2  # here


def arccosine_of_two(x: Any) -> Any:
    return jnp.arccos(x * 0 + 2)  # here


def power_of_negative(x: Any) -> Any:
    return jnp.power(-1 - x, 0.5)  # here


def masked_softmax(x: Any) -> Any:
    y = x + jnp.finfo(jnp.float32).min  # every score is masked, and once more
    z = y + jnp.finfo(jnp.float32).min  # here
    return jnp.exp(z - z.max(axis=-1, keepdims=True))


def normalisation_of_equals(x: Any) -> Any:
    y = x * 0 + 1
    return (y - y.mean()) / y.std()  # here


def overflow_of_half(x: Any) -> Any:
    return (x + 60000).astype(jnp.float16) * 2  # here


def overflow_of_bfloat(x: Any) -> Any:
    return (x + 3e38).astype(jnp.bfloat16) * 2  # here


def masked_row(x: Any) -> Any:
    y = jnp.where(x < 0, x, -jnp.inf)
    return jax.nn.softmax(y)  # here


def factor_of_indefinite(x: Any) -> Any:
    matrix = x @ x.T - 100 * jnp.eye(2)
    return jnp.linalg.cholesky(matrix).sum()  # here


def inverse_of_zeros(x: Any) -> Any:
    matrix = x @ x.T * 0
    return jnp.linalg.inv(matrix)  # here


FAULTS = [
    factor_of_indefinite,
    inverse_of_zeros,
    masked_row,
    log_of_zero,
    zero_by_zero,
    root_of_negative,
    overflow_of_exponential,
    arccosine_of_two,
    power_of_negative,
    masked_softmax,
    normalisation_of_equals,
    overflow_of_half,
    overflow_of_bfloat,
]


doubled = jax.custom_jvp(lambda x: x * 2)
tripled = jax.custom_vjp(lambda x: x * 3)
doubled.defjvp(lambda primals, tangents: (doubled(primals[0]), tangents[0] * 2))
tripled.defvjp(lambda x: (tripled(x), None), lambda _, cotangent: (cotangent * 3,))


def everything(x: Any, key: Any, n: Any) -> Any:
    y = jax.checkpoint(lambda a: jnp.sin(a) @ a.T)(x)
    y, sums = jax.lax.scan(lambda carry, row: (carry * 1.1 + row.sum(), carry.mean()), y, jnp.ones((5, 2)), reverse=True)
    y = jax.lax.while_loop(lambda state: state.sum() < 100, lambda state: state * 1.5 + 1, y)
    y = jax.lax.cond(n > 0, lambda a: a + n, lambda a: a - n, y)
    y = jax.lax.switch(n, [jnp.cos, jnp.sin, jnp.tanh], y)
    y = jax.lax.fori_loop(0, 3, lambda i, a: a + i, y)
    y = doubled(y) + tripled(y) + jax.random.normal(key, y.shape)
    return {"y": jax.nn.softmax(y), "sums": sums.astype(jnp.bfloat16), "sorted": jnp.sort(y)[::-1], "vmapped": jax.vmap(jnp.dot)(y, y)}


def gradient(x: Any, w: Any) -> Any:
    return jax.value_and_grad(lambda w: jnp.mean(jax.nn.gelu(x @ w) ** 2))(w)


def mlp(x: Any, w: Any) -> Any:
    return jax.jit(lambda x: jax.nn.relu(x @ w))(x) @ w.T


CALLS: dict[str, tuple[Function, tuple[Any, ...]]] = {
    "everything": (everything, (X, jax.random.key(3), jnp.int32(2))),
    "everything else": (everything, (X, jax.random.key(4), jnp.int32(0))),
    "gradient": (gradient, (X, jnp.ones((3, 4)) * 0.1)),
    "jitted": (jax.jit(mlp), (X, jnp.ones((3, 4)) * 0.1)),
    "numpy": (jax.jit(mlp), (np.ones((2, 3), np.float32), np.ones((3, 4), np.float32))),
}


def recorded(graph: gc.Graph, feeds: dict[str, Any] | None = None) -> tuple[list[Any], gc.Trace, gc.ValueRecords]:
    results = gc.Session(graph).run(None, feeds, options=VALUES)
    trace = graph.trace
    assert isinstance(trace, gc.Trace)
    assert trace.values is not None
    return results, trace, trace.values


def line_of(function: Function) -> int:
    import inspect  # noqa: PLC0415 - for this alone

    lines, first = inspect.getsourcelines(function)
    return first + next(number for number, line in enumerate(lines) if line.endswith("# here\n"))


@pytest.mark.parametrize("function", FAULTS, ids=lambda function: function.__name__)
@pytest.mark.parametrize("is_jitted", [False, True], ids=["plain", "jitted"])
def test_the_first_bad_value_is_named_with_its_node_and_line(function: Function, is_jitted: bool) -> None:
    graph = gc.from_source(Call(jax.jit(function) if is_jitted else function, (X,)))
    _, _, values = recorded(graph)
    bad = values.first_bad
    assert bad is not None
    node = graph.get_operation_by_name(bad.tensor.call.partition(":")[0] or bad.tensor.node)
    assert node.source is not None
    assert (node.source.file, node.source.line) == (__file__, line_of(function))
    assert f" at test_jax_runs.py, line {node.source.line}" in bad.cause
    assert ("not positive definite" in bad.cause) == (function is factor_of_indefinite)
    lens = recorded_values(graph)
    assert lens is not None
    assert lens.values.health.first is not None


def test_a_bad_input_is_the_first_bad_value() -> None:
    graph = gc.from_source(Call(jnp.tanh, (X.at[0, 1].set(jnp.nan),)))
    _, _, values = recorded(graph)
    bad = values.first_bad
    assert bad is not None
    assert (graph.get_operation_by_name(bad.tensor.node).op, bad.tensor.nan) == ("jax.argument", 1)


@pytest.mark.parametrize("name", CALLS)
def test_results_are_those_of_the_function_without_compilation(name: str) -> None:
    function, args = CALLS[name]
    results, _, _ = recorded(gc.from_source(Call(function, args)))
    with jax.disable_jit():
        plain = function(*args)
    for ours, theirs in zip(results, jax.tree.leaves(plain), strict=True):
        np.testing.assert_array_equal(ours, np.asarray(theirs), strict=True)
    for ours, theirs in zip(results, jax.tree.leaves(function(*args)), strict=True):
        np.testing.assert_allclose(np.asarray(ours, np.float32), np.asarray(theirs, np.float32), rtol=1e-5, atol=1e-5)


def test_values_within_loops_and_branches_have_their_calls_and_places_in_views() -> None:
    graph = gc.from_source(Call(*CALLS["everything"]))
    _, trace, values = recorded(graph)
    calls = [one.call for one in values if one.call.startswith("scan:")]
    assert {call.partition("#")[2] for call in calls} == {"", "2", "3", "4", "5"}
    assert not any(call.endswith(":false") for call in (one.call for one in values))
    lens, times = recorded_values(graph), recorded_times(graph)
    assert lens is not None
    assert times is not None
    names = {lens.values.prefixes[place] + name for place, name in zip(lens.values.places, lens.values.names, strict=True)}
    assert any(name.startswith("scan:/") for name in names)
    assert any(name.startswith("while:cond/") for name in names)
    assert trace.length > 0


def test_a_long_loop_runs_as_one_node_after_many_turns() -> None:
    def long(x: Any) -> Any:
        return jax.lax.while_loop(lambda state: state[1] < 3000, lambda state: (state[0] * 0.999, state[1] + 1), (x, 0))

    graph = gc.from_source(Call(long, (X,)))
    results, _, _ = recorded(graph)
    np.testing.assert_allclose(results[0], np.asarray(long(X)[0]), rtol=1e-5)
    assert int(results[1]) == 3000


def test_a_program_takes_feeds_that_fit() -> None:
    graph = gc.from_source(jax.make_jaxpr(mlp)(X, jnp.ones((3, 4))))
    session, w = gc.Session(graph), np.full((3, 4), 0.5, np.float32)
    np.testing.assert_array_equal(session.run(None, {"x": np.asarray(X), "w": w})[0], np.asarray(mlp(X, w)))
    with pytest.raises(InvalidArgumentError, match="none for w"):
        session.run(None, {"x": np.asarray(X)})
    with pytest.raises(InvalidArgumentError, match="shape"):
        session.run(None, {"x": np.ones((3, 3), np.float32), "w": w})


def test_any_value_of_a_program_can_be_fetched() -> None:
    graph = gc.from_source(Call(zero_by_zero, (X,)))
    assert not gc.Session(graph).run("sub").any()
    assert np.isnan(gc.Session(graph).run("div")).all()


def test_callbacks_are_made_as_a_plain_call_makes_them(capfd: pytest.CaptureFixture[str]) -> None:
    def printing(x: Any) -> Any:
        jax.debug.print("sum {}", x.sum())
        return x + 1

    graph = gc.from_source(Call(printing, (X,)))
    jax.effects_barrier()
    assert capfd.readouterr().out == "", "to look at it prints nothing"
    recorded(graph)
    jax.effects_barrier()
    assert capfd.readouterr().out == "sum 15.0\n"


@pytest.mark.parametrize("kind", ["equinox", "flax"])
def test_modules_run_with_their_parameters(kind: str) -> None:
    library = pytest.importorskip(kind)
    x = jnp.ones((4, 3))
    args: tuple[Any, ...]
    if kind == "equinox":
        model = library.nn.MLP(3, 2, 8, 2, key=jax.random.key(0))
        function, args = jax.vmap(model), (x,)
    else:
        dense = library.linen.Dense(2)
        params = dense.init(jax.random.key(0), x)
        function, args = lambda params, x: jax.nn.tanh(dense.apply(params, x)), (params, x)
    results, _, values = recorded(gc.from_source(Call(function, args)))
    with jax.disable_jit():
        plain = function(*args)
    np.testing.assert_array_equal(results[0], np.asarray(plain))
    assert values.first_bad is None


def test_constants_and_arguments_are_recorded() -> None:
    weights = jnp.full((3, 2), 7.0)
    graph = gc.from_source(Call(lambda x: x @ weights, (X,)))
    _, _, values = recorded(graph)
    record = foreign_of(graph)
    assert record is not None
    held = [name for name, node in record.nodes.items() if node.op == "jax.constant"]
    assert [values[name].mean for name in held] == [7.0]


def test_a_recorded_call_gives_what_the_function_gives() -> None:
    function, args = CALLS["everything"]
    run = gc.run(function, *args)
    with jax.disable_jit():
        plain = function(*args)
    assert jax.tree.structure(run.result) == jax.tree.structure(plain)
    assert all(jnp.array_equal(ours, theirs) for ours, theirs in zip(jax.tree.leaves(run.result), jax.tree.leaves(plain), strict=True))
    assert run.trace.values is not None
    assert run.trace.values.first_bad is None
    assert {type(leaf) for leaf in jax.tree.leaves(run.result)} == {type(X)}


def scaled(factor: float, *, shift: float = 0.0) -> Any:
    return jnp.sin(X * factor + shift)


NUMBERS: dict[str, tuple[Function, tuple[Any, ...], dict[str, Any]]] = {
    "array around": (scaled, (1.5,), {"shift": 2}),
    "jitted": (jax.jit(scaled), (1.5,), {}),
    "numbers alone": (lambda factor, shift: jnp.sin(factor) + shift, (1.5, 2), {}),
    "in a list": (lambda parts: jnp.asarray(parts).sum(), ([1.0, 2.0],), {}),
    "of JAX": (jnp.arctan2, (1.5, 2), {}),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_recorded_call_takes_numbers_of_python(name: str) -> None:
    function, args, kwargs = NUMBERS[name]
    run = gc.run(function, *args, **kwargs)
    with jax.disable_jit():
        plain = function(*args, **kwargs)
    np.testing.assert_array_equal(np.asarray(run.result), np.asarray(plain), strict=True)
    assert type(run.result) is type(plain)


def test_a_recorded_call_that_fails_in_a_callback_names_the_node() -> None:
    def failing(value: Any) -> Any:
        raise KeyError(value.shape)

    def function(x: Any) -> Any:
        y = jnp.sin(x)
        return jax.pure_callback(failing, jax.ShapeDtypeStruct((), x.dtype), y) + 1

    run = gc.run(function, X)
    assert run.error is not None
    assert "KeyError" in str(run.error)
    assert [node.op for node in run.graph.op_nodes() if node.error is not None] == ["jax.pure_callback"]
    assert run.trace.values is not None
    assert run.trace.values["sin"].size == X.size


def test_a_recorded_call_that_fails_while_it_is_traced_is_drawn_up_to_there() -> None:
    run = gc.run(lambda x: jnp.sin(x) @ jnp.ones((5, 5)), X)
    assert isinstance(run.error, TypeError)
    assert any(node.error is not None for node in run.graph.op_nodes())


def test_a_program_is_run_with_values_by_order_and_by_name() -> None:
    program = jax.make_jaxpr(mlp)(X, jnp.ones((3, 4)))
    run = gc.run(program, X, w=jnp.ones((3, 4)))
    np.testing.assert_array_equal(run.result[0], mlp(X, jnp.ones((3, 4))))


def test_a_bad_value_within_a_loop_says_where_it_came_about() -> None:
    def looping(x: Any) -> Any:
        def turn(carry: Any, _: Any) -> Any:
            lower = carry - 2
            return lower, jnp.sqrt(lower)  # here

        return jax.lax.scan(turn, jnp.float32(5), jnp.arange(4))

    _, _, values = recorded(gc.from_source(Call(looping, (X,))))
    bad = values.first_bad
    assert bad is not None
    assert bad.tensor.call == "scan:scan#3"
    assert [(one.node, one.max) for one in bad.inputs] == [("sub", -1.0)]
    assert f"{line_of(looping)}" in bad.cause
    assert bad.cause.endswith("its inputs were finite")


@pytest.mark.parametrize("function", [lambda x: x.std(), lambda x: jnp.var(x, axis=1), lambda x: jnp.where(x < 100, x, jnp.nan)])
def test_constants_that_are_chosen_nowhere_are_no_bad_values(function: Any) -> None:
    values = gc.run(function, jnp.arange(6.0).reshape(2, 3)).trace.values
    assert values is not None
    assert values.first_bad is None
    values = gc.run(jax.grad(lambda x: jnp.var(x) / x.sum()), jnp.zeros(3)).trace.values
    assert values is not None
    assert values.first_bad is not None
    assert "div" in values.first_bad.tensor.node
