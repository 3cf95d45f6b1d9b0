"""`tf.einsum` of any number of operands, as products of two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor
from graphcore.tf1.calls import apply_one
from graphcore.tf1.framework import convert_to_tensor, name_scope

_ELLIPSIS: Final = "..."


def einsum(equation: str, *inputs: Any, name: str | None = None) -> Tensor:
    """Products summed as the equation says: `einsum("ij,jk->ik", a, b)` is a matrix product.

    Without `->`, the result has the labels that occur once, in the order of the alphabet. More than two operands are multiplied two by two,
    in an order that keeps the products small where all shapes are known, otherwise from the left.

    Args:
        equation: the labels of each operand's dimensions; `...` stands for any number of them.
        inputs: the tensors.
        name: the name of the node, or of the scope of several nodes.

    Raises:
        InvalidArgumentError: the equation does not fit the operands.
    """
    spelled = equation.replace(" ", "")
    left, arrow, output = spelled.partition("->")
    if not arrow:
        output = _implied(left)
    labels = left.split(",")
    if len(inputs) <= 2 or len(labels) != len(inputs):
        return apply_one("Einsum", [list(inputs)], name or "einsum", {"equation": f"{left}->{output}"})
    with name_scope(name or "einsum"):
        operands = [(convert_to_tensor(item), part) for item, part in zip(inputs, labels, strict=True)]
        for first, second in _order(left, output, [tensor for tensor, _ in operands]):
            pair = [operands.pop(place) for place in sorted((first, second), reverse=True)][::-1]
            kept = output if not operands else _kept(pair, [*[part for _, part in operands], output])
            text = f"{pair[0][1]},{pair[1][1]}->{kept}"
            operands.append((apply_one("Einsum", [[tensor for tensor, _ in pair]], None, {"equation": text}), kept))
        return operands[0][0]


def _implied(left: str) -> str:
    """The labels of the result of an equation without `->`."""
    names = left.replace(_ELLIPSIS, "").replace(",", "")
    once = sorted(label for label in set(names) if names.count(label) == 1)
    return (_ELLIPSIS if _ELLIPSIS in left else "") + "".join(once)


def _kept(pair: Sequence[tuple[Tensor, str]], later: Sequence[str]) -> str:
    """The labels of a product that are needed later."""
    both = "".join([part for _, part in pair])
    needed = "".join(later).replace(_ELLIPSIS, "")
    named = dict.fromkeys(both.replace(_ELLIPSIS, ""))
    return (_ELLIPSIS if _ELLIPSIS in both else "") + "".join([label for label in named if label in needed])


def _order(left: str, output: str, tensors: Sequence[Tensor]) -> list[tuple[int, int]]:
    """The operands to multiply in each step, by their places; a product follows those that remain."""
    shapes = [tensor.shape for tensor in tensors]
    from_the_left = [(0, 1), *[(count - 1, 0) for count in range(len(tensors) - 1, 1, -1)]]
    if _ELLIPSIS in left or not all(shape.is_fully_defined for shape in shapes):
        return from_the_left
    stand_ins = [np.broadcast_to(np.int8(0), [size or 0 for size in shape.as_list()]) for shape in shapes]
    try:
        path = np.einsum_path(f"{left}->{output}", *stand_ins, optimize=("greedy", 2**62))[0][1:]
    except ValueError as error:
        raise InvalidArgumentError(f"einsum: the equation '{left}->{output}' does not fit the operands: {error}") from None
    pairs = [tuple(step) for step in path]
    return pairs if all(len(pair) == 2 for pair in pairs) else from_the_left
