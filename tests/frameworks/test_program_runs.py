"""Runs of PyTorch's exported programs and ONNX models, compared with these frameworks' own."""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import graphcore as gc
from graphcore.errors import InvalidArgumentError
from graphcore.frontends.record import foreign_of
from widgets.scene.value_lens import recorded_values

torch: Any = pytest.importorskip("torch")
torchvision: Any = pytest.importorskip("torchvision")
pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]
VALUES = gc.RunOptions(values=True)


class Counting(torch.nn.Module):  # type: ignore[misc]  # torch has no types here
    """Changes a buffer, splits, and gives a table of results of several types."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)
        self.norm = torch.nn.BatchNorm1d(3)
        self.lstm = torch.nn.LSTM(3, 2, batch_first=True)
        self.register_buffer("count", torch.zeros(2))

    def forward(self, x: Any) -> Any:
        self.count.add_(1)
        first, rest = torch.split(self.norm(self.linear(x)), [1, 2], 1)
        steps, _ = self.lstm(torch.cat([first, rest], 1)[None])
        return {"log": torch.log(first).to(torch.bfloat16), "rest": rest + self.count, "steps": steps}


class Convolutions(torch.nn.Module):  # type: ignore[misc]  # torch has no types here
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.norm = torch.nn.BatchNorm2d(8)
        self.second = torch.nn.Conv2d(8, 4, 3)
        self.head = torch.nn.Linear(4, 5)

    def forward(self, x: Any) -> Any:
        x = torch.nn.functional.max_pool2d(torch.relu(self.norm(self.first(x))), 2)
        return torch.log_softmax(self.head(self.second(x).mean((2, 3))), -1)


def transformer() -> Any:
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    return torch.nn.Sequential(torch.nn.Embedding(20, 16), torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False))


def exported(model: Any, *args: Any) -> Any:
    torch.manual_seed(0)
    return torch.export.export(model, args)


def inputs_of(graph: gc.Graph) -> list[str]:
    return [node.name for node in graph.op_nodes() if node.registration.traits.role == "placeholder"]


def recorded(graph: gc.Graph, feeds: dict[str, Any]) -> tuple[list[Any], gc.ValueRecords]:
    results = gc.Session(graph).run(None, feeds, options=VALUES)
    assert isinstance(graph.trace, gc.Trace)
    assert graph.trace.values is not None
    return results, graph.trace.values


@pytest.mark.parametrize("is_file", [False, True], ids=["object", "file"])
@pytest.mark.parametrize("mode", ["train", "eval", "resnet"])
def test_results_are_those_of_the_program_and_its_state_stays(mode: str, is_file: bool, tmp_path: Path) -> None:
    model = torchvision.models.resnet18().eval() if mode == "resnet" else Counting().train(mode == "train")
    x = torch.randn(1, 3, 64, 64) if mode == "resnet" else torch.randn(5, 4)
    program = exported(model, x)
    before = {name: tensor.clone() for name, tensor in program.state_dict.items()}
    if is_file:
        torch.export.save(program, tmp_path / "m.pt2")
    graph = gc.load(tmp_path / "m.pt2") if is_file else gc.from_source(program)
    results, values = recorded(graph, {inputs_of(graph)[0]: x.numpy()})
    with torch.no_grad():
        plain = copy.deepcopy(program).module()(x)
    theirs = list(plain.values()) if isinstance(plain, dict) else [plain]
    for ours, one in zip(results[-len(theirs) :], theirs, strict=True):
        assert str(ours.dtype) == str(one.dtype).removeprefix("torch.")
        np.testing.assert_array_equal(np.asarray(ours, np.float32), one.float().numpy())
    assert all(torch.equal(tensor, before[name]) for name, tensor in program.state_dict.items())
    assert {one.node for one in values} == {node.name for node in graph.op_nodes() if node.outputs}, "all are recorded"


def test_the_first_bad_value_has_its_line() -> None:
    program = exported(Counting().eval(), torch.randn(5, 4))
    graph = gc.from_source(program)
    _, values = recorded(graph, {"x": np.linspace(-3, 3, 20, dtype=np.float32).reshape(5, 4)})
    bad = values.first_bad
    assert bad is not None
    node = graph.get_operation_by_name(bad.tensor.node)
    assert node.source is not None
    assert (node.op, node.source.file) == ("aten.log.default", __file__)
    lens = recorded_values(graph)
    assert lens is not None
    assert lens.values.health.first is not None
    assert lens.values.health.first.node == node.name


def test_values_of_nodes_are_those_that_modules_give() -> None:
    model = Convolutions().eval()
    x = torch.randn(2, 3, 17, 17)
    graph = gc.from_source(exported(model, x))
    names = [next(node.name for node in graph.op_nodes() if node.op == op) for op in ("aten.conv2d.default", "aten.mean.dim")]
    first, mean = gc.Session(graph).run(names, {"x": x.numpy()})
    with torch.no_grad():
        np.testing.assert_array_equal(first, model.first(x).numpy())
        pooled = torch.nn.functional.max_pool2d(torch.relu(model.norm(model.first(x))), 2)
        np.testing.assert_array_equal(mean, model.second(pooled).mean((2, 3)).numpy())


def test_a_program_with_branches_runs() -> None:
    class Branching(torch.nn.Module):  # type: ignore[misc]  # torch has no types here
        def forward(self, x: Any) -> Any:
            return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))

    graph = gc.from_source(exported(Branching(), torch.ones(3)))
    for x in (torch.ones(3), -torch.ones(3)):
        np.testing.assert_array_equal(gc.Session(graph).run(None, {"x": x.numpy()})[0], Branching()(x).numpy())


def test_missing_inputs_are_named() -> None:
    graph = gc.from_source(exported(Convolutions().eval(), torch.randn(2, 3, 17, 17)))
    with pytest.raises(InvalidArgumentError, match="none for x"):
        gc.Session(graph).run(None)


@pytest.mark.parametrize("name", ["convolutions", "transformer"])
def test_all_values_of_an_exported_onnx_model_are_those_of_its_evaluator(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxscript")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    torch.manual_seed(0)
    model, x = (Convolutions(), torch.randn(2, 3, 17, 17)) if name == "convolutions" else (transformer(), torch.arange(10).reshape(2, 5))
    path = tmp_path / "m.onnx"
    torch.onnx.export(model.eval(), (x,), path, dynamo=True)
    graph, evaluator = gc.load(path), ReferenceEvaluator(onnx.load(path))
    feeds = {inputs_of(graph)[0]: x.numpy()}
    record = foreign_of(graph)
    assert record is not None
    names = {port: info.name for port, info in zip(feeds, evaluator.proto_.graph.input, strict=True)}
    everything: Any = evaluator.run(None, {names[port]: value for port, value in feeds.items()}, intermediate=True)
    ports = {f"{name}:{place}": port.name for name, node in record.nodes.items() for place, port in enumerate(node.outputs) if port.name}
    for ours, port in zip(gc.Session(graph).run(list(ports), feeds), ports.values(), strict=True):
        np.testing.assert_array_equal(ours, everything[port], strict=True)
    with torch.no_grad():
        np.testing.assert_allclose(gc.Session(graph).run(None, feeds)[0], model(x).numpy(), atol=1e-4)
