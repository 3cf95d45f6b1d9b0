"""Modules of Flax and Equinox as traced programs: equations, shapes and parameters as JAX has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from graphcore.frontends.lowering import lower
from graphcore.frontends.sources import open_source
from widgets.render.compiled import build_scene
from widgets.scene import SceneState

jax: Any = pytest.importorskip("jax")
jnp = jax.numpy
pytestmark = pytest.mark.frameworks


def flax_network() -> Any:
    linen: Any = pytest.importorskip("flax.linen")

    class Network(linen.Module):  # type: ignore[misc]  # flax is absent where types are checked
        @linen.compact  # type: ignore[untyped-decorator]  # as above
        def __call__(self, x: Any) -> Any:
            for width in (8, 8):
                x = linen.relu(linen.Dense(width)(x))
            return linen.Dense(3, name="head")(x)

    network = Network()
    x = jnp.ones((2, 4))
    parameters = network.init(jax.random.key(0), x)
    return jax.make_jaxpr(network.apply)(parameters, x)


def equinox_network() -> Any:
    equinox: Any = pytest.importorskip("equinox")
    arrays, rest = equinox.partition(equinox.nn.MLP(4, 3, 8, 2, key=jax.random.key(0)), equinox.is_array)
    return jax.make_jaxpr(lambda arrays, x: jax.vmap(equinox.combine(arrays, rest))(x))(arrays, jnp.ones((2, 4)))


NETWORKS: dict[str, Callable[[], Any]] = {"flax": flax_network, "equinox": equinox_network}


def inner(traced: Any) -> list[Any]:
    """The equations of a program, those of the functions in it included, in the order of evaluation."""
    found = []
    for equation in getattr(traced, "jaxpr", traced).eqns:
        found.append(equation)
        for value in equation.params.values():
            if hasattr(value, "eqns") or hasattr(value, "jaxpr"):
                found += inner(value)
    return found


@pytest.mark.parametrize("name", list(NETWORKS))
def test_products_of_a_module_are_the_programs_with_their_shapes(name: str) -> None:
    traced = NETWORKS[name]()
    source = open_source(traced)
    ours = [node for function in (source.main, *source.functions.values()) for node in function.nodes if node.op == "jax.dot_general"]
    theirs = [equation for equation in inner(traced) if equation.primitive.name == "dot_general"]
    assert len(theirs) == 3
    assert [node.outputs[0].shape for node in ours] == [equation.outvars[0].aval.shape for equation in theirs]


@pytest.mark.parametrize("name", list(NETWORKS))
def test_inputs_of_a_module_are_its_parameters_and_arguments(name: str) -> None:
    traced = NETWORKS[name]()
    inputs = [node.outputs[0] for node in open_source(traced).main.nodes if node.kind in {"input", "parameter"}]
    assert [(port.dtype, port.shape) for port in inputs] == [(str(aval.dtype), aval.shape) for aval in traced.in_avals]


def test_a_flax_module_is_shown_by_the_names_of_its_layers() -> None:
    scene = build_scene(lower(open_source(flax_network())), SceneState())
    text = " ".join([*(node.label for node in scene.nodes), *(group.label for group in scene.groups)])
    assert "head" in text
    assert "Dense_0" in text
