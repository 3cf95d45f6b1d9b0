"""Compilations of functions of `jax.jit` and `torch.compile` in open pictures, and what differed."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from typing import Any, Final

from graphcore.frontends.frontend import Call
from graphcore.frontends.torch_reader.objects import is_class
from graphcore.source import SourceLocation

_MANY: Final = 2
"""The compilations since the last remark that are worth another one: the first one is of the call in the picture."""
_MOST_SHOWN: Final = 5
_PLAIN: Final = (bool, int, float, str, bytes, type(None))


class Compilations:
    """Follows the number of compilations of the function of one call."""

    def __init__(self) -> None:
        self._counted: int | None = None
        self._seen: dict[str, list[str]] = {}
        self._latest = 0

    def news(self, call: Call) -> str:
        """A sentence if the function has been compiled several times since the last one; "" otherwise."""
        return self._of_jax(call) or self._of_torch(call)

    def _of_torch(self, call: Call) -> str:
        utils: Any = sys.modules.get("torch._dynamo.utils")
        if not hasattr(utils, "get_compilation_metrics"):
            return ""
        codes = set(_codes_of(call.function))
        again = [
            one
            for one in utils.get_compilation_metrics()
            if one.recompile_reason and (one.co_filename, one.co_firstlineno) in codes and (one.start_time_us or 0) > self._latest
        ]
        if len(again) < _MANY:
            return ""
        last = again[-1]
        self._latest = last.start_time_us or 0
        reason = str(last.recompile_reason).partition("\n")[0].partition("  #")[0].partition(": ")[2].strip()
        place = SourceLocation(last.co_filename, last.co_firstlineno).where
        return (
            f"`{last.co_name}` ({place}) has been compiled {len(again)} times more, the last time since {reason}: torch.compile compiles again where "
            "a shape or a Python value is another one. Pass what changes as a tensor, pad it to one shape, or compile with `dynamic=True`."
        )

    def _of_jax(self, call: Call) -> str:
        count = _count(call.function)
        if count is None:
            return ""
        for name, text in _arguments(call).items():
            texts = self._seen.setdefault(name, [])
            if text not in texts:
                texts.append(text)
        previous, self._counted = self._counted, count if self._counted is None else self._counted
        if previous is None or count - previous < _MANY:
            return ""
        self._counted = count
        name = getattr(call.function, "__name__", "the function")
        others = [f"{name} was {', '.join(texts[-_MOST_SHOWN:])}" for name, texts in self._seen.items() if len(texts) > 1]
        why = f" (in this picture {'; '.join(others)})" if others else ""
        return (
            f"`{name}` has been compiled {count} times{why}: jax.jit compiles again for each new shape, type, and value of a static argument. "
            "Pass what changes as an array, or pad it to one shape."
        )


def _codes_of(function: Any) -> Iterator[tuple[str, int]]:
    """The files and first lines of the code of a function of PyTorch, or of all modules in a module."""
    inner = getattr(function, "_torchdynamo_orig_callable", function)
    modules = inner.modules() if is_class(inner, "Module", "torch.nn") else ()
    for one in (inner, *[type(module).forward for module in modules]):
        code = getattr(getattr(one, "__func__", one), "__code__", None)
        if code is not None:
            yield code.co_filename, code.co_firstlineno


def _count(function: Any) -> int | None:
    """The number of compilations of a function of `jax.jit`; None for other functions."""
    size = getattr(function, "_cache_size", None)
    if "jax" not in sys.modules or not callable(size):
        return None
    try:
        return int(size())
    except Exception:  # noqa: BLE001 - the count is no part of JAX's interface, and may go away
        return None


def _arguments(call: Call) -> dict[str, str]:
    """The arguments of a call in words, by their names."""
    try:
        arguments: dict[str, Any] = inspect.signature(call.function).bind(*call.args, **call.kwargs).arguments
    except (TypeError, ValueError):
        arguments = {f"argument {place}": value for place, value in enumerate(call.args)} | dict(call.kwargs)
    return {name: _described(value) for name, value in arguments.items()}


def _described(value: Any) -> str:
    """A type with its shape for arrays, a plain value itself."""
    if isinstance(value, _PLAIN):
        return repr(value)[:40]
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{value.dtype}[{','.join(map(str, value.shape))}]"
    leaves = sys.modules["jax"].tree_util.tree_leaves(value)
    if not leaves or leaves == [value]:
        return type(value).__name__
    texts = [_described(leaf) for leaf in leaves[:4]]
    return f"{type(value).__name__} of {', '.join(texts)}{', …' if len(leaves) > 4 else ''}"
