"""Random programs of given tensors, as plain data, built alike by graphcore and TensorFlow.

A program is (leaves, steps). A leaf is the shape of a tensor of doubles. A step is (operation, indices of its inputs, settings): tensors
are counted from the leaves on; one more, of two row indices, is given besides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Step = tuple[str, tuple[int, ...], Any]
Program = tuple[tuple[tuple[int, ...], ...], tuple[Step, ...]]


def operations(api: Any) -> Mapping[str, Callable[..., Any]]:
    """The operations of TensorFlow 1 in `api`; each takes tensors, row numbers and settings."""

    def positive(x: Any) -> Any:
        return api.square(x) + 0.5

    return {
        "tanh": lambda x, **_: api.tanh(x),
        "sigmoid": lambda x, **_: api.sigmoid(x),
        "square": lambda x, **_: api.square(x),
        "cubed": lambda x, **_: x * x * x,
        "power": lambda x, **_: positive(x) ** 1.5,
        "log": lambda x, **_: api.log(positive(x)),
        "inverse": lambda x, **_: 1.0 / positive(x),
        "sign": lambda x, **_: api.sign(x) * 2.0,
        "stopped": lambda x, **_: api.stop_gradient(x) + 1.0,
        "add": lambda x, y, **_: x + y,
        "subtract": lambda x, y, **_: x - y,
        "multiply": lambda x, y, **_: x * y,
        "divide": lambda x, y, **_: x / positive(y),
        "raise": lambda x, y, **_: positive(x) ** y,
        "maximum": lambda x, y, **_: api.maximum(x, y),
        "where": lambda x, y, **_: api.where(x > y, x * y, y),
        "matmul": lambda x, y, **_: api.matmul(x, y),
        "sum": lambda x, settings, **_: api.reduce_sum(x, axis=settings[0], keepdims=settings[1]),
        "mean": lambda x, settings, **_: api.reduce_mean(x, axis=settings[0], keepdims=settings[1]),
        "product": lambda x, settings, **_: api.reduce_prod(x, axis=settings[0], keepdims=settings[1]),
        "largest": lambda x, settings, **_: api.reduce_max(x, axis=settings[0], keepdims=settings[1]),
        "transpose": lambda x, **_: api.transpose(x, [1, 0]),
        "reshape": lambda x, settings, **_: api.reshape(x, settings),
        "concat": lambda x, y, **_: api.concat([x, y], 0),
        "stack": lambda x, y, **_: api.stack([x, y], 1),
        "rows": lambda x, rows, **_: api.gather(x, rows),
        "pad": lambda x, settings, **_: api.pad(x, settings),
        "tile": lambda x, settings, **_: api.tile(x, settings),
        "first": lambda x, **_: x[:1],
        "branch": lambda x, y, **_: api.cond(api.reduce_sum(x) > 0.0, lambda: x * y * y, lambda: x + y),
        "loop": lambda x, y, **_: api.while_loop(lambda i, _: i < 2, lambda i, v: (i + 1, api.tanh(v) * y * y), (0, x))[1],
    }


def build(api: Any, program: Program, leaves: Sequence[Any], rows: Any) -> Any:
    """The last tensor of a program with `leaves`, and `rows` as row indices."""
    known = operations(api)
    tensors = list(leaves)
    for name, taken, settings in program[1]:
        tensors.append(known[name](*[tensors[number] for number in taken], rows=rows, settings=settings))
    return tensors[-1]


def differentiate(api: Any, y: Any, leaves: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The gradients of `y` by the leaves, and those of the sum of these."""
    first = list(api.gradients(y, list(leaves)))
    known = [gradient for gradient in first if gradient is not None]
    return first, list(api.gradients(known, list(leaves))) if known else [None] * len(leaves)
