"""Edit distances of sequences."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.errors import InvalidArgumentError
from graphcore.inference import InferenceContext
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, KernelContext, op
from graphcore.opset.framework.kernels import ints, invalid

_INT64: Final = np.int64


def levenshtein(first: list[Any], second: list[Any]) -> int:
    """The least number of insertions, deletions and replacements between two sequences."""
    before = list(range(len(second) + 1))
    for i, a in enumerate(first, 1):
        now = [i]
        for j, b in enumerate(second, 1):
            now.append(min(before[j] + 1, now[j - 1] + 1, before[j - 1] + (a != b)))
        before = now
    return before[-1]


def _sequences(k: KernelContext, indices: Any, values: Any, shape: tuple[int, ...]) -> dict[tuple[int, ...], list[Any]]:
    """The sequences of a sparse tensor by their position: all dimensions but the last."""
    if indices.ndim != 2 or indices.shape[1] != len(shape) or indices.shape[0] != values.size:
        raise invalid(k, f"indices of shape {list(indices.shape)} do not fit {values.size} values of a tensor of shape {list(shape)}")
    sequences: dict[tuple[int, ...], list[Any]] = {}
    for place, value in zip(indices.tolist(), values.tolist(), strict=True):
        # The place within a sequence is not looked at, as in TensorFlow: programs give a last size of 1.
        if any(not 0 <= at < size for at, size in zip(place[:-1], shape[:-1], strict=True)):
            raise invalid(k, f"index {place} is out of bounds of shape {list(shape)}")
        sequences.setdefault(tuple(place[:-1]), []).append(value)
    return sequences


def _sparse(rows: list[list[int]], values: list[int], shape: list[int]) -> list[Any]:
    return [np.array(rows, _INT64), values, np.array(shape, _INT64)]


def _check_sparse(c: InferenceContext, first: int) -> None:
    """Check that indices, values and shape form a sparse tensor."""
    indices, values, shape = (c.with_rank(c.input(first + i), rank) for i, rank in enumerate((2, 1, 1)))
    for name, one, other in (("index count", c.dim(indices, 0), c.dim(values, 0)), ("index rank", c.dim(indices, 1), c.dim(shape, 0))):
        if -1 not in (c.value(one), c.value(other)) and c.value(one) != c.value(other):
            of = "number of values" if name == "index count" else "shape rank"
            raise InvalidArgumentError(f"The {name} ({c.value(one)}) and the {of} ({c.value(other)}) of a sparse tensor do not match.")


@op
class EditDistance:
    """The Levenshtein distances of the sequences along the last dimension of two sparse tensors.

    hypothesis_indices: [n, rank]
    hypothesis_values: [n]
    hypothesis_shape: [rank]
    truth_indices: [m, rank]
    truth_values: [m]
    truth_shape: [rank]
    output: the sizes of all dimensions but the last
    normalize: divide by the length of the truth; infinite if that is 0 and the hypothesis is not empty.
    """

    pure = True
    signature = (
        "EditDistance[normalize:bool = true, T:type](hypothesis_indices:int64, hypothesis_values:T, hypothesis_shape:int64, "
        "truth_indices:int64, truth_values:T, truth_shape:int64) -> (output:float)"
    )
    cost = "pairs"
    gradient = NO_GRADIENT
    examples = (
        Example(
            [
                *_sparse([[0, 0, 0], [1, 0, 0]], [1, 2], [2, 1, 1]),
                *_sparse([[0, 1, 0], [1, 0, 0], [1, 0, 1], [1, 1, 0]], [1, 2, 3, 1], [2, 2, 2]),
            ],
            outputs=[[[np.inf, 1.0], [0.5, 1.0]]],
        ),
        Example([*_sparse([[0, 0], [0, 1]], [4, 5], [1, 2]), *_sparse([[0, 0]], [5], [1, 1])], {"normalize": False}, outputs=[[1.0]]),
    )
    failures = (
        Example(
            [
                np.array([[0, 0, 0], [1, 0, 0]], np.int64),
                [1, 2],
                np.array([2, 1, 1], np.int64),
                np.full((4, 3), -1, np.int64),
                [1, 2, 3, 1],
                np.full((3,), 2, np.int64),
            ]
        ),
    )

    def shape(c: InferenceContext) -> None:
        _check_sparse(c, 0)
        _check_sparse(c, 3)
        sizes = [c.input_tensor(2), c.input_tensor(5)]
        if sizes[0] is None or sizes[1] is None:
            c.set_output(0, c.unknown_shape())
            return
        if sizes[0].size != sizes[1].size:
            lengths = f"{sizes[0].size} and {sizes[1].size}"
            raise InvalidArgumentError(f"hypothesis_shape and truth_shape must have one length, but have {lengths}.")
        c.set_output(0, c.make_shape([max(pair) for pair in zip(ints(sizes[0])[:-1], ints(sizes[1])[:-1], strict=True)]))

    def kernel(k: KernelContext) -> Kernel:
        xp, normalize = k.xp, k.attr("normalize")

        def distances(h_indices: Any, h_values: Any, h_shape: Any, t_indices: Any, t_values: Any, t_shape: Any) -> Any:
            sizes = ints(h_shape), ints(t_shape)
            if len(sizes[0]) != len(sizes[1]) or not sizes[0]:
                raise invalid(k, f"hypothesis_shape {list(sizes[0])} and truth_shape {list(sizes[1])} must have one length, at least 1")
            hypothesis, truth = _sequences(k, h_indices, h_values, sizes[0]), _sequences(k, t_indices, t_values, sizes[1])
            result = np.zeros([max(pair) for pair in zip(sizes[0][:-1], sizes[1][:-1], strict=True)], np.float32)
            for place in {*hypothesis, *truth}:
                mine, wanted = hypothesis.get(place, []), truth.get(place, [])
                distance: float = levenshtein(mine, wanted)
                if normalize:
                    distance = distance / len(wanted) if wanted else np.inf
                result[place] = distance
            return xp.asarray(result)

        return distances
