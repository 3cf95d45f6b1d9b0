"""Numbers of the profilers of frameworks on the pictures of what they measured."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.frontends.frontend import Call
from widgets import add_overlay
from widgets.overlays import Overlay

torch: Any = pytest.importorskip("torch")


class Block(torch.nn.Module):  # type: ignore[misc]  # without types
    """Two layers of one class."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.small = torch.nn.Linear(8, size)
        self.large = torch.nn.Linear(size, 8)

    def forward(self, x: Any) -> Any:
        return torch.relu(self.large(torch.relu(self.small(x))))


def model() -> Any:
    return torch.nn.Sequential(Block(16), Block(512), torch.nn.Linear(8, 3)).eval()


def profiled(module: Any, x: Any) -> Any:
    with (
        torch.no_grad(),
        torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], with_stack=True, record_shapes=True) as profiler,
    ):
        module(x)
    return profiler


def rows(overlay: Overlay) -> dict[str, float]:
    return dict(zip(overlay.names, overlay.values, strict=True))


def graph_of(module: Any, x: Any) -> gc.Graph:
    graph = gc.from_source(Call(module, (x,), {}))
    assert isinstance(graph, gc.Graph)
    return graph


def test_a_trace_of_torch_has_the_time_of_each_module(tmp_path: Path) -> None:
    module, x = model(), torch.zeros(4, 8)
    profiled(module, x).export_chrome_trace(str(tmp_path / "trace.json"))
    overlay = add_overlay(graph_of(module, x), tmp_path / "trace.json")
    times = rows(overlay)
    assert set(times) == {"layer.0", "layer.0/small", "layer.0/large", "layer.1", "layer.1/small", "layer.1/large", "layer.2"}
    assert all(times[block] > times[f"{block}/small"] + times[f"{block}/large"] for block in ("layer.0", "layer.1"))
    assert overlay.unit == "µs"


def test_a_trace_of_another_model_is_refused(tmp_path: Path) -> None:
    x = torch.zeros(4, 8)
    profiled(torch.nn.Sequential(torch.nn.Linear(8, 8)), x).export_chrome_trace(str(tmp_path / "trace.json"))
    with pytest.raises(gc.errors.InvalidArgumentError, match="none is in it"):
        add_overlay(graph_of(model(), x), tmp_path / "trace.json")


@pytest.mark.parametrize("by_shape", [True, False], ids=["by shape", "by op"])
def test_averages_of_torch_are_the_means_of_calls(by_shape: bool) -> None:
    module, x = model(), torch.zeros(4, 8)
    averages = profiled(module, x).key_averages(group_by_input_shape=by_shape)
    times = rows(add_overlay(graph_of(module, x), averages))
    linear = [row for row in averages if row.key == "aten::linear"]
    layers = ["layer.0/small", "layer.0/large", "layer.1/small", "layer.1/large", "layer.2"]
    assert sum(times[f"{layer}/linear"] for layer in layers) == pytest.approx(sum(row.cpu_time_total for row in linear))
    assert len({times[f"{layer}/linear"] for layer in layers}) == len(linear)


def test_a_trace_of_torch_without_modules_has_the_means_of_calls(tmp_path: Path) -> None:
    module, x = model(), torch.zeros(4, 8)
    with torch.no_grad(), torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as profiler:
        module(x)
    profiler.export_chrome_trace(str(tmp_path / "trace.json"))
    graph = graph_of(module, x)
    by_trace, by_averages = rows(add_overlay(graph, tmp_path / "trace.json")), rows(add_overlay(graph, profiler))
    assert {name: pytest.approx(time, abs=0.01) for name, time in by_averages.items()} == by_trace


