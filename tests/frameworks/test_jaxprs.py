"""JAX's traced programs: equations, bodies, scopes and lines as JAX itself has them."""

from __future__ import annotations

from typing import Any

import pytest

from graphcore.frontends.foreign import ForeignGraph
from graphcore.frontends.lowering import lower
from graphcore.frontends.sources import open_source

jax: Any = pytest.importorskip("jax")
jnp = jax.numpy
pytestmark = pytest.mark.frameworks


def layer(carry: Any, weight: Any) -> Any:
    with jax.named_scope("layer"):
        return jnp.tanh(carry @ weight), carry.sum()


def network(x: Any, weights: Any, n: Any) -> Any:
    with jax.named_scope("encoder"):
        y, sums = jax.lax.scan(layer, x, weights)
    y = jax.lax.cond(n > 0, lambda a: a + 1, lambda a: a * 2, y)
    y = jax.lax.while_loop(lambda state: state[1] < 3, lambda state: (state[0] * 2, state[1] + 1), (y, 0))[0]
    return jax.nn.relu(y), sums


ARGUMENTS = (jnp.ones((2, 4)), jnp.ones((3, 4, 4)), 1)


def traced() -> Any:
    return jax.make_jaxpr(network)(*ARGUMENTS)


def read() -> ForeignGraph:
    return open_source(traced())


def test_nodes_are_the_equations_with_their_shapes_and_types() -> None:
    nodes = [node for node in read().main.nodes if node.kind == "op"]
    equations = getattr(traced(), "jaxpr", traced()).eqns
    assert [node.op for node in nodes] == [f"jax.{each.primitive.name}" for each in equations]
    for node, equation in zip(nodes, equations, strict=True):
        assert [(port.dtype, port.shape) for port in node.outputs] == [(str(var.aval.dtype), var.aval.shape) for var in equation.outvars]
        assert len(node.inputs) == len(equation.invars)


def test_functions_with_gradients_of_their_own_have_their_names() -> None:
    nameless = jax.custom_jvp(lambda x: x)
    nameless.defjvp(lambda primals, tangents: (primals[0], tangents[0]))
    program = jax.make_jaxpr(lambda x: jax.nn.relu(x) + nameless(x))(1.0)
    names = {node.name: list(node.bodies.values()) for node in open_source(program).main.nodes if node.op == "jax.custom_jvp_call"}
    assert names == {"relu": ["relu_0"], "custom_jvp_call": ["custom_jvp_call_2"]}


def test_a_scan_is_a_node_in_its_scope_with_its_body() -> None:
    source = read()
    scan = next(node for node in source.main.nodes if node.op == "jax.scan")
    assert [call.path for call in scan.modules] == ["encoder"]
    assert scan.attrs["length"] == 3
    body = source.functions[scan.bodies["body"]]
    assert [node.op for node in body.nodes if node.kind == "op"] == ["jax.dot_general", "jax.tanh", "jax.reduce_sum"]
    assert [call.path for call in body.nodes[2].modules] == ["layer"]


def test_loops_and_branches_have_bodies() -> None:
    nodes = {node.op: node for node in read().main.nodes}
    assert set(nodes["jax.while"].bodies) == {"cond", "body"}
    assert set(nodes["jax.cond"].bodies) == {"then", "else"}


def test_nodes_have_the_lines_of_the_user() -> None:
    scan = next(node for node in read().main.nodes if node.op == "jax.scan")
    assert (scan.frames[-1].function, scan.frames[-1].file) == ("network", __file__)


def test_a_jitted_program_is_shown_as_its_body() -> None:
    assert [node.op for node in open_source(jax.jit(network).trace(*ARGUMENTS)).main.nodes if node.kind == "op"][:1] == ["jax.scan"]


def test_a_jaxpr_is_lowered_and_its_gradient_too() -> None:
    gradient = jax.make_jaxpr(jax.grad(lambda x: jnp.tanh(x @ x).sum()))(jnp.ones((2, 2)))
    assert sum(node.op == "jax.dot_general" for node in lower(open_source(gradient)).op_nodes()) == 3
