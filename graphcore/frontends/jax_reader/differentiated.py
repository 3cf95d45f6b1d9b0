"""Functions with their gradients as further results."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any


def with_gradients(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that gives the results of another one, and the gradients of their sum.

    The gradients are those by its floating arguments.
    """
    jax: Any = sys.modules["jax"]
    tree = jax.tree_util

    @functools.wraps(function)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        arguments = (args, kwargs)
        floating = tree.tree_map(lambda leaf: leaf if is_floating(leaf) else None, arguments)

        def of_floating(floating: Any) -> Any:
            whole = tree.tree_map(lambda leaf, own: own if leaf is None else leaf, floating, arguments, is_leaf=lambda leaf: leaf is None)
            result = function(*whole[0], **whole[1])
            return [leaf for leaf in tree.tree_leaves(result) if is_floating(leaf)], result

        values, backward, result = jax.vjp(of_floating, floating, has_aux=True)
        (gradients,) = backward([jax.numpy.ones_like(value) for value in values])
        return result, gradients

    return differentiated


def is_floating(value: Any) -> bool:
    """True for a number or array that can have a gradient."""
    jax: Any = sys.modules["jax"]
    dtype = getattr(value, "dtype", None)
    return isinstance(value, float | complex) if dtype is None else bool(jax.numpy.issubdtype(dtype, jax.numpy.inexact))