def test_a_profile_of_onnx_runtime_has_the_time_of_each_node(tmp_path: Path) -> None:
    runtime: Any = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    module, x = model(), torch.zeros(4, 8)
    torch.onnx.export(module, (x,), tmp_path / "model.onnx", dynamo=True, verbose=False)
    options = runtime.SessionOptions()
    options.enable_profiling = True
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.profile_file_prefix = str(tmp_path / "profile")
    session = runtime.InferenceSession(tmp_path / "model.onnx", options, providers=["CPUExecutionProvider"])
    session.run(None, {session.get_inputs()[0].name: np.zeros((4, 8), np.float32)})
    graph = gc.from_source(tmp_path / "model.onnx")
    assert isinstance(graph, gc.Graph)
    times = rows(add_overlay(graph, session.end_profiling()))
    assert {node.assigned_device for node in graph.op_nodes() if node.op == "onnx.Gemm"} == {"CPUExecutionProvider"}
    assert len([name for name in times if graph.get_operation_by_name(name).op == "onnx.Gemm"]) == 5


def xprof_table(names: dict[str, float], place: Path) -> Path:
    """A table of XProf as its tool `hlo_stats` writes it."""
    titles = ["Rank", "HLO op name", "Framework op name", "Total time (us)", "Total self time (us)"]
    rows = [[rank, f"fusion.{rank}", name, 9 * time, time] for rank, (name, time) in enumerate(names.items())]
    table = {"cols": [{"label": title} for title in titles], "rows": [{"c": [{"v": cell} for cell in row]} for row in rows]}
    (place / "hlo_stats.json").write_text(json.dumps(table))
    return place / "hlo_stats.json"


def test_the_names_of_xla_are_found_on_a_picture_of_jax(tmp_path: Path) -> None:
    jax: Any = pytest.importorskip("jax")

    def network(x: Any, w: Any) -> Any:
        with jax.named_scope("encoder"), jax.named_scope("layer"):
            x = jax.numpy.tanh(jax.nn.relu(x @ w) + 1) @ w
        x, _ = jax.lax.scan(lambda x, _: (jax.numpy.sin(x) @ w, None), x, None, length=3)
        return jax.nn.silu(x).sum()

    x = jax.numpy.ones([8, 8])
    graph = gc.from_source(Call(jax.jit(network), (x, x), {}))
    assert isinstance(graph, gc.Graph)
    compiled = jax.jit(network).lower(x, x).compile().as_text()
    names = dict.fromkeys(re.findall(r'op_name="(jit[^"]*)"', compiled), 2.0)
    assert {"jit(network)/encoder/layer/jit(relu)/max", "jit(network)/while/body/closed_call/sin"} <= set(names)
    times = rows(add_overlay(graph, xprof_table(names, tmp_path)))
    assert sum(times.values()) == 2.0 * len(names)  # none is lost
    computing = {node.name for node in graph.op_nodes() if node.registration.traits.role == "op" and node.op.startswith("jax.")}
    assert set(times) == computing
    products = "encoder/layer/dot_general", "encoder/layer/dot_general_1"
    assert [times[name] for name in products] == [1.0, 1.0]  # one name for both
    assert times["encoder/layer/relu"] == 2.0
    assert times["scan"] == 2.0 * sum("/while" in name for name in names)
    older = {"jit(network)/jit(main)/encoder/layer/tanh": 3.0, "jit(network)/jit(main)/nowhere/tanh": 4.0}
    assert rows(add_overlay(graph, xprof_table(older, tmp_path), title="Older")) == {"encoder/layer/tanh": 3.0}


def test_the_names_of_xla_of_a_gradient_are_found_beside_the_forward_pass(tmp_path: Path) -> None:
    jax: Any = pytest.importorskip("jax")

    def loss(w: Any, x: Any) -> Any:
        with jax.named_scope("layer"):
            return jax.numpy.tanh(x @ w).sum()

    x = jax.numpy.ones([8, 8])
    gradient = jax.jit(jax.grad(loss))
    graph = gc.from_source(Call(gradient, (x, x), {}))
    assert isinstance(graph, gc.Graph)
    names = dict.fromkeys(re.findall(r'op_name="(jit[^"]*)"', gradient.lower(x, x).compile().as_text()), 1.0)
    times = rows(add_overlay(graph, xprof_table(names, tmp_path)))
    assert {"layer/dot_general", "gradients/layer/mul", "gradients/layer/transpose"} <= set(times)
    assert sum(times.values()) == len(names)
