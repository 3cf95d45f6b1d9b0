"""Copies of modules whose tensors have types and shapes only."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

_MAX_DEPTH = 6


class FakeCopies:
    """Makes copies for one trace.

    The originals are read only: parameters, buffers, attributes, hooks and modes stay as they are.

    Args:
        torch: the library.
        mode: the mode of fake tensors.

    Attributes:
        original: the tensor behind each fake one, by the id of the fake one.
    """

    def __init__(self, torch: Any, mode: Any) -> None:
        self._torch = torch
        self._mode = mode
        self._fakes: dict[int, Any] = {}
        self.original: dict[int, Any] = {}

    def of_tensor(self, tensor: Any) -> Any:
        """The fake tensor that stands for a tensor."""
        found = self._fakes.get(id(tensor))
        if found is None:
            found = self._fakes[id(tensor)] = self._mode.from_tensor(tensor)
            self.original[id(found)] = tensor
        return found

    def of_arguments(self, value: Any) -> Any:
        """Arguments with fake tensors in place of tensors."""
        if isinstance(value, self._torch.Tensor):
            return self.of_tensor(value)
        if type(value) in {list, tuple, set}:
            return type(value)([self.of_arguments(item) for item in value])
        if type(value) is dict:
            return {key: self.of_arguments(item) for key, item in value.items()}
        return value

    def of_module(self, module: Any) -> Any:
        """The copy of a module. Its hooks are those of PyTorch alone, such as the ones that normalise weights."""
        memo: dict[int, Any] = {}
        for part in module.modules():
            for tensor in _tensors(vars(part), self._torch.Tensor, 0):
                memo[id(tensor)] = self.of_tensor(tensor)
        copied = copy.deepcopy(module, memo)
        for part in copied.modules():
            for hooks in (part._forward_hooks, part._forward_pre_hooks, part._backward_hooks):
                for key in [key for key, hook in hooks.items() if not _is_own(hook)]:
                    del hooks[key]
        return copied


def _tensors(value: Any, kind: type, depth: int) -> Iterator[Any]:
    if isinstance(value, kind):
        yield value
    elif depth < _MAX_DEPTH and isinstance(value, Mapping):
        for item in value.values():
            yield from _tensors(item, kind, depth + 1)
    elif depth < _MAX_DEPTH and isinstance(value, list | tuple | set):
        for item in value:
            yield from _tensors(item, kind, depth + 1)


def _is_own(hook: Any) -> bool:
    module = getattr(hook, "__module__", None) or type(hook).__module__
    return str(module).partition(".")[0] == "torch"
