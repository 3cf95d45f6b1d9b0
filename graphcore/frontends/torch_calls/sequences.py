"""Results of operations on sequences and parts, whose types PyTorch's fake tensors get wrong."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

torch: Any = import_module("torch")


def _packed(x: Any, lengths: Any, batch_first: bool) -> tuple[Any, Any]:
    """Packed sequences: all steps of all of them in one axis, and the number of sequences at each step."""
    steps = x.shape[1 if batch_first else 0]
    total = lengths.sum().item()
    torch._check(total >= 0)
    return x.new_empty((total, *x.shape[2:])), torch.empty(steps, dtype=torch.int64)


def _padded(x: Any, batch_sizes: Any, batch_first: bool, _padding: float, total: int) -> tuple[Any, Any]:
    """Sequences that are padded to one length, and their lengths."""
    steps, batch = max(total, batch_sizes.shape[0]), batch_sizes[0].item()
    sizes = (batch, steps) if batch_first else (steps, batch)
    return x.new_empty((*sizes, *x.shape[1:])), torch.empty(batch, dtype=torch.int64)


def _recurrent(x: Any, batch_sizes: Any, state: Any, *rest: Any) -> Any:
    """The outputs and last states of layers on packed sequences; NotImplemented for other sequences."""
    layers = rest[2] if len(rest) > 2 else None
    if not isinstance(batch_sizes, torch.Tensor) or isinstance(state, bool) or not isinstance(layers, int):
        return NotImplemented
    states = [state] if isinstance(state, torch.Tensor) else list(state)
    if not isinstance(rest[0], list | tuple):
        return NotImplemented
    directions = states[0].shape[0] // layers
    return x.new_empty((x.shape[0], directions * states[0].shape[-1])), *[torch.empty_like(part) for part in states]


def _parts(x: Any, dim: int = 0) -> Any:
    """The parts of a tensor along an axis whose size depends on values; NotImplemented for others."""
    size = x.shape[dim]
    return NotImplemented if isinstance(size, int) else tuple([x.select(dim, place) for place in range(int(size))])


SHAPED: Final[dict[str, Any]] = {
    "_pack_padded_sequence": _packed,
    "_pad_packed_sequence": _padded,
    "unbind": _parts,
    **dict.fromkeys(("lstm", "gru", "rnn_tanh", "rnn_relu"), _recurrent),
}
