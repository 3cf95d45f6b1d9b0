"""Backward passes that a call runs itself: by `loss.backward()`, `torch.autograd.backward` or `grad`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from typing import Any, Final

torch: Any = import_module("torch")
_NAMES: Final = frozenset({"backward", "grad"})
_MODULES: Final = frozenset({"torch._tensor", "torch.autograd"})


@dataclass(frozen=True, slots=True)
class Pass:
    """A backward pass.

    Attributes:
        roots: the tensors that are differentiated.
        seeds: the gradient that each of them begins with, None for ones.
        inputs: the tensors whose gradients are asked for, None for all leaf tensors.
        gives: True iff the gradients are the result, False if they are added to `.grad`.
    """

    roots: list[Any]
    seeds: list[Any]
    inputs: list[Any] | None
    gives: bool


def pass_of(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Pass | None:
    """The backward pass that a function runs, None for another function, or for one that will fail."""
    if getattr(func, "__name__", "") not in _NAMES or getattr(func, "__module__", "") not in _MODULES:
        return None
    try:
        arguments = inspect.signature(func).bind(*args, **kwargs).arguments
    except TypeError:
        return None
    gives = func is torch.autograd.grad
    results, *_ = arguments.values()
    seeds = next((arguments[name] for name in ("gradient", "grad_tensors", "grad_outputs") if name in arguments), None)
    roots = [results] if isinstance(results, torch.Tensor) else list(results)
    begun = [seeds] if seeds is None or isinstance(seeds, torch.Tensor) else list(seeds)
    inputs = _listed(arguments.get("inputs"))
    if arguments.get("is_grads_batched") or not all(isinstance(tensor, torch.Tensor) for tensor in (*roots, *(inputs or ()))):
        return None
    pairs = [
        (root, seed) for root, seed in zip(roots, begun * len(roots) if seeds is None else begun, strict=False) if root.grad_fn is not None
    ]
    return Pass([root for root, _ in pairs], [seed for _, seed in pairs], inputs, gives) if pairs else None


def leaves_of(ran: Pass) -> list[Any]:
    """The leaf tensors to whose `.grad` a pass adds."""
    if ran.inputs is not None:
        return ran.inputs
    leaves: dict[int, Any] = {}
    seen: set[Any] = set()
    pending = [root.grad_fn for root in ran.roots]
    while pending:
        function = pending.pop()
        if function is None or function in seen:
            continue
        seen.add(function)
        if hasattr(function, "variable"):
            leaves[id(function.variable)] = function.variable
        pending += [following for following, _ in function.next_functions]
    return list(leaves.values())


def _listed(value: Any) -> list[Any] | None:
    if value is None:
        return None
    return [value] if isinstance(value, torch.Tensor) else list(value)


@contextmanager
def seen_passes() -> Iterator[None]:
    """Let modes see the calls of `torch.autograd.backward`, as they see those of other functions."""
    original: Callable[..., Any] = torch.autograd.backward

    @wraps(original)
    def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        if not torch._C._is_torch_function_mode_enabled():
            return original(tensors, *args, **kwargs)
        taken: Sequence[Any] = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
        return torch.overrides.handle_torch_function(original, taken, taken, *args, **kwargs)

    torch.autograd.backward = backward
    try:
        yield
    finally:
        torch.autograd.backward = original
