"""Calls that are hard to trace: each is drawn or refused in a sentence, and changes nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import FunctionType
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")
torchvision: Any = pytest.importorskip("torchvision")
timm: Any = pytest.importorskip("timm")
nn: Any = torch.nn
functional: Any = nn.functional

from graphcore import from_source  # noqa: E402 - after the checks for libraries
from graphcore.errors import GraphError  # noqa: E402 - as above
from graphcore.frontends.frontend import Call  # noqa: E402 - as above
from graphcore.frontends.record import foreign_of  # noqa: E402 - as above
from graphcore.graph import Graph  # noqa: E402 - as above

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]
IDS = torch.ones(2, 8, dtype=torch.int64)
IMAGE = torch.ones(1, 3, 64, 64)
SMALL = {"vocab_size": 100, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
SIZES = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 64}
Made = tuple[Any, tuple[Any, ...], dict[str, Any]]


def call(function: Any, *args: Any, **kwargs: Any) -> Made:
    return function, args, kwargs


def gpt2() -> Made:
    return call(transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=2, n_head=4, n_embd=32, **SMALL)), IDS, labels=IDS)


def llama() -> Made:
    return call(transformers.LlamaForCausalLM(transformers.LlamaConfig(num_key_value_heads=2, **SIZES, **SMALL)), input_ids=IDS)


def llama_with_cache() -> Made:
    model, _, kwargs = llama()
    return call(model, **kwargs, past_key_values=transformers.DynamicCache(), use_cache=True)


def bert() -> Made:
    return call(transformers.BertModel(transformers.BertConfig(vocab_size=100, **SIZES)), IDS, attention_mask=torch.ones(2, 8))


def whisper() -> Made:
    sizes = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 4, "decoder_attention_heads": 4}
    config = transformers.WhisperConfig(num_mel_bins=8, max_source_positions=16, decoder_start_token_id=1, **sizes, **SMALL)
    return call(transformers.WhisperForConditionalGeneration(config), torch.ones(1, 8, 32), decoder_input_ids=IDS[:1])


def detection() -> Made:
    make = torchvision.models.detection.fasterrcnn_mobilenet_v3_large_320_fpn
    return call(make(weights=None, weights_backbone=None).eval(), [torch.ones(3, 64, 64)])


def detection_in_training() -> Made:
    make = torchvision.models.detection.fasterrcnn_mobilenet_v3_large_320_fpn
    boxes = {"boxes": torch.tensor([[1.0, 2.0, 30.0, 40.0]]), "labels": torch.tensor([1])}
    return call(make(weights=None, weights_backbone=None).train(), [torch.ones(3, 64, 64)], [boxes])


def packed() -> Made:
    class Packed(nn.Module):  # type: ignore[misc]  # torch is not imported by name
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(3, 4, 2, batch_first=True)

        def forward(self, x: Any, lengths: Any) -> Any:
            parts = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            return nn.utils.rnn.pad_packed_sequence(self.lstm(parts)[0], batch_first=True)[0]

    return call(Packed(), torch.ones(2, 5, 3), torch.tensor([5, 3]))


def refusing() -> Made:
    """A module with attributes that cannot be copied."""

    class Slotted:
        __slots__ = ("extra",)

    class Refusing(Slotted, nn.Module):  # type: ignore[misc]  # as above
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(4, 4)])
            self.lock = threading.Lock()
            self.stream = iter(range(3))
            self.lazy = (number for number in range(3))
            self.table = {"scale": torch.ones(4)}
            self.extra = torch.ones(4)
            self.calls: list[int] = []

        def forward(self, x: Any) -> Any:
            self.calls.append(1)
            with self.lock:
                return self.layers[0](x) * self.table["scale"] + self.extra

    return call(Refusing(), torch.ones(2, 4))


def own_function() -> Made:
    class Double(torch.autograd.Function):  # type: ignore[misc]  # as above
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(_ctx: Any, gradient: Any) -> Any:
            return gradient * 2

    return call(lambda x: Double.apply(x).relu(), torch.ones(3, requires_grad=True))


def checkpointed(is_reentrant: bool) -> Made:
    layer = nn.Linear(4, 4)
    return call(lambda x: torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=is_reentrant), torch.ones(2, 4, requires_grad=True))


def autocast() -> Made:
    layer = nn.Linear(4, 4)

    def run(x: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return layer(x)

    return call(run, torch.ones(2, 4))


def normalised() -> Made:
    norms = nn.utils.parametrizations
    old = torch.nn.utils.weight_norm(nn.Linear(4, 4))
    return call(nn.Sequential(norms.weight_norm(nn.Linear(4, 4)), norms.spectral_norm(nn.Linear(4, 4)), old), torch.ones(2, 4))


def quantised() -> Made:
    return call(torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(4, 4)), {nn.Linear}), torch.ones(2, 4))


def training_step() -> Made:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 4)).sum().backward()

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return call(step, torch.ones(2, 4), torch.ones(2, 1))


@dataclass
class Batch:
    """A batch."""

    x: Any
    y: Any


def batches() -> Made:
    layer = nn.Linear(4, 4)
    return call(lambda batch: Batch(layer(batch.x), batch.y + 1), Batch(torch.ones(2, 4), torch.ones(2)))


def generator() -> Made:
    layer = nn.Linear(4, 4)

    def steps(x: Any) -> Iterator[Any]:
        for _ in range(3):
            x = layer(x)
            yield x

    return call(steps, torch.ones(2, 4))


def meta() -> Made:
    with torch.device("meta"):
        return call(nn.Linear(1 << 20, 1 << 20), torch.empty(2, 1 << 20))


def trainer() -> Made:
    class Trainer:
        def __init__(self) -> None:
            self.model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))

        def run(self, x: Any) -> Any:
            return self.model(x)

    return call(Trainer().run, torch.ones(2, 4))


def functional_call() -> Made:
    model = nn.Linear(4, 4)
    return call(lambda x: torch.func.functional_call(model, {"weight": torch.ones(4, 4)}, (x,)), torch.ones(2, 4))


def encoder(is_training: bool) -> Made:
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    return call(nn.TransformerEncoder(layer, 2).train(is_training), torch.ones(2, 5, 16))


def decorated() -> Made:
    """A function of the user in a wrapper of PyTorch's, around a module whose state a call changes."""
    norm, drop = nn.BatchNorm1d(4), nn.Dropout()

    @torch.no_grad()  # type: ignore[untyped-decorator]  # torch has no types here
    def predict(x: Any) -> Any:
        return drop(norm(x))

    return call(predict, torch.ones(3, 4))


