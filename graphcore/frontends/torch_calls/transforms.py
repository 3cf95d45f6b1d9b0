"""Tensors within the wrappers of `torch.func`: those of `vmap`, `grad` and others."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Any

_functorch: Any = import_module("torch._C._functorch")
_interpreters: Any = import_module("torch._functorch.pyfunctorch")


def wrapped_in(tensor: Any) -> list[Any]:
    """The tensors within a wrapper, the innermost last; none for a plain tensor."""
    inner: list[Any] = []
    while _functorch.is_functorch_wrapped_tensor(tensor):
        tensor = _functorch.get_unwrapped(tensor)
        inner.append(tensor)
    return inner


def innermost(tensor: Any) -> Any:
    """The tensor within all wrappers, with the elements of all examples and autograd's record."""
    return [tensor, *wrapped_in(tensor)][-1]


def outside_of_transforms() -> AbstractContextManager[object]:
    """A block in which no transform works on new tensors."""
    is_within = _functorch.peek_interpreter_stack() is not None
    block: AbstractContextManager[object] = _interpreters.temporarily_clear_interpreter_stack() if is_within else nullcontext()
    return block
