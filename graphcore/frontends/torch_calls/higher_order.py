"""Conditions and loops of PyTorch that run branch by branch and turn by turn, with their operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from graphcore.frontends.torch_calls.recording import tensors_of, torch

_overrides: Any = import_module("torch.overrides")
_operators: Any = import_module("torch._ops")
_MAX_TURNS: Final = 100
"""The most turns of a loop whose operations are recorded; the others run as one operation."""


def turns_of(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Callable[..., Any] | None:
    """A function that calls the bodies of `torch.cond` or `torch.while_loop` as these do.

    None for other functions.
    """
    if not isinstance(func, _operators.HigherOrderOperator) or len(args) != 4 or kwargs:
        return None
    return {"cond": _condition, "while_loop": _loop}.get(func.__name__)


def _condition(pred: Any, true_fn: Any, false_fn: Any, operands: Sequence[Any]) -> Any:
    return true_fn(*operands) if pred else false_fn(*operands)


def _loop(cond_fn: Any, body_fn: Any, carried: Sequence[Any], additional: Sequence[Any]) -> Any:
    turns = 0
    while cond_fn(*carried, *additional):
        if turns == _MAX_TURNS:
            return turns_left(cond_fn, body_fn, carried, additional)
        carried = body_fn(*carried, *additional)
        turns += 1
    return tuple([value.clone() if isinstance(value, torch.Tensor) else value for value in carried]) if not turns else carried


def turns_left(cond_fn: Any, body_fn: Any, carried: Sequence[Any], additional: Sequence[Any]) -> Any:
    """The rest of a loop, as one function that modes see."""
    tensors = tensors_of([carried, additional])
    if _overrides._get_current_function_mode() is not None:
        return _overrides.handle_torch_function(turns_left, tensors, cond_fn, body_fn, carried, additional)
    while cond_fn(*carried, *additional):
        carried = body_fn(*carried, *additional)
    return carried
