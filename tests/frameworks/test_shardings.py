"""Devices and shardings of other frameworks in the devices lens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.frontends.frontend import Call
from widgets import SceneState, build_scene


def devices(function: Any, *args: Any) -> dict[str, str]:
    """The words of the devices lens by box, all scopes open."""
    graph = gc.from_source(Call(function, args, {}))
    assert isinstance(graph, gc.Graph)
    state = SceneState()
    state.expand("*")
    return {node.id: node.lenses["devices"].text for node in build_scene(graph, state).nodes if "devices" in node.lenses}


def copies(function: Any, *args: Any) -> list[str]:
    """The words on lines between devices."""
    graph = gc.from_source(Call(function, args, {}))
    assert isinstance(graph, gc.Graph)
    state = SceneState()
    state.expand("*")
    return [edge.lenses["devices"].text for edge in build_scene(graph, state).edges if "devices" in edge.lenses]


class Jax:
    """JAX with a mesh of one device, which has two axes."""

    def __init__(self) -> None:
        self.jax: Any = pytest.importorskip("jax")
        self.mesh = self.jax.sharding.Mesh(np.array(self.jax.devices()[:1]).reshape(1, 1), ("data", "model"))

    def named(self, *parts: Any) -> Any:
        return self.jax.sharding.NamedSharding(self.mesh, self.spec(*parts))

    def spec(self, *parts: Any) -> Any:
        return self.jax.sharding.PartitionSpec(*parts)


@pytest.fixture
def jax() -> Jax:
    return Jax()


def test_constraints_arguments_and_results_of_jit_have_their_shardings(jax: Jax) -> None:
    def layer(x: Any, w: Any) -> Any:
        return jax.jax.numpy.tanh(jax.jax.lax.with_sharding_constraint(x @ w, jax.named("data", "model")))

    sharded = jax.jax.jit(layer, in_shardings=(jax.named("data", None), jax.named()), out_shardings=jax.named(("data", "model")))
    zeros = jax.jax.numpy.zeros
    words = devices(sharded, zeros([8, 4]), zeros([4, 8]))
    assert words["x"] == "sharded P('data', None)"
    assert words["w"] == "replicated"
    assert words["sharding_constraint"] == "sharded P('data', 'model')"
    assert words["tanh"] == "sharded P(('data', 'model'))"
    assert copies(sharded, zeros([8, 4]), zeros([4, 8])) == []


def test_a_shard_map_has_the_specs_of_its_arguments_and_results(jax: Jax) -> None:
    def total(part: Any) -> Any:
        return jax.jax.lax.psum(part, "data")

    mapped = jax.jax.shard_map(total, mesh=jax.mesh, in_specs=jax.spec("data", "model"), out_specs=jax.spec(None, "model"))
    words = devices(mapped, jax.jax.numpy.zeros([8, 4]))
    assert words["shard_map:/part"] == "sharded P('data', 'model')"
    assert [text for name, text in words.items() if "psum" in name] == ["sharded P(None, 'model')"]


def test_arrays_of_explicit_meshes_keep_their_shardings(jax: Jax) -> None:
    explicit = jax.jax.make_mesh((1, 1), ("a", "b"), axis_types=(jax.jax.sharding.AxisType.Explicit,) * 2, devices=jax.jax.devices()[:1])
    with jax.jax.set_mesh(explicit):
        x = jax.jax.device_put(jax.jax.numpy.zeros([8, 4]), jax.jax.sharding.NamedSharding(explicit, jax.spec("a", "b")))
        words = devices(lambda x: jax.jax.numpy.tanh(x).sum(axis=1), x)
    assert words["tanh"] == "sharded P('a', 'b')"
    assert words["reduce_sum"] == "sharded P('a')"


def test_tensors_of_torch_on_several_devices_have_them_and_the_copies() -> None:
    torch: Any = pytest.importorskip("torch")
    module = torch.nn.Linear(3, 2, device="meta")

    def call(x: Any) -> Any:
        return module(torch.relu(x).to("meta"))

    words = devices(call, torch.zeros(4, 3))
    assert (words["relu"], words["module/linear"]) == ("cpu", "meta")
    assert copies(call, torch.zeros(4, 3)) == ["48 bytes"]
    assert not devices(torch.nn.Linear(3, 2), torch.zeros(4, 3))
    graph = gc.from_source(Call(torch.nn.Linear(3, 2), (torch.zeros(4, 3),), {}))
    assert isinstance(graph, gc.Graph)
    assert "All tensors in the PyTorch call are on cpu" in {lens.note for lens in build_scene(graph).lenses}


@pytest.fixture
def mesh() -> Iterator[Any]:
    """A mesh of four processes that are not there."""
    torch: Any = pytest.importorskip("torch")
    store = pytest.importorskip("torch.testing._internal.distributed.fake_pg").FakeStore()
    torch.distributed.init_process_group("fake", store=store, rank=0, world_size=4)
    yield torch.distributed.device_mesh.init_device_mesh("cpu", (4,), mesh_dim_names=("tp",))
    torch.distributed.destroy_process_group()


@pytest.mark.filterwarnings("ignore")
def test_distributed_tensors_of_torch_have_their_placements(mesh: Any) -> None:
    torch: Any = pytest.importorskip("torch")
    parallel: Any = pytest.importorskip("torch.distributed.tensor.parallel")
    module = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 8))
    parallel.parallelize_module(module, mesh, {"0": parallel.ColwiseParallel(), "2": parallel.RowwiseParallel()})
    words = devices(module, torch.zeros(4, 8))
    assert words["layer.0/linear"] == "sharded tp: Shard(1)"
    assert words["layer.2/linear"] == "sharded tp: Partial(sum)"
    assert copies(module, torch.zeros(4, 8)) == []
