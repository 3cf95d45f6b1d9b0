"""ONNX files of PyTorch: first pictures, and nodes, edges, shapes and modules as `onnx` reads them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest

import graphcore as gc
from graphcore.frontends.record import foreign_of
from widgets.render.compiled import build_scene
from widgets.scene import SceneState

torch: Any = pytest.importorskip("torch")
torchvision: Any = pytest.importorskip("torchvision")
transformers: Any = pytest.importorskip("transformers")
timm: Any = pytest.importorskip("timm")
pytest.importorskip("onnxscript")
pytestmark = pytest.mark.frameworks
IDS = torch.randint(0, 99, (2, 16))
SMALL = {"vocab_size": 100, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
Case = tuple[Callable[[], Any], Any, list[tuple[str, int]]]


def llama() -> Any:
    config = transformers.LlamaConfig(
        num_hidden_layers=4, hidden_size=64, num_attention_heads=4, num_key_value_heads=2, intermediate_size=128, use_cache=False, **SMALL
    )
    return transformers.LlamaForCausalLM(config)


def gpt2() -> Any:
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=4, n_head=4, n_embd=64, use_cache=False, **SMALL))


def bert() -> Any:
    return transformers.BertModel(
        transformers.BertConfig(num_hidden_layers=12, hidden_size=64, num_attention_heads=4, intermediate_size=128, vocab_size=100)
    )


def perceptron() -> Any:
    return torch.nn.Sequential(*[layer for _ in range(5) for layer in (torch.nn.Linear(32, 32), torch.nn.ReLU())], torch.nn.Softmax(-1))


CASES: dict[str, Case] = {
    "gpt2": (gpt2, IDS, [("h GPT2Block", 4)]),
    "llama": (llama, IDS, [("layers LlamaDecoderLayer", 4)]),
    "bert": (bert, IDS, [("layer BertLayer", 12)]),
    "vit": (lambda: timm.create_model("vit_tiny_patch16_224"), torch.randn(1, 3, 224, 224), [("blocks Block", 12)]),
    "perceptron": (perceptron, torch.randn(1, 32), []),
    "resnet50": (
        torchvision.models.resnet50,
        torch.randn(1, 3, 64, 64),
        [(f"layer{i} Bottleneck", n) for i, n in enumerate((3, 4, 6, 3), 1)],
    ),
}


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    folder = tmp_path_factory.mktemp("exported")

    def export(name: str, dynamo: bool = True) -> Path:
        path = folder / f"{name}-{dynamo}.onnx"
        if not path.exists():
            make, given, _ = CASES[name]
            torch.manual_seed(0)
            torch.onnx.export(make().eval(), (given,), path, dynamo=dynamo, verbose=False)
        return path

    return export


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_the_first_picture_says_what_the_model_is(name: str, exported: Callable[..., Path]) -> None:
    scene = build_scene(gc.load(exported(name)), SceneState())
    assert [(node.label, node.repeat) for node in scene.nodes if node.repeat] == CASES[name][2]


OLDER = [(name, False) for name in ("vit", "perceptron", "resnet50")]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "dynamo"), [*[(name, True) for name in CASES], *OLDER])
def test_nodes_edges_shapes_and_modules_are_those_that_onnx_reads(name: str, dynamo: bool, exported: Callable[..., Path]) -> None:
    path = exported(name, dynamo)
    model = onnx.load(path, load_external_data=False)
    graph = gc.load(path)
    record = foreign_of(graph)
    assert record is not None
    ours = {known.name: graph.find(placed) for placed, known in record.nodes.items()}
    makers = {output: proto.name for proto in model.graph.node for output in proto.output}
    shapes = {info.name: [dim.dim_value or None for dim in info.type.tensor_type.shape.dim] for info in model.graph.value_info}
    for proto in model.graph.node:
        node = ours[proto.name]
        assert node is not None
        assert node.op == f"onnx.{proto.op_type}"
        sources = [makers.get(each, each) for each in proto.input if each]
        assert [record.nodes[tensor.node.name].name for tensor in node.inputs] == sources
        for index, output in enumerate(proto.output):
            if output in shapes:
                assert node.outputs[index].shape == shapes[output]
        given = {entry.key: entry.value for entry in proto.metadata_props}
        if "pkg.torch.onnx.name_scopes" in given:
            known = record.nodes[node.name]
            assert [module.path for module in known.modules] == [part for part in eval(given["pkg.torch.onnx.name_scopes"])[:-1] if part]
            assert known.frames