def counting() -> Made:
    """A module that makes a buffer when it is called, and one whose attributes are those of another."""

    class Counting(nn.Module):  # type: ignore[misc]  # torch is not imported by name
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4))

        def __getattr__(self, name: str) -> Any:
            return super().__getattr__(name) if name in {"inner", "seen"} else getattr(super().__getattr__("inner"), name)

        def forward(self, x: Any) -> Any:
            if "seen" not in self._buffers:
                self.register_buffer("seen", x.detach().mean(0))
            self.seen += 1
            return self.inner(x) * self.out_features + self.seen

    return call(nn.Sequential(Counting(), nn.utils.parametrizations.weight_norm(nn.Linear(4, 2))), torch.ones(3, 4))


CASES: dict[str, tuple[Callable[[], Made], str]] = {
    "gpt2": (gpt2, "torch.nn.functional.scaled_dot_product_attention"),
    "llama": (llama, "torch.nn.functional.scaled_dot_product_attention"),
    "llama with a cache": (llama_with_cache, "torch.nn.functional.scaled_dot_product_attention"),
    "bert": (bert, "torch.nn.functional.scaled_dot_product_attention"),
    "whisper": (whisper, "torch.conv1d"),
    "detection": (detection, "torch.conv2d"),
    "detection in training": (detection_in_training, "torch.conv2d"),
    "vit": (lambda: call(timm.create_model("vit_tiny_patch16_224", img_size=32, depth=2), torch.ones(1, 3, 32, 32)), "torch.conv2d"),
    "resnet": (lambda: call(torchvision.models.resnet18(), IMAGE), "torch.conv2d"),
    "attention": (lambda: call(nn.MultiheadAttention(16, 4), *[torch.ones(5, 2, 16)] * 3), "torch.bmm"),
    "encoder": (partial(encoder, True), "torch.nn.functional.linear"),
    "encoder without training": (partial(encoder, False), "torch.nn.functional.linear"),
    "packed sequences": (packed, "torch.lstm"),
    "gru": (lambda: call(nn.GRU(3, 4), torch.ones(5, 2, 3)), "torch.gru"),
    "compiled": (lambda: call(torch.compile(nn.Linear(4, 4)), torch.ones(2, 4)), "torch.nn.functional.linear"),
    "compiled inside": (lambda: call(nn.Sequential(torch.compile(nn.Linear(4, 4))), torch.ones(2, 4)), "torch.nn.functional.linear"),
    "compiled function": (lambda: call(torch.compile(lambda x: x.relu()), torch.ones(2)), "torch.relu"),
    "scripted inside": (lambda: call(nn.Sequential(torch.jit.script(nn.Linear(4, 4)), nn.ReLU()), torch.ones(2, 4)), "torch.run_scripted"),
    "data parallel": (lambda: call(nn.DataParallel(nn.Linear(4, 4)), torch.ones(2, 4)), "torch.nn.functional.linear"),
    "partial": (lambda: call(partial(nn.Bilinear(4, 4, 4), torch.ones(2, 4)), torch.ones(2, 4)), "torch.bilinear"),
    "method": (trainer, "torch.nn.functional.batch_norm"),
    "records": (batches, "torch.nn.functional.linear"),
    "generator": (generator, "torch.nn.functional.linear"),
    "lazy": (lambda: call(nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d()), torch.ones(2, 3)), "torch.nn.functional.linear"),
    "lazy convolution": (lambda: call(nn.LazyConv2d(4, 3), IMAGE), "torch.conv2d"),
    "normalised weights": (normalised, "torch.nn.functional.linear"),
    "sparse": (lambda: call(torch.sparse.mm, torch.eye(4).to_sparse(), torch.ones(4, 2)), "torch.sparse_mm"),
    "complex": (lambda: call(lambda x: torch.fft.fft(x).abs(), torch.ones(4, dtype=torch.complex64)), "torch.fft_fft"),
    "meta": (meta, "torch.nn.functional.linear"),
    "refusing": (refusing, "torch.nn.functional.linear"),
    "own function": (own_function, "torch.mul"),
    "checkpointed": (partial(checkpointed, False), "torch.nn.functional.linear"),
    "checkpointed, reentrant": (partial(checkpointed, True), "torch.nn.functional.linear"),
    "autocast": (autocast, "torch.nn.functional.linear"),
    "vmap": (lambda: call(torch.vmap(lambda x: (x * 2).sum()), torch.ones(3, 4)), "torch.mul"),
    "functional call": (functional_call, "torch.nn.functional.linear"),
    "training step": (training_step, "torch.nn.functional.mse_loss"),
    "quantised": (quantised, "torch.linear_dynamic"),
    "decorated": (decorated, "torch.nn.functional.batch_norm"),
    "buffers made in the call": (counting, "torch.nn.functional.linear"),
    "subclass": (lambda: call(nn.ReLU(), torchvision.tv_tensors.Image(torch.ones(3, 4, 4))), "torch.nn.functional.relu"),
}
REFUSED: dict[str, tuple[Callable[[], Made], str]] = {
    "scripted": (lambda: call(torch.jit.script(nn.Linear(4, 4)), torch.ones(2, 4)), "runs outside of Python"),
}


