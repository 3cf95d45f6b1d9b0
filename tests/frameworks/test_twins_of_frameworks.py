"""Twins in other frameworks: equal ones agree, and one planted difference each is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import graphcore as gc

torch: Any = pytest.importorskip("torch")
jax: Any = pytest.importorskip("jax")
nn: Any = torch.nn
jnp: Any = jax.numpy
pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]
FILES = Path(__file__).parents[1] / "data" / "frontends"


class Block(nn.Module):  # type: ignore[misc]  # torch is not imported by name
    """A layer of a transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(16, eps=1e-6), nn.LayerNorm(16, eps=1e-6)
        self.q, self.k, self.v, self.o = [nn.Linear(16, 16) for _ in range(4)]
        self.up, self.down = nn.Linear(16, 64), nn.Linear(64, 16)

    def forward(self, x: Any) -> Any:
        h = self.norm1(x)
        q, k, v = [part(h).reshape(2, 6, 4, 4).transpose(1, 2) for part in (self.q, self.k, self.v)]
        weights = torch.softmax(q @ k.transpose(-1, -2) / 2.0, dim=-1)
        x = x + self.o((weights @ v).transpose(1, 2).reshape(2, 6, 16))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Images(nn.Module):  # type: ignore[misc]  # as above
    """A network with a stride, groups, and a mean over windows."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8)
        self.dw, self.pw, self.head = nn.Conv2d(8, 8, 3, 1, 1, groups=8), nn.Conv2d(8, 12, 1), nn.Linear(12 * 16, 5)

    def forward(self, x: Any) -> Any:
        x = nn.functional.leaky_relu(self.norm(self.stem(x)), 0.1)
        x = nn.functional.avg_pool2d(torch.tanh(self.pw(self.dw(x))), 2)
        return torch.log_softmax(self.head(x.flatten(1)), 1)


def weights_of(module: Any) -> dict[str, Any]:
    return {name: jnp.asarray(value.detach().numpy()) for name, value in module.state_dict().items()}


def block_in_jax(module: Any, *, eps: float = 1e-6, axis: int = -1, approximate: bool = False, scale: float = 2.0) -> Callable[[Any], Any]:
    w = weights_of(module)

    def norm(x: Any, name: str, eps: float) -> Any:
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(variance + eps) * w[f"{name}.weight"] + w[f"{name}.bias"]

    def linear(x: Any, name: str) -> Any:
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    def forward(x: Any) -> Any:
        h = norm(x, "norm1", 1e-6)
        q, k, v = [linear(h, name).reshape(2, 6, 4, 4).transpose(0, 2, 1, 3) for name in "qkv"]
        mixed = jax.nn.softmax(q @ k.transpose(0, 1, 3, 2) / scale, axis=axis) @ v
        x = x + linear(mixed.transpose(0, 2, 1, 3).reshape(2, 6, 16), "o")
        return x + linear(jax.nn.gelu(linear(norm(x, "norm2", eps), "up"), approximate=approximate), "down")

    return forward


def images_in_jax(module: Any, *, padding: Any = ((1, 1), (1, 1)), slope: float = 0.1, bias: bool = True) -> Callable[[Any], Any]:
    w = {name: value if value.ndim != 1 or name == "head.bias" else value[:, None, None] for name, value in weights_of(module).items()}

    def conv(x: Any, name: str, stride: int, padding: Any, groups: int = 1) -> Any:
        numbers = ("NCHW", "OIHW", "NCHW")
        return jax.lax.conv_general_dilated(
            x, w[f"{name}.weight"], (stride, stride), padding, feature_group_count=groups, dimension_numbers=numbers
        )

    def forward(x: Any) -> Any:
        x = conv(x, "stem", 2, padding)
        x = (x - w["norm.running_mean"]) / jnp.sqrt(w["norm.running_var"] + 1e-5) * w["norm.weight"] + w["norm.bias"]
        x = conv(jax.nn.leaky_relu(x, slope), "dw", 1, ((1, 1), (1, 1)), 8) + w["dw.bias"]
        x = conv(x, "pw", 1, "VALID")
        x = jnp.tanh(x + w["pw.bias"] if bias else x)
        x = jax.lax.reduce_window(x, 0.0, jax.lax.add, (1, 1, 2, 2), (1, 1, 2, 2), "VALID") / 4
        return jax.nn.log_softmax(x.reshape(1, -1) @ w["head.weight"].T + w["head.bias"], axis=1)

    return forward


CASES: dict[str, tuple[type, Callable[..., Any], tuple[int, ...], dict[str, Any], str | None]] = {
    "block": (Block, block_in_jax, (2, 6, 16), {}, None),
    "epsilon": (Block, block_in_jax, (2, 6, 16), {"eps": 0.5}, "norm2/layer_norm"),
    "axis": (Block, block_in_jax, (2, 6, 16), {"axis": -2}, "softmax"),
    "approximation": (Block, block_in_jax, (2, 6, 16), {"approximate": True}, "gelu"),
    "scale": (Block, block_in_jax, (2, 6, 16), {"scale": 4.0}, "div"),
    "images": (Images, images_in_jax, (1, 3, 16, 16), {}, None),
    "padding": (Images, images_in_jax, (1, 3, 16, 16), {"padding": "SAME"}, "norm/batch_norm"),
    "slope": (Images, images_in_jax, (1, 3, 16, 16), {"slope": 0.3}, "leaky_relu"),
    "bias": (Images, images_in_jax, (1, 3, 16, 16), {"bias": False}, "pw/conv2d"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_twin_in_jax_parts_where_it_was_changed(name: str) -> None:
    """A convolution and its normalization are one layer there, named by its end."""
    make, translate, sizes, planted, place = CASES[name]
    torch.manual_seed(0)
    module = make().eval()
    x = torch.randn(*sizes, generator=torch.Generator().manual_seed(1)).numpy()
    comparison = gc.compare_runs(module, translate(module, **planted), x)
    assert (None if comparison.first is None else comparison.first.name) == place, str(comparison)
    words = str(comparison.diff)
    if not planted:
        assert not [removed for removed in comparison.diff.removed if removed not in comparison.diff.explained[0]], words
        assert "~" not in words
    said = {"epsilon": "epsilon: 1e-06 → 0.5", "padding": "padding: [[1, 1], [1, 1]] → [[0, 1], [0, 1]]", "bias": "input 2: pw/bias → none"}
    assert said.get(name, "") in words


@pytest.mark.parametrize("padding", ["same", "valid"])
def test_a_keras_model_and_its_tflite_form_have_the_same_settings(padding: str) -> None:
    keras: Any = pytest.importorskip("keras")
    layers = keras.layers
    convolutions = [
        layers.Conv2D(4, 3, padding=padding if number == 1 else "same", activation="relu", name=f"conv_{number}") for number in range(3)
    ]
    model = keras.Sequential([layers.Input((8, 8, 1)), *convolutions, layers.GlobalAveragePooling2D(), layers.Dense(3, name="logits")])
    diff = gc.graph_diff(model, FILES / "quantised.tflite")
    assert "Conv2D is CONV_2D (3)" in str(diff)
    assert "logits.logits.bias → none" in str(diff)  # zeros, which the converter leaves out
    named = [str(part) for change in diff.changed.values() for part in change.of_kind("attr")]
    assert named == ([] if padding == "same" else ["padding: [[0, 0], [0, 0]] → [[1, 1], [1, 1]]"]), str(diff)
