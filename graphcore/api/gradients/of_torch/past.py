"""The gradient of a tensor of PyTorch that was computed before, by the record that it has."""

from __future__ import annotations

from typing import Any, Final

from graphcore.api.gradients.explanation import GradientCut, GradientExplanation
from graphcore.errors import InvalidArgumentError
from graphcore.frontends.torch_calls.autograd import is_end
from graphcore.frontends.torch_calls.backward import consumers_first
from graphcore.frontends.torch_calls.recording import torch
from graphcore.frontends.torch_reader.objects import sizes_of, word_of

_LINES: Final = "A function gives the lines: gc.explain_gradient(lambda: loss_fn(model(x), y), parameter)."
_MOST: Final = 8


def explain_past(y: Any, x: Any) -> GradientExplanation:
    """Explain the gradient of a computed tensor by another one, from autograd's record alone.

    Raises:
        InvalidArgumentError: `x` is no tensor: a record has no names.
    """
    if not isinstance(x, torch.Tensor):
        raise InvalidArgumentError(
            f"explain_gradient requires a tensor for x where y is a tensor, got {type(x).__name__}: the record of a computed tensor "
            "has no names; a function in place of y has"
        )
    order = [] if y.grad_fn is None else consumers_first([y.grad_fn])
    names = _shown(y), _shown(x)
    end = x.grad_fn if x.grad_fn is not None else next((one for one in order if is_end(one) and one.variable is x), None)
    if end is None or end not in order:
        return GradientExplanation(y=names[0], x=names[1], cuts=(_missing(y, x),), notes=(*_reached(order), _LINES))
    path = _path(y.grad_fn, end)
    retained = x.is_leaf or x.retains_grad
    text = f"is no leaf but the result of {type(end).__name__}: its .grad stays None without x.retain_grad()"
    return GradientExplanation(
        y=names[0],
        x=names[1],
        gradient="grad" if retained else None,
        kind=f"{word_of(x.dtype)} {list(sizes_of(x.shape) or ())}",
        built=True,
        path_count=_count(order, end),
        paths=(tuple([type(function).__name__ for function in reversed(path)]),),
        cuts=() if retained else (GradientCut(kind="not a leaf", node="", op="", reason=f"x {text}"),),
        notes=(*_hooks(x), *_remarks(x), _LINES),
    )


def _missing(y: Any, x: Any) -> GradientCut:
    kind, reason = "no path", "the record of y does not reach x: a call on the way ended it, or y was computed without x"
    if not x.requires_grad:
        kind, reason = "requires_grad", "x has requires_grad=False, so autograd does not follow it"
    elif y.grad_fn is None:
        kind, reason = (
            "no record",
            "y has no record (requires_grad is False): it was computed under no_grad, from detached tensors, or from none",
        )
    return GradientCut(kind=kind, node="", op="", reason=reason)


def _reached(order: list[Any]) -> list[str]:
    leaves = [function.variable for function in order if is_end(function)]
    if not leaves:
        return []
    shown = ", ".join([f"{type(leaf).__name__} {list(leaf.shape)}" for leaf in leaves[:_MOST]])
    more = f" and {len(leaves) - _MOST} more" if len(leaves) > _MOST else ""
    return [f"The record reaches {len(leaves)} leaf tensors: {shown}{more}."]


def _remarks(x: Any) -> list[str]:
    if x.is_leaf and x.grad is None:
        return ["Its .grad is None so far: no backward() has run since it was made or set to None."]
    return []


def _hooks(x: Any) -> list[str]:
    number = len(x._backward_hooks or ())
    return [f"It has {number} {'hook' if number == 1 else 'hooks'}, which may change the gradient."] if number else []


def _path(start: Any, end: Any) -> list[Any]:
    """A shortest way between two functions."""
    before: dict[Any, Any] = {start: None}
    waiting = [start]
    for function in waiting:
        if end in before:
            break
        for following, _ in function.next_functions:
            if following is not None and following not in before:
                before[following] = function
                waiting.append(following)
    path = [end]
    while before[path[-1]] is not None:
        path.append(before[path[-1]])
    return path[::-1]


def _count(order: list[Any], end: Any) -> int:
    counts = {end: 1}
    for function in reversed(order):
        if function is not end:
            counts[function] = sum(counts.get(following, 0) for following, _ in function.next_functions)
    return counts[order[0]]


def _shown(tensor: Any) -> str:
    return f"{type(tensor).__name__} {word_of(tensor.dtype)} {list(sizes_of(tensor.shape) or ())}"
