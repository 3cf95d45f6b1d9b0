"""PyTorch's programs, as files and as objects, compared with what PyTorch itself says."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphcore.frontends.foreign import ForeignFunction, ForeignGraph
from graphcore.frontends.sources import open_source

torch: Any = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")
torchvision: Any = pytest.importorskip("torchvision")
timm: Any = pytest.importorskip("timm")
sys.path.insert(0, str(Path(__file__).parent / "make"))
from torch_files import Branching, Looping, Scripted  # type: ignore[import-not-found]  # noqa: E402 - it needs torch

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]
IDS = torch.ones(2, 16, dtype=torch.int64)
IMAGE = torch.ones(1, 3, 64, 64)
SMALL = {"vocab_size": 100, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
FIELDS = ("name", "op", "inputs", "input_names", "outputs", "attrs", "modules", "frames", "kind", "bodies", "arguments", "device", "doc")
Case = tuple[Callable[[], Any], tuple[Any, ...], dict[str, Any]]


def gpt2() -> Any:
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=4, n_head=4, n_embd=64, use_cache=False, **SMALL))


def llama() -> Any:
    sizes = {"num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128}
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(use_cache=False, **sizes, **SMALL))


def bert() -> Any:
    sizes = {"num_hidden_layers": 12, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128}
    return transformers.BertModel(transformers.BertConfig(vocab_size=100, **sizes))


def batch(least: int, most: int) -> dict[str, Any]:
    return {"dynamic_shapes": ({0: torch.export.Dim("batch", min=least, max=most)},)}


CASES: dict[str, Case] = {
    "branching": (Branching, (torch.ones(3, 4),), batch(2, 64)),
    "looping": (Looping, (torch.tensor(0), torch.ones(3, 4)), {}),
    "lstm": (lambda: torch.nn.LSTM(3, 4, 2, batch_first=True), (torch.ones(2, 5, 3),), {}),
    "resnet18": (torchvision.models.resnet18, (IMAGE.repeat(2, 1, 1, 1),), batch(2, 32)),
    "mobilenet": (torchvision.models.mobilenet_v3_small, (IMAGE,), {}),
    "gpt2": (gpt2, (IDS,), {}),
    "llama": (llama, (IDS,), {}),
    "bert": (bert, (IDS,), {}),
    "vit": (lambda: timm.create_model("vit_tiny_patch16_224"), (torch.ones(1, 3, 224, 224),), {}),
}


@pytest.fixture(scope="module", params=CASES)
def program(request: pytest.FixtureRequest) -> Any:
    model, arguments, options = CASES[request.param]
    torch.manual_seed(0)
    return torch.export.export(model().eval(), arguments, **options)


@pytest.fixture(scope="module")
def read(program: Any, tmp_path_factory: pytest.TempPathFactory) -> ForeignGraph:
    path = tmp_path_factory.mktemp("program") / "model.pt2"
    torch.export.save(program, path)
    return open_source(path)


def parts_of(node: Any) -> bool:
    """True iff a node of PyTorch only takes one of several results."""
    return node.op == "call_function" and node.target is operator.getitem and isinstance(node.args[0].meta["val"], tuple | list)


def names_of(arguments: Any) -> list[str]:
    """The names of the values in arguments, in order."""
    found: list[str] = []
    torch.fx.map_arg(arguments, lambda node: found.append(node.name))
    return found


def test_nodes_edges_and_shapes_are_those_of_the_program(program: Any, read: ForeignGraph) -> None:
    ours = {port.name: (node, index) for node in read.main.nodes for index, port in enumerate(node.outputs)}
    calls = [node for node in program.graph.nodes if node.op == "call_function" and not parts_of(node)]
    assert [node.name for node in read.main.nodes if node.kind == "op"] == [node.name for node in calls]
    for theirs in calls:
        node = next(node for node in read.main.nodes if node.name == theirs.name)
        assert node.op in {str(theirs.target), f"higher_order.{theirs.target}"}
        given = names_of([*theirs.args, *theirs.kwargs.values()])
        graphs = {each.name for each in program.graph.nodes if each.op == "get_attr"}
        assert [(ref[0], ref[1]) for ref in node.inputs if ref] == [(ours[n][0].name, ours[n][1]) for n in given if n not in graphs]
        values = theirs.meta["val"] if isinstance(theirs.meta["val"], tuple | list) else [theirs.meta["val"]]
        for port, value in zip(node.outputs, values, strict=theirs.meta["val"] is not None):
            if hasattr(value, "shape"):
                assert port.dtype == str(value.dtype).removeprefix("torch.")
                assert [str(size) for size in port.shape or ()] == [str(size) for size in value.shape]


def test_parameters_and_buffers_have_the_elements_of_the_program(program: Any, read: ForeignGraph) -> None:
    held = {node.name: node.weight for node in read.main.nodes if node.weight is not None}
    targets = [spec.target for spec in program.graph_signature.input_specs if spec.target is not None]
    assert list(held) == targets
    for name in targets[:20]:
        weight = held[name]
        theirs = program.state_dict[name] if name in program.state_dict else program.constants[name]
        assert weight is not None
        assert weight.load is not None
        np.testing.assert_array_equal(weight.load(), theirs.detach().numpy())


def test_an_object_is_read_as_its_file_is(program: Any, read: ForeignGraph) -> None:
    def check(one: ForeignFunction, other: ForeignFunction) -> None:
        for ours, theirs in zip(one.nodes, other.nodes, strict=True):
            for field in FIELDS:
                assert getattr(ours, field) == getattr(theirs, field), (ours.name, field)
        assert (one.inputs, one.outputs, one.output_names) == (other.inputs, other.outputs, other.output_names)

    from_object = open_source(program)
    check(read.main, from_object.main)
    assert list(read.functions) == list(from_object.functions)
    for key, function in read.functions.items():
        check(function, from_object.functions[key])
    assert (read.name, read.producer) == (from_object.name, from_object.producer)


def test_reading_an_object_changes_nothing(program: Any) -> None:
    before = str(program)
    open_source(program)
    assert str(program) == before


def test_a_traced_module_shows_its_modules_with_their_parameters() -> None:
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten())
    source = open_source(torch.fx.symbolic_trace(model))
    assert [node.op for node in source.main.nodes if node.kind == "op"] == ["nn.Conv2d", "nn.ReLU", "nn.Flatten"]
    conv = next(node for node in source.main.nodes if node.op == "nn.Conv2d")
    assert conv.input_names == ("input", "weight", "bias")
    assert conv.attrs["kernel_size"] == [3, 3]
    weight = next(node.weight for node in source.main.nodes if node.name == "0.weight")
    assert weight is not None
    assert weight.load is not None
    np.testing.assert_array_equal(weight.load(), model[0].weight.detach().numpy())


def test_bfloat16_weights_are_read_from_objects() -> None:
    source = open_source(torch.fx.symbolic_trace(torch.nn.Linear(2, 2).bfloat16()))
    weight = next(node.weight for node in source.main.nodes if node.weight is not None)
    assert weight.load is not None
    assert weight.load().dtype.name == "bfloat16"


@pytest.mark.parametrize("model", [torchvision.models.resnet18, torchvision.models.mobilenet_v3_small])
def test_traced_scripts_have_the_ops_of_their_graphs(model: Any, tmp_path: Path) -> None:
    traced = torch.jit.trace(model().eval(), IMAGE)
    torch.jit.save(traced, tmp_path / "model.pt")
    source = open_source(tmp_path / "model.pt")
    ours = sorted(node.op for node in source.main.nodes if node.kind == "op")
    theirs = sorted(node.kind().replace("::", ".") for node in traced.inlined_graph.nodes() if node.kind().startswith("aten::"))
    assert ours == theirs


def test_scripts_keep_their_weights(tmp_path: Path) -> None:
    scripted = torch.jit.script(Scripted().eval())
    torch.jit.save(scripted, tmp_path / "model.pt")
    held = {node.name: node.weight for node in open_source(tmp_path / "model.pt").main.nodes if node.weight is not None}
    for name, theirs in scripted.state_dict().items():
        weight = held[name]
        assert weight is not None
        assert weight.load is not None
        np.testing.assert_array_equal(weight.load(), theirs.numpy())


def test_saved_states_of_many_types_have_their_elements(tmp_path: Path) -> None:
    types = (torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.uint8, torch.bool, torch.complex64, torch.float8_e4m3fn)
    state = {str(dtype): torch.arange(12).reshape(3, 4).to(dtype)[:, ::2] for dtype in types}
    for file, options in (("new.pt", {}), ("old.pth", {"_use_new_zipfile_serialization": False})):
        torch.save({"state": state, "step": 7}, tmp_path / file, **options)
        source = open_source(tmp_path / file)
        assert source.facts["step"] == "7"
        for node in source.main.nodes:
            theirs = state[node.name.removeprefix("state.")]
            assert node.weight is not None
            assert node.weight.load is not None
            assert node.outputs[0].dtype == str(theirs.dtype).removeprefix("torch.")
            got = torch.from_numpy(node.weight.load().view(np.uint8).copy()).view(theirs.dtype)
            assert torch.equal(got.view(torch.uint8), theirs.contiguous().view(torch.uint8))


class Mapped(torch.nn.Module):  # type: ignore[misc]  # torch is absent where types are checked
    def forward(self, xs: Any, y: Any) -> Any:
        return torch._higher_order_ops.map(lambda x, y: (x * y).sin(), xs, y)


class Scanned(torch.nn.Module):  # type: ignore[misc]  # as above
    def forward(self, start: Any, xs: Any) -> Any:
        return torch._higher_order_ops.scan(lambda carry, x: (carry + x, (carry * x).tanh()), start, xs)


@pytest.mark.parametrize(
    ("model", "arguments", "op"),
    [
        pytest.param(Branching, (torch.ones(3, 4),), "cond", id="cond"),
        pytest.param(Looping, (torch.tensor(0), torch.ones(3, 4)), "while_loop", id="while_loop"),
        pytest.param(Mapped, (torch.ones(3, 4), torch.ones(4)), "map_impl", id="map"),
        pytest.param(Scanned, (torch.ones(4), torch.ones(3, 4)), "scan", id="scan"),
    ],
)
def test_bodies_of_higher_order_ops_have_the_nodes_of_the_program(model: Any, arguments: Any, op: str, tmp_path: Path) -> None:
    program = torch.export.export(model().eval(), arguments)
    torch.export.save(program, tmp_path / "model.pt2")
    source = open_source(tmp_path / "model.pt2")
    node = next(node for node in source.main.nodes if node.op == f"higher_order.{op}")
    call = next(each for each in program.graph.nodes if str(each.target) == op)
    graphs = [
        getattr(program.graph_module, each.target)
        for each in call.all_input_nodes
        if each.op == "get_attr" and each.target in dict(program.graph_module.named_children())
    ]
    theirs = [[each.name for each in graph.graph.nodes if each.op == "call_function" and not parts_of(each)] for graph in graphs]
    ours = [
        [each.name for each in source.functions[key].nodes if each.op != "torch.Input" and each.kind == "op"]
        for key in node.bodies.values()
    ]
    assert theirs
    assert ours == theirs
