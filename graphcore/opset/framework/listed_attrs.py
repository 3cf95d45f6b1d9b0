"""The items of list attrs."""

from __future__ import annotations

from typing import TypeVar

from graphcore.inference import InferenceContext
from graphcore.kernel_context import KernelContext

Item = TypeVar("Item")


def listed(k: KernelContext | InferenceContext, name: str, kind: type[Item]) -> list[Item]:
    """The items of list attr `name` that are of a kind; all of them, as attrs are checked."""
    value = k.attr(name)
    return [item for item in value if isinstance(item, kind)] if isinstance(value, tuple) else []
