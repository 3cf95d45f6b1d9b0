"""Wrappers of functions and modules, which fix arguments, compile, or distribute work."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import FunctionType
from typing import Any, Final

_MAX_WRAPPERS: Final = 20


def without_wrappers(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """The function inside of its wrappers, which fix arguments, compile or distribute; and its arguments."""
    kwargs = dict(kwargs)
    for _ in range(_MAX_WRAPPERS):
        inner = inside(function)
        if inner is None:
            break
        if isinstance(function, partial):
            args, kwargs = (*function.args, *args), {**function.keywords, **kwargs}
        function = inner
    return function, args, kwargs


def inside(function: Any) -> Any:
    """The function or module that a wrapper calls; None if it is no wrapper."""
    if isinstance(function, partial):
        return function.func
    kind = type(function).__name__
    if kind == "OptimizedModule":
        return function._orig_mod
    if kind in {"DataParallel", "DistributedDataParallel"}:
        return function.module
    return getattr(function, "_torchdynamo_orig_callable", None) if isinstance(function, FunctionType) else None
