"""Optimizers of PyTorch whose steps leave a tensor as it is."""

from __future__ import annotations

from typing import Any

from graphcore.errors import InvalidArgumentError
from graphcore.frontends.torch_calls.recording import torch
from graphcore.frontends.torch_reader.objects import sizes_of, word_of


def of_optimizer(optimizer: Any, x: Any) -> list[str]:
    """Sentences on the steps of an optimizer that leave a tensor as it is.

    Args:
        optimizer: the optimizer, None for none.
        x: the tensor.

    Raises:
        InvalidArgumentError: it is no optimizer of PyTorch.
    """
    if optimizer is None:
        return []
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise InvalidArgumentError(f"explain_gradient requires an optimizer of PyTorch, got {type(optimizer).__name__}")
    title = f"The optimizer ({type(optimizer).__name__})"
    groups = [group for group in optimizer.param_groups if any(held is x for held in group["params"])]
    if not groups:
        held = [tensor for group in optimizer.param_groups for tensor in group["params"]]
        alike = sum(tensor.shape == x.shape and tensor.dtype == x.dtype for tensor in held)
        text = f"{title} holds {len(held)} {'tensor' if len(held) == 1 else 'tensors'}, and not this one, so that step() leaves it as it is"
        kind = f"{word_of(x.dtype)} {list(sizes_of(x.shape) or ())}"
        others = f": it holds {alike} others of {kind}. Was the model made, loaded or replaced after the optimizer?" if alike else "."
        return [f"{text}{others}"]
    if all(float(group.get("lr", 1.0)) == 0 for group in groups):
        return [f"{title} has the learning rate 0 for it, so that step() leaves it as it is."]
    return []
