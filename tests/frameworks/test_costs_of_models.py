"""The multiply-adds of published models are those that the frameworks count."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
models: Any = pytest.importorskip("torchvision.models")
flop_counter: Any = pytest.importorskip("torch.utils.flop_counter")

import graphcore as gc  # noqa: E402 - after the check for torch

# In thousands of millions, as torchvision publishes them.
PUBLISHED = {
    "resnet18": 1.81,
    "resnet50": 4.09,
    "mobilenet_v2": 0.30,
    "vgg11": 7.61,
    "densenet121": 2.83,
    "efficientnet_b0": 0.39,
    "convnext_tiny": 4.46,
    "swin_t": 4.49,
    "regnet_y_400mf": 0.40,
    "googlenet": 1.50,
}


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_multiply_adds_are_those_that_torch_counts_and_torchvision_publishes(name: str) -> None:
    model = getattr(models, name)(weights=None).eval()
    x = torch.zeros(1, 3, 224, 224)
    counted = gc.costs(model, x)
    assert not counted.unknown
    multiply_adds = counted.total.multiply_adds.constant
    assert multiply_adds is not None
    assert multiply_adds / 1e9 == pytest.approx(PUBLISHED[name], rel=0.02)
    with torch.no_grad(), flop_counter.FlopCounterMode(display=False) as counter:
        model(x)
    assert 2 * multiply_adds == pytest.approx(counter.get_total_flops(), rel=0.001)


def test_attention_counts_as_torchvision_publishes() -> None:  # the counter of torch misses the products of fused attention
    counted = gc.costs(models.vit_b_16(weights=None).eval(), torch.zeros(1, 3, 224, 224))
    assert counted.total.multiply_adds.constant == pytest.approx(17.56e9, rel=0.02)


def test_gpt2_has_its_parameters() -> None:
    transformers: Any = pytest.importorskip("transformers")
    with torch.device("meta"):
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config()).eval()
    counted = gc.costs(model, torch.zeros(1, 16, dtype=torch.long, device="meta"))
    assert counted.total.parameters == 124_439_808


def test_products_and_convolutions_of_jax() -> None:
    jax: Any = pytest.importorskip("jax")

    def layers(x: Any, w: Any, v: Any) -> Any:
        y = jax.lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return jax.numpy.einsum("bhwc,cd->bhwd", y, v)

    zeros = jax.numpy.zeros
    counted = gc.costs(layers, zeros([2, 8, 8, 3]), zeros([3, 3, 3, 16]), zeros([16, 5]))
    assert counted.total.multiply_adds.constant == 2 * 4 * 4 * 16 * 27 + 2 * 4 * 4 * 16 * 5


def test_a_scan_of_jax_counts_each_of_its_turns() -> None:
    jax: Any = pytest.importorskip("jax")

    def turns(w: Any, h: Any, xs: Any) -> Any:
        return jax.lax.scan(lambda h, x: (jax.numpy.tanh(h @ w + x), h), h, xs)

    zeros = jax.numpy.zeros
    assert gc.costs(turns, zeros([6, 6]), zeros([2, 6]), zeros([9, 2, 6])).total.multiply_adds.constant == 9 * 2 * 36


def perceptron(x: Any, w: Any, v: Any) -> Any:
    jax: Any = pytest.importorskip("jax")
    return jax.nn.relu(x @ w) @ v


def attention(x: Any, w: Any) -> Any:
    """Eight heads of self-attention, with one matrix for all projections."""
    jax: Any = pytest.importorskip("jax")
    heads = (x @ w).reshape(*x.shape[:2], 8, -1)
    weights = jax.nn.softmax(jax.numpy.einsum("bqhd,bkhd->bhqk", heads, heads))
    return jax.numpy.einsum("bhqk,bkhd->bqhd", weights, heads).reshape(x.shape) @ w


def convolution(x: Any, w: Any) -> Any:
    """One without padding: XLA does not count what is multiplied by the zeros around an image."""
    jax: Any = pytest.importorskip("jax")
    groups = x.shape[-1] // w.shape[2]
    layout = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, w, (2, 2), "VALID", dimension_numbers=layout, feature_group_count=groups)


@pytest.mark.parametrize(
    ("layers", "shapes", "tolerance"),
    [
        (perceptron, [[128, 784], [784, 512], [512, 10]], 0),
        (attention, [[2, 128, 512], [512, 512]], 0.001),
        (convolution, [[1, 57, 57, 64], [3, 3, 64, 128]], 0),
        (convolution, [[1, 57, 57, 64], [3, 3, 1, 64]], 0),
    ],
    ids=["perceptron", "attention", "convolution", "depthwise convolution"],
)
def test_operations_of_jax_are_those_that_xla_counts(layers: Any, shapes: list[list[int]], tolerance: float) -> None:
    jax: Any = pytest.importorskip("jax")
    arrays = [jax.numpy.zeros(shape) for shape in shapes]
    counted = gc.costs(layers, *arrays)
    assert not counted.unknown
    assert counted.total.operations.constant == pytest.approx(jax.jit(layers).lower(*arrays).cost_analysis()["flops"], rel=tolerance)


def transformer_layer_of_flax() -> tuple[Any, list[int]]:
    nnx: Any = pytest.importorskip("flax.nnx")
    rngs = nnx.Rngs(0)

    class Layer(nnx.Module):  # type: ignore[misc]  # flax is not imported by name
        def __init__(self) -> None:
            self.norm1, self.norm2 = [nnx.LayerNorm(256, rngs=rngs) for _ in range(2)]
            self.attention = nnx.MultiHeadAttention(8, 256, decode=False, rngs=rngs)
            self.up, self.down = nnx.Linear(256, 1024, rngs=rngs), nnx.Linear(1024, 256, rngs=rngs)

        def __call__(self, x: Any) -> Any:
            x = x + self.attention(self.norm1(x))
            return x + self.down(nnx.gelu(self.up(self.norm2(x))))

    return Layer(), [2, 64, 256]


def perceptron_of_equinox() -> tuple[Any, list[int]]:
    equinox: Any = pytest.importorskip("equinox")
    jax: Any = pytest.importorskip("jax")
    return equinox.nn.MLP(64, 10, 256, 3, key=jax.random.key(0)), [64]


@pytest.mark.parametrize(("make", "tolerance"), [(transformer_layer_of_flax, 0.005), (perceptron_of_equinox, 0)])
def test_operations_of_modules_of_jax_are_those_that_xla_counts(make: Callable[[], tuple[Any, list[int]]], tolerance: float) -> None:
    jax: Any = pytest.importorskip("jax")
    module, shape = make()
    x = jax.numpy.zeros(shape)

    def call(x: Any) -> Any:  # a module of Flax is no argument of `jit`
        return module(x)

    counted = gc.costs(module, x)
    assert not counted.unknown
    assert counted.total.operations.constant == pytest.approx(jax.jit(call).lower(x).cost_analysis()["flops"], rel=tolerance)


KERAS = {"MobileNet": 0.569e9, "MobileNetV2": 0.300e9, "EfficientNetB0": 0.386e9, "Xception": 8.36e9}


@pytest.mark.parametrize(("name", "published"), KERAS.items())
def test_layers_of_keras_count_as_published_and_as_xla_does(name: str, published: float) -> None:
    keras: Any = pytest.importorskip("keras")
    jax: Any = pytest.importorskip("jax")
    if keras.backend.backend() != "jax":
        pytest.skip("Keras runs on another backend than JAX")
    model = getattr(keras.applications, name)(weights=None)
    counted = gc.costs(model)
    assert not counted.unknown
    assert counted.at(batch=1).multiply_adds.constant == pytest.approx(published, rel=0.02)
    assert counted.total.parameters == model.count_params()
    program = jax.jit(lambda x: model(x, training=False)).lower(jax.numpy.zeros([1, *model.input_shape[1:]]))
    assert counted.at(batch=1).operations.constant == pytest.approx(program.cost_analysis()["flops"], rel=0.02)


def test_a_model_exported_to_onnx_has_the_multiply_adds_of_the_model(tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    model = models.resnet18(weights=None).eval()
    x = torch.zeros(1, 3, 224, 224)
    torch.onnx.export(model, (x,), tmp_path / "model.onnx", dynamo=True, verbose=False)
    assert gc.costs(tmp_path / "model.onnx").total.multiply_adds == gc.costs(model, x).total.multiply_adds
