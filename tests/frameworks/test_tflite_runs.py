"""TensorFlow Lite models run, and are compared with the models that they were made of."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import InvalidArgumentError
from graphcore.frontends.runs import run_recorded
from graphcore.frontends.sources import open_source

litert: Any = pytest.importorskip("ai_edge_litert.interpreter")
tflite: Any = import_module("tflite")
FILES = Path(__file__).parents[1] / "data" / "frontends"
FLOATING, QUANTISED = FILES / "floating.tflite", FILES / "quantised.tflite"
X = np.random.default_rng(1).normal(size=(1, 8, 8, 1)).astype(np.float32)
LOOPING = {"x": np.ones((3, 2), np.float32), "double": np.array(True)}
DOUBLED = {
    "conv_0": ("sequential_1/conv_0_1/convolution", "arith.constant"),
    "conv_1": ("sequential_1/conv_1_1/convolution", "arith.constant1"),
    "logits": ("sequential_1/logits_1/MatMul1",),
}
"""The constants of a layer of the quantised model: its weights, and the bias in steps of these."""


def weights() -> dict[str, np.ndarray[Any, Any]]:
    """The constants of the floating model."""
    held = {node.name: node.weight for node in open_source(FLOATING).main.nodes if node.weight is not None}
    return {name.split("/")[1].removesuffix("_1"): weight.load() for name, weight in held.items() if "/" in name and weight.load}


def keras_model() -> Any:
    keras: Any = pytest.importorskip("keras")
    layers = keras.layers
    convolutions = [layers.Conv2D(4, 3, padding="same", activation="relu", name=f"conv_{number}") for number in range(3)]
    model = keras.Sequential([layers.Input((8, 8, 1)), *convolutions, layers.GlobalAveragePooling2D(), layers.Dense(3, name="logits")])
    for name, kernel in weights().items():
        if name != "pool":
            model.get_layer(name).kernel.assign(kernel.T if kernel.ndim == 2 else kernel.transpose(1, 2, 3, 0))
    return model


def torch_model() -> Any:
    torch: Any = pytest.importorskip("torch")
    kernels = weights()

    class Network(torch.nn.Module):  # type: ignore[misc]  # torch is not imported by name
        def __init__(self) -> None:
            super().__init__()
            self.convolutions = torch.nn.ModuleList([torch.nn.Conv2d(size, 4, 3, padding=1) for size in (1, 4, 4)])
            self.logits = torch.nn.Linear(4, 3)

        def forward(self, x: Any) -> Any:
            x = x.permute(0, 3, 1, 2)
            for convolution in self.convolutions:
                x = torch.relu(convolution(x))
            return self.logits(x.mean((2, 3)))

    network = Network().eval()
    with torch.no_grad():
        for number, convolution in enumerate(network.convolutions):
            convolution.weight.copy_(torch.tensor(kernels[f"conv_{number}"].transpose(0, 3, 1, 2)))
            convolution.bias.zero_()
        network.logits.weight.copy_(torch.tensor(kernels["logits"]))
        network.logits.bias.zero_()
    return network


def onnx_file(place: Path) -> Path:
    torch: Any = pytest.importorskip("torch")
    pytest.importorskip("onnxscript")
    torch.onnx.export(torch_model(), (torch.tensor(X),), place / "network.onnx", dynamo=True, verbose=False)
    return place / "network.onnx"


def source(kind: str, place: Path) -> Any:
    if kind == "tflite":
        return FLOATING
    return onnx_file(place) if kind == "onnx" else keras_model() if kind == "keras" else torch_model()


def with_doubled_scales(place: Path, names: tuple[str, ...]) -> Path:
    """The quantised model with the scales of some constants doubled."""
    data = bytearray(QUANTISED.read_bytes())
    subgraph = tflite.Model.GetRootAs(data, 0).Subgraphs(0)
    tensors = [subgraph.Tensors(number) for number in range(subgraph.TensorsLength())]
    scales = [tensor.Quantization().ScaleAsNumpy() for tensor in tensors if tensor.Name().decode() in names]
    assert len(scales) == len(names)
    for scale in scales:
        scale *= 2
    (place / "wrong.tflite").write_bytes(data)
    return place / "wrong.tflite"


@pytest.mark.parametrize("name", ["floating", "quantised", "looping"])
def test_results_are_those_of_the_interpreter(name: str) -> None:
    feeds = LOOPING if name == "looping" else {"image": X}
    graph = gc.from_source(FILES / f"{name}.tflite")
    assert isinstance(graph, gc.Graph)
    results = run_recorded(graph, kwargs=feeds)
    expected = litert.Interpreter(str(FILES / f"{name}.tflite")).get_signature_runner()(**feeds)
    for result, value in zip(results, expected.values(), strict=True):
        np.testing.assert_allclose(result, value, rtol=1e-5, atol=1e-3 if name == "quantised" else 1e-6)


def test_each_run_begins_with_the_variables_of_the_file() -> None:
    graph = gc.from_source(FILES / "looping.tflite")
    assert isinstance(graph, gc.Graph)
    np.testing.assert_array_equal(run_recorded(graph, kwargs=LOOPING), run_recorded(graph, kwargs=LOOPING))


def test_quantised_values_are_recorded_as_the_numbers_that_they_stand_for() -> None:
    largest = {}
    for file in (FLOATING, QUANTISED):
        graph = gc.from_source(file)
        assert isinstance(graph, gc.Graph)
        run_recorded(graph, [X])
        assert isinstance(graph.trace, gc.Trace)
        assert graph.trace.values is not None
        largest[file] = graph.trace.values["sequential_1/conv_1_1/Relu:0"].max
    assert largest[QUANTISED] == pytest.approx(largest[FLOATING], rel=0.05)


def test_inputs_that_do_not_fit_are_refused() -> None:
    graph = gc.from_source(FLOATING)
    assert isinstance(graph, gc.Graph)
    with pytest.raises(InvalidArgumentError, match=r"required the shape \[None, 8, 8, 1\], got \[1, 9, 8, 1\]"):
        run_recorded(graph, [np.zeros((1, 9, 8, 1), np.float32)])
    with pytest.raises(InvalidArgumentError, match="required values of type float32, got complex128"):
        run_recorded(graph, [X.astype(complex)])
    with pytest.raises(InvalidArgumentError, match="got none for image"):
        run_recorded(graph)
    assert np.shape(run_recorded(graph, [np.zeros((5, 8, 8, 1), np.float32)])[0]) == (5, 3)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["keras", "torch", "onnx", "tflite"])
def test_a_model_agrees_with_its_floating_and_its_quantised_form(kind: str, tmp_path: Path) -> None:
    model = source(kind, tmp_path)
    comparison = gc.compare_runs(model, FLOATING, X)
    assert not comparison, str(comparison)
    assert len(comparison.tensors) >= 5
    assert all(tensor.tolerance <= 1.1e-4 * tensor.largest for tensor in comparison.tensors)
    comparison = gc.compare_runs(model, QUANTISED, X)
    assert not comparison, str(comparison)
    assert len(comparison.tensors) >= 5
    assert max(tensor.max_abs / tensor.largest for tensor in comparison.tensors) > 1e-3


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layer", DOUBLED)
@pytest.mark.parametrize("kind", ["keras", "torch", "onnx", "tflite"])
def test_a_scale_that_is_off_by_two_is_named(kind: str, layer: str, tmp_path: Path) -> None:
    comparison = gc.compare_runs(source(kind, tmp_path), with_doubled_scales(tmp_path, DOUBLED[layer]), X)
    assert comparison.first is not None
    name = "StatefulPartitionedCall" if layer == "logits" else layer  # the converter names the last layer so
    assert name in comparison.first.other, str(comparison)