def state_of(value: Any) -> list[Any]:
    """The tensors behind an object with their values, versions and gradients, and the lists in it."""
    found: list[Any] = []
    seen: set[int] = set()
    pending = [value]
    while pending:
        part = pending.pop()
        if id(part) in seen or isinstance(part, str | bytes | type):
            continue
        seen.add(id(part))
        if isinstance(part, torch.Tensor):
            is_plain = part.layout is torch.strided and part.device.type != "meta" and not hasattr(part, "materialize")
            copied = part.detach().clone() if is_plain else type(part)
            found.append((id(part), type(part), copied, part._version, part.requires_grad, part.grad))
            continue
        if isinstance(part, list | tuple | set):
            found.append((id(part), len(part)))
            pending += part
        elif isinstance(part, dict):
            pending += part.values()
        cells = [cell.cell_contents for cell in (part.__closure__ or () if isinstance(part, FunctionType) else ())]
        with suppress(TypeError):
            pending += [*cells, *vars(part).values()]
        if isinstance(part, partial):
            pending += [part.func, part.args]
        if hasattr(part, "__self__"):
            pending.append(part.__self__)
    return found


def same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return bool(torch.equal(one, other))
    if isinstance(one, tuple):
        return len(one) == len(other) and all(same(*pair) for pair in zip(one, other, strict=True))
    return bool(one == other)


def shown(made: Made) -> Graph:
    function, args, kwargs = made
    return from_source(Call(function, args, kwargs))


@pytest.mark.parametrize("name", CASES)
def test_a_hard_call_is_drawn_and_changes_nothing(name: str, capfd: Any) -> None:
    make, op = CASES[name]
    made = make()
    before, drawn = state_of(made), torch.get_rng_state()
    capfd.readouterr()
    graph = shown(made)
    assert capfd.readouterr().err == ""
    wrong = [node.error.message for node in graph.nodes if node.error is not None]
    assert wrong == []
    assert op in {node.op for node in graph.nodes}
    after = state_of(made)
    assert len(before) == len(after)
    assert all(same(*pair) for pair in zip(before, after, strict=True))
    assert torch.equal(drawn, torch.get_rng_state())


@pytest.mark.parametrize("name", REFUSED)
def test_a_call_that_cannot_be_followed_is_refused_in_a_sentence(name: str) -> None:
    make, reason = REFUSED[name]
    with pytest.raises(GraphError, match=reason):
        shown(make())


def test_a_decision_of_a_module_of_pytorch_is_noted_with_the_line_of_pytorch() -> None:
    graph = from_source(Call(nn.BatchNorm1d(4, momentum=None), (torch.ones(3, 4),)))
    record = foreign_of(graph)
    assert record is not None
    (note,) = record.source.notes
    assert "float(self.num_batches_tracked)" in note
    assert "batchnorm.py, line" in note


def test_a_training_step_is_linked_from_the_loss_to_the_new_weights() -> None:
    net = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = net(x).square().mean()
        torch.autograd.backward([loss])
        optimizer.step()
        return loss

    graph = from_source(Call(step, (torch.ones(3, 4),)))
    (ran,) = [node for node in graph.nodes if node.op == "torch.backward"]
    assert [tensor.node.op for tensor in ran.inputs] == ["torch.mean"]
    assert sorted(tensor.shape.as_list() for tensor in ran.outputs) == [[2], [2, 4]]
    assert {taker.op for taker, _ in ran.consumers()} == {"torch.add"}
    record = foreign_of(from_source(Call(step, (torch.ones(3, 4),), gradients=True)))
    assert record is not None
    assert [note for note in record.source.notes if "fails" in note] == []
