"""The call of PyTorch at which a gradient becomes NaN or infinite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from graphcore.api.gradients.of_torch.forward import Forward
from graphcore.frontends.foreign import GradientEnd
from graphcore.frontends.torch_calls.autograd import CallFacts
from graphcore.frontends.torch_calls.recording import tensors_of, torch

_CHOOSING: Final = frozenset(
    {"where", "masked_fill", "masked_fill_", "__getitem__", "getitem", "masked_select", "mul", "__mul__", "nan_to_num"}
)


def is_finite(gradient: Any) -> bool:
    """True for no gradient, and for one without NaNs and infinities."""
    return gradient is None or bool(torch.isfinite(gradient).all())


def not_finite(forward: Forward, name: str, passed: Any, arrived: Sequence[Any], way: tuple[str, ...]) -> GradientEnd:
    """The end at a call whose backward gets finite gradients and gives one that is not.

    Args:
        forward: the calls of the computation.
        name: the call.
        passed: the gradient that is not finite.
        arrived: the gradients that its function has got.
        way: the calls from the tensor to the result.
    """
    facts = forward.facts(name)
    return GradientEnd(
        "not finite", name, "is no call that is known" if facts is None else _reason(forward, facts, passed, arrived, way), way
    )


def _reason(forward: Forward, facts: CallFacts, passed: Any, arrived: Sequence[Any], way: tuple[str, ...]) -> str:
    taken = [tensor for tensor in tensors_of([*facts.args, *facts.kwargs.values()]) if tensor.is_floating_point() or tensor.is_complex()]
    if not all(map(is_finite, taken)):
        return "takes values that are not finite, and so is its derivative: gc.run names the first of them"
    bad = ~torch.isfinite(passed)
    values = next((tensor for tensor in taken if tensor.requires_grad and tensor.shape == passed.shape), None)
    example = "" if values is None else f", as at {values[bad][0].item():.3g}"
    text = f"has a derivative that is not finite for {int(bad.sum())} of {bad.numel()} values{example}"
    asked = next((gradient for gradient in arrived if gradient is not None and gradient.shape == passed.shape), None)
    if asked is None or bool(asked[bad].any()):
        return text if all(map(is_finite, facts.outputs)) else f"{text}; nor are the values that it gives: gc.run names the first of them"
    chooser = _chooser(forward, way)
    return f"{text}; the gradient that arrives there is 0{chooser}, but 0 times infinity is NaN" + (f": {_REPAIR}" if chooser else "")


def _chooser(forward: Forward, way: tuple[str, ...]) -> str:
    """The first call after the one at the start of a way that may leave elements out, in words."""
    for name in way[1:]:
        facts = forward.facts(name)
        if facts is not None and facts.function in _CHOOSING:
            source = forward.source(name)
            return f", since {forward.op(name)}" + ("" if source is None else f" ({source.where})") + " leaves these elements out"
    return ""


_REPAIR: Final = "replace such values before, as in `torch.log(torch.where(x > 0, x, 1.0))`"
