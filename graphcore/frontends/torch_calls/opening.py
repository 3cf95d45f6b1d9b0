"""Functions of PyTorch that are written in Python, opened into the operations that they call."""

from __future__ import annotations

import re
from types import FunctionType
from typing import Any, Final

_OPENED: Final = frozenset({"torch.nn.functional"})
_CLOSED: Final = re.compile(r"_loss$|^binary_cross_entropy|^kl_div$|^cross_entropy$|_with_indices$|^_")
"""Losses stay whole, since that is how they are known."""
_CHECKS: Final[tuple[str, ...]] = ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")
_bodies: Final[dict[Any, FunctionType | None]] = {}


def body_of(func: Any) -> FunctionType | None:
    """The function as one of which a mode of PyTorch sees all that it calls; None for others.

    PyTorch asks at the beginning of such a function for modes, and would call the mode again with the same function.
    """
    if not isinstance(func, FunctionType) or func.__module__ not in _OPENED or _CLOSED.search(func.__name__):
        return None
    if func not in _bodies:
        asks = {name: _never for name in _CHECKS if name in func.__code__.co_names and name in func.__globals__}
        _bodies[func] = _without(func, asks) if asks else None
    return _bodies[func]


def _without(func: FunctionType, asks: dict[str, Any]) -> FunctionType:
    made = FunctionType(func.__code__, {**func.__globals__, **asks}, func.__name__, func.__defaults__, func.__closure__)
    made.__kwdefaults__ = func.__kwdefaults__
    return made


def _never(*_tensors: Any) -> bool:
    return False
