"""Programs of JAX with a fault that raises no error: a remark or explanation names it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import InvalidArgumentError
from graphcore.frontends.frontend import Call
from graphcore.frontends.sources import open_source

jax: Any = pytest.importorskip("jax")
jnp, lax = jax.numpy, jax.lax
pytestmark = pytest.mark.frameworks

W = jnp.array([[1.0, -2.0], [3.0, 4.0]])
B = jnp.array(0.5)
UNUSED = jnp.ones(2)
COUNTS = jnp.arange(2)
X = jnp.array([[1.0, 2.0], [0.0, -1.0]])
KEY = jax.random.key(0)


@jax.custom_vjp  # type: ignore[untyped-decorator]  # jax is absent where types are checked
def own(x: Any) -> Any:
    return x * 2


own.defvjp(lambda x: (x * 2, None), lambda _, g: (jnp.zeros_like(g),))


def stopped() -> Any:
    target = lax.stop_gradient(X @ W)
    return (target * B).sum()


def rounded() -> Any:
    return jnp.round(X @ W).sum()


def signed() -> Any:
    return jnp.sign(X @ W).sum()


def chosen() -> Any:
    best = (X @ W).argmax()
    return best * B


def cast() -> Any:
    whole = (X @ W).astype(int)
    return whole.sum() * B


def dead() -> Any:
    h = -jnp.abs(X @ W) - 1
    return jax.nn.relu(h).sum()


def with_own_gradient() -> Any:
    return own(X @ W).sum()


def in_jit() -> Any:
    return jax.jit(lambda w: jnp.floor(X @ w).sum())(W)


def masked_out() -> Any:
    return jnp.where(False, X @ W, 0.0).sum()


def times_zero() -> Any:
    return ((X @ W) * jnp.zeros(2)).sum()


def saturated() -> Any:
    return jax.nn.sigmoid(X @ W * 1e4).sum()


def rounded_in_a_scan() -> Any:
    _, rows = lax.scan(lambda c, x: (c, jnp.round(x @ W)), 0.0, X)
    return rows.sum()


class Zero(NamedTuple):
    """A function whose gradient by `W` is zero, with the kind of the cut, the node and the line."""

    function: Callable[[], Any]
    kind: str
    node: str
    line: str


ZEROS = {
    "stop_gradient": Zero(stopped, "stop_gradient", "stop_gradient", "target = lax.stop_gradient(X @ W)"),
    "round": Zero(rounded, "not differentiable", "round", "return jnp.round(X @ W).sum()"),
    "sign": Zero(signed, "not differentiable", "sign", "return jnp.sign(X @ W).sum()"),
    "argmax": Zero(chosen, "dtype", "argmax", "best = (X @ W).argmax()"),
    "integer": Zero(cast, "dtype", "convert_element_type", "whole = (X @ W).astype(int)"),
    "dead relu": Zero(dead, "dead", "relu", "return jax.nn.relu(h).sum()"),
    "custom_vjp": Zero(with_own_gradient, "custom gradient", "own", "return own(X @ W).sum()"),
    "floor in jit": Zero(in_jit, "not differentiable", "floor", "return jax.jit(lambda w: jnp.floor(X @ w).sum())(W)"),
    "where": Zero(masked_out, "not taken", "select_n", "return jnp.where(False, X @ W, 0.0).sum()"),
    "saturated": Zero(saturated, "saturated", "logistic", "return jax.nn.sigmoid(X @ W * 1e4).sum()"),
    "round in a scan": Zero(
        rounded_in_a_scan, "not differentiable", "scan", "_, rows = lax.scan(lambda c, x: (c, jnp.round(x @ W)), 0.0, X)"
    ),
    "zeros": Zero(times_zero, "zero factor", "mul", "return ((X @ W) * jnp.zeros(2)).sum()"),
}


@pytest.mark.parametrize("name", list(ZEROS))
def test_a_zero_gradient_is_explained_by_the_operation_that_ends_it(name: str) -> None:
    row = ZEROS[name]
    explanation = gc.explain_gradient(row.function, W)
    (cut,) = explanation.cuts
    assert (cut.kind, cut.node) == (row.kind, row.node)
    assert cut.source is not None
    assert cut.source.text == row.line
    assert explanation.is_zero
    assert explanation.x == "W"
    assert row.line in repr(explanation)
    assert row.node in explanation._repr_html_()


def test_what_stops_behind_the_place_where_a_gradient_ends_is_not_named() -> None:
    def score() -> Any:
        h = lax.stop_gradient(X @ W)
        return jax.nn.log_softmax(h * B)[0, 0]

    (cut,) = gc.explain_gradient(score, W).cuts
    assert cut.source is not None
    assert cut.source.text == "h = lax.stop_gradient(X @ W)"
    (inside,) = gc.explain_gradient(score, B).cuts
    assert inside.source is not None
    assert inside.source.text == "return jax.nn.log_softmax(h * B)[0, 0]"


def test_two_ends_of_a_gradient_one_behind_the_other_are_both_named() -> None:
    def score() -> Any:
        h = lax.stop_gradient(X @ W)
        return lax.stop_gradient(h * B).sum()

    explanation = gc.explain_gradient(score, W)
    assert explanation.is_zero
    lines = [cut.source.text for cut in explanation.cuts if cut.source is not None]
    assert lines == ["return lax.stop_gradient(h * B).sum()", "h = lax.stop_gradient(X @ W)"]


def loss(w: Any, x: Any) -> Any:
    return jnp.tanh(x @ w).sum()


def test_the_gradient_of_a_function_that_has_one_is_not_cut() -> None:
    for explanation in (gc.explain_gradient(lambda: loss(W, X), W), gc.explain_gradient(functools.partial(loss, W, X), "w")):
        assert not explanation.is_zero
        assert not explanation.cuts
        assert explanation.kind == "float32 [2, 2]"
        assert explanation.paths[0][1:] == ("dot_general", "tanh", "reduce_sum")


def test_a_masked_logarithm_that_gives_nan_is_named_with_the_line_of_both() -> None:
    def entropy() -> Any:
        logs = jnp.log(X)
        return jnp.where(X > 0, logs, 0.0).sum()

    explanation = gc.explain_gradient(entropy, X)
    (cut,) = explanation.cuts
    assert cut.kind == "not finite"
    assert cut.source is not None
    assert cut.source.text == "logs = jnp.log(X)"
    assert "jnp.where (test_faults_of_jax.py, line " in cut.reason
    assert "not finite" in explanation.kind


def test_an_array_that_the_result_does_not_depend_on_is_said_to_be_unused() -> None:
    def beside() -> Any:
        aside = jnp.sin(UNUSED)
        del aside
        return B * 2

    (unused,) = gc.explain_gradient(beside, UNUSED).cuts
    assert unused.kind == "unused"
    assert unused.source is not None
    assert unused.source.text == "aside = jnp.sin(UNUSED)"
    (absent,) = gc.explain_gradient(lambda: B * 2, UNUSED).cuts
    assert absent.kind == "no path"


def test_integers_and_arguments_outside_of_argnums_have_no_gradient() -> None:
    whole = gc.explain_gradient(lambda: COUNTS * B, COUNTS)
    assert whole.is_none
    assert whole.cuts[0].kind == "dtype"
    left_out = gc.explain_gradient(functools.partial(jax.grad(loss), W, X), X)
    assert left_out.is_none
    assert left_out.cuts[0].kind == "argnums"
    assert not gc.explain_gradient(functools.partial(jax.value_and_grad(loss, argnums=(0, 1)), W, X), X).cuts


def test_an_explanation_prints_nothing_and_calls_no_python(capsys: pytest.CaptureFixture[str]) -> None:
    called: list[Any] = []

    def printing() -> Any:
        total = loss(W, X)
        jax.debug.print("total {}", total)
        return total

    def calling() -> Any:
        jax.experimental.io_callback(called.append, None, X)
        return loss(W, X)

    assert not gc.explain_gradient(printing, W).cuts
    assert "io_callback" in gc.explain_gradient(calling, W).error
    jax.effects_barrier()
    assert (capsys.readouterr().out, called) == ("", [])


def test_a_name_that_is_no_array_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(InvalidArgumentError, match=r"got 'V'; there are: .*W"):
        gc.explain_gradient(lambda: loss(W, X), "V")


def test_an_explanation_agrees_with_jax_on_zero_and_finite_gradients() -> None:
    for row in ZEROS.values():
        gradient = jax.grad(lambda w, row=row: _with(w, row.function))(W)
        assert not gradient.any()


def _with(w: Any, function: Callable[[], Any]) -> Any:
    """The result of a function with another array in place of `W`."""
    before = globals()["W"]
    globals()["W"] = w
    try:
        return function()
    finally:
        globals()["W"] = before


def mean_square(p: Any, y: Any) -> Any:
    return jnp.mean((p - y) ** 2)


def linear(w: Any, x: Any, y: Any) -> Any:
    return jnp.mean((x @ w - y) ** 2)


def drawn_twice(key: Any) -> Any:
    noise = jax.random.normal(key, (3,))
    return noise + jax.random.uniform(key, (3,))


def split_too_late(key: Any) -> Any:
    first, _ = jax.random.split(key)
    return jax.random.normal(first) + jax.random.normal(key)


def drawn_in_a_loop(key: Any, xs: Any) -> Any:
    return lax.scan(lambda c, x: (c + jax.random.normal(key), x), 0.0, xs)


step = jax.jit(lambda state, x: state + x, donate_argnums=0)


def donated(state: Any, x: Any) -> Any:
    after = step(state, x)
    return after + state


def well_split(key: Any) -> Any:
    first, second = jax.random.split(key)
    return jax.random.normal(first) + jax.random.normal(second)


class Remarked(NamedTuple):
    """A call with a remark, and parts of it; none for a call without one."""

    function: Any
    args: tuple[Any, ...]
    says: tuple[str, ...]


REMARKED = {
    "vector and column": Remarked(
        mean_square, (jnp.ones(3), jnp.ones((3, 1))), ("(3,) and a column (3, 1)", "return jnp.mean((p - y) ** 2)", "'p'")
    ),
    "targets and predictions": Remarked(
        linear, (jnp.ones((4, 1)), jnp.ones((3, 4)), jnp.ones(3)), ("(3, 3)", "return jnp.mean((x @ w - y) ** 2)")
    ),
    "key used twice": Remarked(drawn_twice, (KEY,), ("2 times", "noise = jax.random.normal(key, (3,))", "jax.random.split")),
    "old key used twice": Remarked(drawn_twice, (jax.random.PRNGKey(0),), ("2 times", "return noise + jax.random.uniform(key, (3,))")),
    "key used after a split": Remarked(split_too_late, (KEY,), ("random_split", "first, _ = jax.random.split(key)")),
    "key in a loop": Remarked(drawn_in_a_loop, (KEY, jnp.ones(4)), ("Each step of scan", "return lax.scan(")),
    "donated": Remarked(donated, (jnp.ones(3), jnp.ones(3)), ("return after + state", "donate_argnums", "after = step(state, x)")),
    "no fault: keys": Remarked(well_split, (KEY,), ()),
    "no fault: outer difference": Remarked(lambda x: x[:, None] - x[None, :], (jnp.ones(3),), ()),
    "no fault: column by axis": Remarked(lambda x: x[:, None] - x, (jnp.ones(3),), ()),
    "no fault: bias": Remarked(lambda x, b: x + b, (jnp.ones((3, 3)), jnp.ones(3)), ()),
    "no fault: donated once": Remarked(lambda s, x: step(s, x) + x, (jnp.ones(3), jnp.ones(3)), ()),
}


@pytest.mark.parametrize("name", list(REMARKED))
def test_a_fault_without_an_error_has_a_remark_with_its_line(name: str) -> None:
    row = REMARKED[name]
    notes = open_source(Call(row.function, row.args)).notes
    assert len(notes) == bool(row.says)
    for note in notes:
        assert all(words in note for words in row.says), note


def test_a_broadcast_is_noted_at_its_node() -> None:
    graph = open_source(Call(mean_square, (jnp.ones(3), jnp.ones((3, 1)))))
    (node,) = [node for node in graph.main.nodes if node.doc]
    assert node.op == "jax.sub"


def test_an_array_that_is_taken_out_to_numpy_is_an_error_with_its_line() -> None:
    def loss(w: Any) -> Any:
        h = np.asarray(X @ w)
        return jnp.asarray(h).sum()

    said = gc.explain_gradient(lambda: loss(W), W).error
    assert "TracerArrayConversionError" in said
    assert "h = np.asarray(X @ w)" in said
