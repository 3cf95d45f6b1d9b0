"""A look at a call leaves generators, settings, lists, objects and schedulers as they are."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore import from_source
from graphcore.api.run import run_of
from graphcore.frontends.frontend import Call

pytestmark = pytest.mark.frameworks
LOOKS: dict[str, Callable[[Any, tuple[Any, ...]], object]] = {
    "trace": lambda function, args: from_source(Call(function, args)),
    "mirror": lambda function, args: from_source(Call(function, args, gradients=True)),
    "run": lambda function, args: run_of(Call(function, args)),
    "run with gradients": lambda function, args: run_of(Call(function, args, gradients=True)),
}
seen: list[Any] = []
count = 0


class Box:
    """An object of the user's."""

    def __init__(self) -> None:
        self.last: Any = None
        self.drawn = np.random.default_rng(0)


box = Box()
python, drawn_from = random.Random(1), np.random.default_rng(1)


def noted(y: Any) -> Any:
    """Note a result around the function, and draw."""
    global count  # noqa: PLW0603 - what users do
    count += 1
    seen.append(y)
    box.last = y
    return y + random.random() + np.random.rand() + drawn_from.random() + python.random()  # noqa: NPY002 - as above


def around() -> list[Any]:
    """The values that the function above changes."""
    states = [python.getstate(), drawn_from.bit_generator.state, random.getstate(), repr(np.random.get_state())]  # noqa: NPY002 - as above
    return [count, list(seen), box.last, states]


@pytest.mark.parametrize("look", ["trace", "mirror", "run with gradients"])
def test_a_look_at_pytorch_leaves_lists_objects_and_generators(look: str) -> None:
    torch: Any = pytest.importorskip("torch")
    w = torch.ones(4, 2, requires_grad=True)
    before = around()
    LOOKS[look](lambda x: noted((x @ w).sum()), (torch.ones(3, 4),))
    assert around() == before


@pytest.mark.parametrize("look", LOOKS)
def test_a_look_at_jax_leaves_lists_objects_and_generators(look: str) -> None:
    jax: Any = pytest.importorskip("jax")
    before = around()
    LOOKS[look](lambda x: noted((x @ x.T).sum()), (jax.numpy.ones((3, 4)),))
    assert around() == before


@pytest.mark.parametrize("look", LOOKS)
def test_a_look_leaves_the_settings_of_pytorch(look: str) -> None:
    torch: Any = pytest.importorskip("torch")

    def function(x: Any) -> Any:
        torch.set_default_dtype(torch.float64)
        torch.set_float32_matmul_precision("high")
        torch.use_deterministic_algorithms(True)
        torch.autograd.set_detect_anomaly(True)
        torch.set_grad_enabled(False)
        return x + torch.rand(4)

    def settings() -> list[Any]:
        torch.manual_seed(0)
        return [
            torch.get_default_dtype(),
            torch.get_float32_matmul_precision(),
            torch.are_deterministic_algorithms_enabled(),
            torch.is_anomaly_enabled(),
            torch.is_grad_enabled(),
        ]

    before = settings()
    LOOKS[look](function, (torch.ones(4),))
    assert settings() == before


@pytest.mark.parametrize("look", LOOKS)
def test_a_look_at_a_training_step_leaves_its_scheduler(look: str) -> None:
    torch: Any = pytest.importorskip("torch")
    net = torch.nn.Linear(4, 2)
    optimizer = torch.optim.AdamW(net.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = net(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        scheduler.step()
        return loss

    before = repr((scheduler.state_dict(), optimizer.state_dict()))
    assert LOOKS[look](step, (torch.ones(3, 4),)) is not None
    assert repr((scheduler.state_dict(), optimizer.state_dict())) == before


def test_a_backward_pass_after_a_recorded_step_finds_what_it_has_saved() -> None:
    torch: Any = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def step(x: Any) -> Any:
        loss = net(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss

    loss = net(torch.ones(3, 4)).sum()
    assert gc.run(step, torch.ones(3, 4)).error is None
    loss.backward()  # fails if the versions of the parameters are others


def test_a_run_with_gradients_has_the_true_values_of_packed_sequences() -> None:
    torch: Any = pytest.importorskip("torch")
    from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence  # noqa: PLC0415 - torch may be absent

    layers = torch.nn.LSTM(3, 4, batch_first=True)

    def function(x: Any, lengths: Any) -> Any:
        out, _ = layers(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))
        return pad_packed_sequence(out, batch_first=True)[0].sum()

    x, lengths = torch.randn(2, 5, 3), torch.tensor([3, 5])
    run = run_of(Call(function, (x, lengths), gradients=True))
    assert run is not None
    assert torch.equal(run.result, function(x, lengths))
