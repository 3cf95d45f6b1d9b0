"""`%why grad` for PyTorch and JAX: gradients of an expression, or of a tensor that was computed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from IPython.core.error import UsageError

import graphcore as gc
from graphcore.api.gradients.of_jax.arrays import is_of_jax
from graphcore.errors import GraphError
from graphcore.frontends.frontend import Call
from graphcore.frontends.torch_call import uses_torch
from graphcore.frontends.torch_reader.objects import is_class
from kernelext.graph_sources import is_expression
from kernelext.traced_calls import Expression


def of_framework(text: str, variables: Mapping[str, Any]) -> Any:
    """The explanation of a gradient of PyTorch or JAX.

    An optimizer among the variables that does not change the tensor is named, unless another one does.

    Args:
        text: an expression or a variable, and the tensor, its expression or its name.
        variables: the user's variables.

    Returns:
        The explanation; None if the text is about something else.

    Raises:
        UsageError: what was asked cannot be explained.
    """
    left, _, right = text.rpartition(" ")
    tensor = _looked_up(right, variables)
    x = right.strip("\"'") if tensor is None else tensor
    y = _differentiated(left.strip(), x, variables)
    if y is None:
        return None
    try:
        return gc.explain_gradient(y, x, optimizer=_optimizer_of(x, variables))
    except GraphError as error:
        raise UsageError(f"%why grad: {error.message}") from error


def _differentiated(text: str, x: Any, variables: Mapping[str, Any]) -> Any:
    """The call or tensor of a framework that a text stands for, None for something else."""
    value = variables.get(text)
    if is_class(value, "Tensor", "torch"):
        return value
    if not is_expression(text):
        return None
    try:
        call = Expression(text).value(variables, gradients=True)
    except Exception as error:  # the user's own code may raise anything
        raise UsageError(f"%why grad: {text}: {type(error).__name__}: {error}") from error
    if not isinstance(call, Call):
        return call if is_class(call, "Tensor", "torch") else None
    return call if uses_torch(call) or is_of_jax(call, x) else None


def _looked_up(text: str, variables: Mapping[str, Any]) -> Any:
    """The tensor or array that an expression is, None if it is the name of one in a module."""
    try:
        value = Expression(text).value(variables) if is_expression(text) else variables.get(text)
    except Exception:  # noqa: BLE001 - a name such as `fc.weight` is no expression of variables
        return None
    return value if hasattr(value, "dtype") and hasattr(value, "shape") else None


def _optimizer_of(x: Any, variables: Mapping[str, Any]) -> Any:
    """The optimizer of PyTorch that holds a tensor, else the one made last, None if there is none."""
    optimizers = [value for name, value in variables.items() if not name.startswith("_") and is_class(value, "Optimizer", "torch.optim")]
    if not is_class(x, "Tensor", "torch") or not optimizers:
        return None
    holding = [one for one in optimizers if any(held is x for group in one.param_groups for held in group["params"])]
    return holding[-1] if holding else optimizers[-1]
