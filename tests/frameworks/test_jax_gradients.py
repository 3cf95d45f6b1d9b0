"""Gradients of JAX functions: each backward equation with the forward one that it differentiates."""

from __future__ import annotations

from typing import Any

import pytest

from graphcore.frontends.foreign import ForeignGraph, ForeignNode
from graphcore.frontends.frontend import Call
from graphcore.frontends.lowering import lower
from graphcore.frontends.sources import open_source
from widgets.scene.gaps import gaps_of
from widgets.scene.origins import origins_of

jax: Any = pytest.importorskip("jax")
jnp, lax = jax.numpy, jax.lax
pytestmark = pytest.mark.frameworks
PARAMS = {"w": jnp.ones((3, 3)), "b": jnp.ones(3)}
X = jnp.ones((2, 3))


def loss(params: Any, x: Any) -> Any:
    with jax.named_scope("encoder"), jax.named_scope("attention"):
        y = jnp.tanh(x @ params["w"] + params["b"])
    return jax.nn.relu(y * y + x).mean()


def scanned(x: Any, weights: Any) -> Any:
    y, sums = lax.scan(lambda carry, w: (jnp.tanh(carry @ w), carry.sum()), x, weights)
    return y.sum() + sums.sum()


def read(function: Any, *args: Any, gradients: bool = False) -> ForeignGraph:
    return open_source(Call(function, args, {}, gradients))


def backward(graph: ForeignGraph) -> list[ForeignNode]:
    return [node for node in graph.main.nodes if node.modules[:1] and node.modules[0].path == "gradients"]


GRADIENTS = {
    "grad": (jax.grad(loss), (PARAMS, X)),
    "value and grad": (jax.value_and_grad(loss), (PARAMS, X)),
    "jitted": (jax.jit(jax.grad(loss)), (PARAMS, X)),
    "of a jitted one": (jax.grad(jax.jit(loss)), (PARAMS, X)),
    "of a scan": (jax.grad(scanned), (X, jnp.ones((4, 3, 3)))),
    "of a batch": (jax.grad(lambda p, x: jax.vmap(loss, (None, 0))(p, x).sum()), (PARAMS, X[None])),
}


@pytest.mark.parametrize("name", list(GRADIENTS))
def test_equations_of_the_backward_pass_are_those_that_jax_transposes(name: str) -> None:
    function, args = GRADIENTS[name]
    graph = read(function, *args)
    program = jax.make_jaxpr(function)(*args)
    while len(program.jaxpr.eqns) == 1:
        program = program.jaxpr.eqns[0].params["jaxpr"]
    transposed = [equation for equation in program.jaxpr.eqns if "transpose(" in str(equation.source_info.name_stack)]
    assert [node.op for node in backward(graph)] == [f"jax.{equation.primitive.name}" for equation in transposed]
    assert transposed
    places = {node.name: place for place, node in enumerate(graph.main.nodes)}
    for node in backward(graph):
        forward = graph.main.nodes[places[node.differentiates]]
        assert places[forward.name] < places[node.name]
        assert forward.modules == node.modules[2:]
        assert forward.frames[-1:] == node.frames[-1:]
    assert {node.part for node in backward(graph) if node.op == "jax.add_any"} <= {"sum"}


def test_the_backward_pass_of_a_checkpoint_belongs_to_what_is_computed_in_it() -> None:
    def checkpointed(w: Any) -> Any:
        y = jax.checkpoint(lambda x, w: jnp.tanh(x @ w))(X, w)
        return (y * y).sum()

    graph = read(jax.grad(checkpointed), PARAMS["w"])
    (again,) = [node for node in backward(graph) if node.bodies]
    assert again.differentiates == "dot_general"


def test_a_product_and_a_function_have_their_own_gradients() -> None:
    graph = lower(read(jax.grad(loss), PARAMS, X))
    origins = origins_of(graph)
    products = [node.name for node in graph.nodes if node.op == "jax.dot_general" and node.name in origins]
    assert [origins[name] for name in products] == ["encoder/attention/dot_general"]
    assert all(name.startswith("gradients/encoder/attention/") for name in products)
    assert {"encoder/attention/tanh", "mul", "reduce_sum", "relu"} <= set(origins.values())


def test_the_gradients_of_a_call_are_added_on_request() -> None:
    without, beside = read(loss, PARAMS, X), read(loss, PARAMS, X, gradients=True)
    assert not backward(without)
    assert len(beside.main.outputs) == 1 + len(PARAMS) + 1
    forward = [node for node in beside.main.nodes if node not in backward(beside)]
    assert {node.op for node in without.main.nodes} <= {node.op for node in forward}
    assert {node.differentiates for node in backward(beside)} <= {node.name for node in forward}
    names = [ref[0] for ref in beside.main.outputs[1:] if ref is not None]
    assert {str(node.outputs[0].shape) for node in beside.main.nodes if node.name in names} == {"(2, 3)", "(3,)", "(3, 3)"}


def test_a_function_of_integers_has_no_gradients() -> None:
    graph = read(lambda n: n * 2, jnp.arange(3), gradients=True)
    assert not backward(graph)
    assert [node.op for node in graph.main.nodes if node.kind == "op"] == ["jax.mul"]


def test_a_gradient_that_fails_is_red_where_the_forward_pass_fails() -> None:
    def wrong(w: Any) -> Any:
        return jnp.dot(X, jnp.sin(w)).sum()

    graph = read(jax.grad(wrong), jnp.ones((4, 2)))
    (failed,) = [node for node in graph.main.nodes if node.error]
    assert failed.op == "jax.dot_general"
    assert "3 is axis 1 of X; 4 is axis 0 of w" in failed.error
    assert not failed.modules


ENDS = {
    "stop_gradient": (lambda w, v: (lax.stop_gradient(jnp.tanh(w)) * v).sum(), "stop_gradient", "stop_gradient"),
    "round": (lambda w, v: (jnp.round(w) * v).sum(), "not differentiable", "round"),
    "argmax": (lambda w, v: w.argmax() * v.sum(), "dtype", "argmax"),
    "comparison": (lambda w, v: jnp.where(w > 0, v, 0.0).sum(), "dtype", "gt"),
    "in a jitted function": (lambda w, v: (jax.jit(lambda w: lax.stop_gradient(w * 2))(w) * v).sum(), "not differentiable", "<lambda>"),
    "unused": (lambda w, v: v.sum() + 0 * w.shape[0], "no path", ""),
}


@pytest.mark.parametrize("name", ENDS)
def test_an_argument_whose_gradient_is_zero_for_all_values_is_marked_where_it_ends(name: str) -> None:
    function, kind, word = ENDS[name]
    graph = read(function, X, X, gradients=True)
    ((argument, ends),) = graph.missing.items()
    (end,) = ends
    assert argument == graph.main.nodes[0].name
    assert end.kind == kind
    assert end.node.rpartition("/")[2] == (word or argument)
    (gap,) = gaps_of(lower(graph))
    assert gap.node == argument
    assert not read(lambda w, v: (w * v).sum(), X, X, gradients=True).missing
