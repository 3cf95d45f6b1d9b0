"""Functions of backward passes that are recorded as they run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from graphcore.frontends.torch_calls.autograd import is_end
from graphcore.frontends.torch_calls.recording import torch

if TYPE_CHECKING:
    from graphcore.frontends.torch_calls.backward import Backward
    from graphcore.runtime.runners import RunRecord


def watch(backward: Backward, record: RunRecord, seeds: Sequence[Any] = ()) -> list[Any]:
    """Record the functions of a backward pass as they run, from ones or other seeds on. Returns the hooks that do it."""
    for (tensor, name), seed in zip_longest(backward.seeds, seeds):
        record.give(name, [torch.ones_like(tensor) if seed is None else seed])
    handles: list[Any] = []
    for function, name in backward.node_of.items():
        if not is_end(function):
            handles.append(function.register_prehook(partial(_begin, backward, record, function, name)))
            handles.append(function.register_hook(partial(_end, record, name)))
    return handles


def give_gradients(backward: Backward, gradients: Any, record: RunRecord) -> None:
    """Record the gradients that arrive at leaf tensors."""
    ends = [function for function in backward.order if is_end(function)]
    for function, gradient in zip(ends, gradients, strict=False):
        if (function, 0) in backward.parts:
            record.give(backward.arriving[function, 0][0], [gradient])
        record.give(backward.node_of[function], [gradient])


def _begin(backward: Backward, record: RunRecord, function: Any, name: str, arrived: Any) -> None:
    for number, gradient in enumerate(arrived):
        if (function, number) in backward.parts:
            record.give(backward.arriving[function, number][0], [gradient])
    record.begin(name)


def _end(record: RunRecord, name: str, passed: Any, _arrived: Any) -> None:
    record.end(name, passed)
