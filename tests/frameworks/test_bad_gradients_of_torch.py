"""Gradients of PyTorch that are NaN where values are finite, and those that custom functions end."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
nn: Any = torch.nn

import graphcore as gc  # noqa: E402 - after the check for torch
from graphcore.frontends.frontend import Call  # noqa: E402 - as above
from graphcore.frontends.record import foreign_of  # noqa: E402 - as above

F: Any = nn.functional


def root(w: Any) -> Any:
    h = w * 2
    return torch.sqrt(h).mean()  # BAD sqrt


def masked_log(w: Any) -> Any:
    logs = torch.log(w)  # BAD log
    return torch.where(w > 0, logs, 0.0).sum()


def distance(w: Any) -> Any:
    squares = (w - w.detach()).square().sum()
    return squares**0.5  # BAD pow


def deviation(w: Any) -> Any:
    h = w + 1
    return h.var().sqrt()  # BAD sqrt


def unit(w: Any) -> Any:
    length = w.square().sum().sqrt()  # BAD sqrt
    return (w / (length + 1e-8)).sum()


def hypotenuse(w: Any) -> Any:
    angles = torch.acos(w + 1)  # BAD acos
    return angles.sum()


@pytest.mark.parametrize("loss", [root, masked_log, distance, deviation, unit, hypotenuse])
def test_the_operation_that_makes_a_gradient_bad_is_named_with_its_value(loss: Callable[[Any], Any]) -> None:
    w = nn.Parameter(torch.zeros(3))
    y = loss(w)
    assert torch.isfinite(y), "the values are finite"
    y.backward()
    assert not torch.isfinite(w.grad).all()
    explained = gc.explain_gradient(lambda: loss(w), w)
    cut = explained.cuts[0]
    assert cut.kind == "not finite", explained
    assert cut.source is not None
    wanted = cut.source.text.partition("# BAD ")[2]
    assert wanted, cut
    assert wanted in cut.op
    assert ("as at 1" if loss is hypotenuse else "as at 0") in cut.reason
    assert "not finite, along" in repr(explained)
    line = inspect.getsourcelines(masked_log)[1] + 2
    text = f"0, since torch.where (test_bad_gradients_of_torch.py, line {line}) leaves these elements out, but 0 times infinity is NaN"
    assert (text in cut.reason) == (loss is masked_log)


def test_a_bad_gradient_is_not_laid_to_the_backward_pass_where_the_values_were_bad_before() -> None:
    w = nn.Parameter(torch.tensor([0.0, 1.0]))
    (cut, *_) = gc.explain_gradient(lambda: torch.sum(torch.log(w) * w), w).cuts
    assert cut.kind == "not finite"
    assert "gc.run" in cut.reason


class Rounded(torch.autograd.Function):  # type: ignore[misc]  # torch is not imported by name
    """Rounds, and forgets its gradient."""

    @staticmethod
    def forward(_ctx: Any, x: Any) -> Any:
        return (x * 4).round() / 4

    @staticmethod
    def backward(_ctx: Any, _gradient: Any) -> None:
        return None


class Scaled(torch.autograd.Function):  # type: ignore[misc]  # as above
    """Doubles, with a gradient."""

    @staticmethod
    def forward(_ctx: Any, x: Any) -> Any:
        return (x + 0) * 2

    @staticmethod
    def backward(_ctx: Any, gradient: Any) -> Any:
        return gradient * 2


def test_a_custom_function_without_a_gradient_is_named_with_the_line_of_its_backward() -> None:
    layer, x = nn.Linear(4, 2), torch.ones(3, 4)

    def loss() -> Any:
        return Rounded.apply(layer(x)).sum()

    loss().backward()
    assert layer.weight.grad is None
    explained = gc.explain_gradient(loss, layer.weight)
    assert explained.is_none
    (cut,) = explained.cuts
    assert cut.kind == "custom gradient"
    assert "Rounded" in cut.reason
    line = Rounded.backward.__code__.co_firstlineno
    assert f"test_bad_gradients_of_torch.py, line {line}" in cut.reason
    assert cut.source is not None
    graph = gc.from_source(Call(loss, (), {}, gradients=True))
    record = foreign_of(graph)
    assert record is not None
    (end,) = record.source.missing["layer.weight"]
    assert (end.kind, end.reason) == (cut.kind, cut.reason)


def test_a_custom_function_that_makes_a_gradient_zero_is_named() -> None:
    layer, x = nn.Linear(4, 2), torch.ones(3, 4)
    explained = gc.explain_gradient(lambda: Rounded.apply(Scaled.apply(layer(x))).sum(), layer.weight)
    assert explained.is_zero, "the backward of Scaled takes None as zeros"
    (cut,) = explained.cuts
    assert (cut.kind, "Rounded" in cut.reason) == ("custom gradient", True)


def test_a_custom_function_with_a_gradient_is_passed() -> None:
    layer, x = nn.Linear(4, 2), torch.ones(3, 4)

    def loss() -> Any:
        h = layer(x)
        return (Scaled.apply(h) + h).sum()

    explained = gc.explain_gradient(loss, layer.weight)
    assert (explained.gradient, explained.cuts, explained.path_count) == ("layer.weight.grad", (), 2)


def test_a_tensor_that_was_detached_before_a_custom_function_is_told_apart_from_it() -> None:
    layer, other, x = nn.Linear(4, 2), nn.Parameter(torch.ones(3, 2)), torch.ones(3, 4)

    def loss() -> Any:
        with torch.no_grad():
            h = layer(x)
        return Scaled.apply(h + other).sum()

    (cut,) = gc.explain_gradient(loss, layer.weight).cuts
    assert cut.kind == "no_grad"
    assert cut.source is not None
    assert cut.source.text == "h = layer(x)"
