"""Remarks on traced calls of PyTorch: one for each such fault, and none on models that are right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("torchvision")
pytest.importorskip("timm")
nn: Any = torch.nn
F: Any = nn.functional

from graphcore import from_source  # noqa: E402 - after the checks for libraries
from graphcore.frontends.frontend import Call  # noqa: E402 - as above
from graphcore.remarks import collect_remarks, collected_remarks  # noqa: E402 - as above
from tests.frameworks.test_hard_torch_calls import CASES, Made  # noqa: E402 - as above

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]
MODELS = (
    "gpt2",
    "llama",
    "bert",
    "whisper",
    "detection",
    "detection in training",
    "vit",
    "resnet",
    "attention",
    "encoder",
    "training step",
)


def remarks_of(function: Any, *args: Any, **kwargs: Any) -> list[str]:
    collect_remarks()
    from_source(Call(function, args, kwargs))
    return collected_remarks()


class Listed(nn.Module):  # type: ignore[misc]  # torch is not imported by name
    """Layers in a plain list, and one that is not called."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = [nn.Linear(4, 4), nn.Linear(4, 4)]
        self.last = nn.Linear(4, 2)
        self.other = nn.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x).relu()
        return self.last(x)


def evaluated(x: Any) -> Any:
    with torch.no_grad():
        return nn.Sequential(nn.Linear(4, 4), nn.Dropout(), nn.BatchNorm1d(4))(x)


def changed(x: Any) -> Any:
    y = x.exp()
    z = y * 2
    y.add_(1)
    return z + y


FAULTS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], str]] = {
    "broadcast": (lambda x, y: ((x - y) ** 2).mean(), (torch.ones(8), torch.ones(8, 1)), "make a matrix (8, 8) in sub"),
    "loss of other shapes": (F.mse_loss, (torch.ones(8, 1), torch.ones(8)), "mse_loss"),
    "softmax twice": (
        lambda x, y: F.cross_entropy(x.softmax(-1), y),
        (torch.ones(8, 3), torch.ones(8).long()),
        "applies a softmax itself, and gets",
    ),
    "no logarithm": (
        lambda x, y: F.nll_loss(x.softmax(-1), y),
        (torch.ones(8, 3), torch.ones(8).long()),
        "takes logarithms of probabilities",
    ),
    "sigmoid twice": (
        lambda x, y: F.binary_cross_entropy_with_logits(torch.sigmoid(x), y),
        (torch.ones(8), torch.ones(8)),
        "applies a sigmoid itself, and gets sigmoid",
    ),
    "softmax over examples": (lambda x: x.softmax(0), (torch.ones(8, 3),), "is along axis 0, which is axis 0 of x"),
    "no eval": (evaluated, (torch.ones(8, 4),), "under torch.no_grad()"),
    "linear twice": (
        nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 3)),
        (torch.ones(2, 4),),
        "0 (Linear) and 1 (Linear) follow each other without a function",
    ),
    "a list of layers": (Listed(), (torch.ones(2, 4),), "`layers` of Listed is a list of modules"),
    "not used": (Listed(), (torch.ones(2, 4),), "other.weight, other.bias are never used"),
    "changed in place": (changed, (torch.ones(3, requires_grad=True),), "add ("),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_has_a_remark(name: str) -> None:
    function, args, text = FAULTS[name]
    remarks = remarks_of(function, *args)
    assert any(text in said for said in remarks), remarks


@pytest.mark.parametrize(
    "name", [name for name in FAULTS if name not in {"a list of layers", "not used", "loss of other shapes", "linear twice"}]
)
def test_a_remark_names_its_line(name: str) -> None:
    function, args, text = FAULTS[name]
    said = next(said for said in remarks_of(function, *args) if text in said)
    assert ", line " in said


@pytest.mark.parametrize("name", MODELS)
def test_models_that_are_right_have_no_remarks(name: str) -> None:
    made: Made = CASES[name][0]()
    function, args, kwargs = made
    assert remarks_of(function, *args, **kwargs) == []


def test_a_bottleneck_is_no_fault() -> None:
    assert remarks_of(nn.Sequential(nn.Linear(8, 2), nn.Linear(2, 8)), torch.ones(2, 8)) == []
