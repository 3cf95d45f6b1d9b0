"""PyTorch modules against their ONNX exports: matched nodes, words, and the place where runs part."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import graphcore as gc
from graphcore.difference import GraphDiff
from graphcore.difference.kinds import kind_of
from graphcore.frontends.frontend import Call

torch: Any = pytest.importorskip("torch")
torchvision: Any = pytest.importorskip("torchvision")
pytest.importorskip("onnxscript")
nn: Any = torch.nn
pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]
IMAGE = torch.randn(1, 3, 64, 64, generator=torch.Generator().manual_seed(1))
IDS = torch.arange(14).reshape(2, 7)


class SmallTransformer(nn.Module):  # type: ignore[misc]  # torch is not imported by name
    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(100, 32)
        self.enc = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2, enable_nested_tensor=False)
        self.head = nn.Linear(32, 10)

    def forward(self, x: Any) -> Any:
        return self.head(self.enc(self.emb(x)))


CASES: dict[str, tuple[Callable[[], Any], Any]] = {
    "resnet18": (torchvision.models.resnet18, IMAGE),
    "mobilenet_v2": (torchvision.models.mobilenet_v2, IMAGE),
    "transformer": (SmallTransformer, IDS),
}


def export(module: Any, x: Any, path: Path, dynamo: bool = False) -> Path:
    torch.onnx.export(module, (x,), path, dynamo=dynamo, verbose=False)
    return path


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, bool], tuple[Any, Any, Path]]:
    folder = tmp_path_factory.mktemp("exported")
    made: dict[tuple[str, bool], tuple[Any, Any, Path]] = {}

    def of(name: str, dynamo: bool) -> tuple[Any, Any, Path]:
        if (name, dynamo) not in made:
            make, x = CASES[name]
            torch.manual_seed(0)
            module = make().eval()
            made[name, dynamo] = module, x, export(module, x, folder / f"{name}-{dynamo}.onnx", dynamo)
        return made[name, dynamo]

    return of


def matched_layers(diff: GraphDiff) -> tuple[int, int]:
    """The convolutions and products that are matched with one of their kind, and all, counted."""
    kinds = {"convolution", "product"}
    layers = [name for name, node in diff.before.nodes.items() if kind_of(node) in kinds]
    return sum(kind_of(diff.after.nodes[diff.pairs[name]]) in kinds for name in layers if name in diff.pairs), len(layers)


@pytest.mark.parametrize("dynamo", [False, True], ids=["older exporter", "dynamo"])
@pytest.mark.parametrize("name", CASES)
def test_layers_are_matched_with_those_of_the_export(name: str, dynamo: bool, exported: Callable[..., Any]) -> None:
    module, x, path = exported(name, dynamo)
    diff = gc.graph_diff(Call(module, (x,)), path)
    matched, layers = matched_layers(diff)
    assert matched >= 0.95 * layers > 0
    left = [removed for removed in diff.removed if removed not in diff.explained[0]]
    assert not left
    text = str(diff)
    assert text.startswith("PyTorch → ONNX: ")
    assert len(text.splitlines()) <= 12  # dynamo drops biases of zeros, which two lines say
    if name != "transformer":
        count = {"resnet18": 20, "mobilenet_v2": 52}[name]
        assert f"{count} × Conv2d + BatchNorm2d became one Conv: " in text
        assert "is GlobalAveragePool" in text or "is ReduceMean" in text
    else:
        assert "5 × Linear became MatMul + Add: linear1, linear2, head" in text
        assert "2 × scaled_dot_product_attention became " in text
        assert "6 × Dropout left out" in text


@pytest.mark.parametrize("dynamo", [False, True], ids=["older exporter", "dynamo"])
@pytest.mark.parametrize("name", CASES)
def test_an_export_computes_the_same(name: str, dynamo: bool, exported: Callable[..., Any]) -> None:
    module, x, path = exported(name, dynamo)
    comparison = gc.compare_runs(module, path, x)
    assert not comparison, str(comparison)
    assert len(comparison.tensors) >= {"resnet18": 48, "mobilenet_v2": 99, "transformer": 20}[name]


def test_two_exports_of_one_model_are_the_same_but_for_names(exported: Callable[..., Any]) -> None:
    diff = gc.graph_diff(exported("resnet18", False)[2], exported("resnet18", True)[2])
    assert matched_layers(diff) == (21, 21)


# ---- one planted difference each -------------------------------------------------------------------------------------------


class Net(nn.Module):  # type: ignore[misc]  # as above
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(4, 8, 3, padding=1)
        self.norm = nn.GroupNorm(2, 8)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2d(8, 8, 3, stride=1, padding=1)
        self.conv3 = nn.Conv2d(8, 8, 3, padding=1)
        self.fc1 = nn.Linear(8, 16)
        self.fc2 = nn.Linear(16, 16)
        self.scale = 3.0
        self.order = (0, 1, 2, 3)
        self.has_relu = True
        self.half = False

    def forward(self, x: Any) -> Any:
        h = self.relu(self.norm(self.conv1(x)))
        h = self.conv2(h)
        h = self.relu(h) if self.has_relu else h
        h = self.conv3(h) * self.scale
        h = torch.sigmoid(h.permute(self.order)).mean((2, 3))
        h = self.fc1(h)
        h = torch.exp((h * 100).half()).float() if self.half else torch.exp(h * 100)
        return self.fc2(torch.tanh(h))


def other_epsilon(net: Any) -> None:
    net.norm.eps = 1e-2


def swapped_weights(net: Any) -> None:
    net.conv2.weight, net.conv3.weight = net.conv3.weight, net.conv2.weight


def channels_last(net: Any) -> None:
    net.order = (0, 2, 3, 1)


def no_bias(net: Any) -> None:
    net.conv2.bias = None


def half_overflow(net: Any) -> None:
    net.half = True


def other_padding(net: Any) -> None:
    net.conv2.padding_mode, net.conv2._reversed_padding_repeated_twice = "reflect", [1, 1, 1, 1]


def doubled_scale(net: Any) -> None:
    net.scale = 6.0


def no_relu(net: Any) -> None:
    net.has_relu = False


def transposed_weight(net: Any) -> None:
    net.fc2.weight = nn.Parameter(net.fc2.weight.detach().T.contiguous())


def other_stride(net: Any) -> None:
    net.conv2.stride = (2, 2)


PLANTED: dict[str, tuple[Callable[[Any], None], str]] = {
    "epsilon": (other_epsilon, "norm/group_norm"),
    "swapped weights": (swapped_weights, "conv2/conv2d"),
    "channels last": (channels_last, "sigmoid"),
    "dropped bias": (no_bias, "conv2/conv2d"),
    "overflow of float16": (half_overflow, "exp"),
    "padding": (other_padding, "conv2/conv2d"),
    "scale": (doubled_scale, "mul"),
    "missing relu": (no_relu, "conv3/conv2d"),
    "transposed weight": (transposed_weight, "fc2/linear"),
    "stride": (other_stride, "conv2/conv2d"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_the_first_node_that_differs_is_named(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = Net().eval()
    other = copy.deepcopy(net)
    plant, place = PLANTED[name]
    plant(other)
    x = torch.randn(1, 4, 8, 8, generator=torch.Generator().manual_seed(2))
    comparison = gc.compare_runs(net, export(other, x, tmp_path / "other.onnx"), x)
    assert comparison.first is not None
    assert comparison.first.name == place, str(comparison)
    in_torch = gc.compare_runs(net, other, x)
    assert in_torch.first is not None
    assert str(comparison).startswith(f"The runs part at {place} (")
    if name == "missing relu":
        assert comparison.only[0] == ("relu/relu_1",)
