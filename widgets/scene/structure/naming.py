"""Names of groups: from the names of their members, or else from their ops."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

_WORDS: Final = re.compile(r"[_.\-/]+")
_SHORT: Final = {
    "FusedBatchNormV3": "BatchNorm",
    "FusedBatchNorm": "BatchNorm",
    "DepthwiseConv2dNative": "DepthwiseConv",
    "BatchMatMulV2": "BatchMatMul",
    "ConcatV2": "Concat",
    "AddV2": "Add",
}
_PRODUCTS: Final = frozenset({"MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Einsum"})
_CONVOLUTIONS: Final = frozenset({"Conv2D", "Conv3D", "DepthwiseConv2dNative", "Conv2DBackpropInput"})
_TAILS: Final = frozenset({"block", "layer", "stage", "unit"})


def common_name(names: Sequence[str], within: Sequence[str]) -> str:
    """The words that all names begin with, "" if there are none.

    Args:
        within: the words that everything around begins with; they are left out.
    """
    words = common_words(names)
    if len(words) > len(within) or not words or words[-1] not in _TAILS:
        words = words[len(within) :] if words[: len(within)] == list(within) else words
    else:
        words = words[-1:]
    if len(words) > 1 and words[-1] in _TAILS:
        words = words[:-1]
    return "_".join(word for word in words if word) if any(len(word) > 2 for word in words) else ""


def shared_words(names: Sequence[str]) -> list[str]:
    """The first words of nearly all names."""
    split = [_WORDS.split(name) for name in names]
    found: list[str] = []
    while split:
        word, count = (
            Counter(words[len(found)] for words in split if len(words) > len(found) + 1).most_common(1)[0]
            if any(len(words) > len(found) + 1 for words in split)
            else ("", 0)
        )
        if 10 * count < 9 * len(names):
            break
        found.append(word)
        split = [words for words in split if len(words) > len(found) and words[len(found) - 1] == word]
    return found


def common_words(names: Sequence[str]) -> list[str]:
    """The first words of all names: parts of names between separators."""
    if not names:
        return []
    first, last = _WORDS.split(min(names)), _WORDS.split(max(names))
    found: list[str] = []
    for ours, theirs in zip(first, last, strict=False):
        if ours != theirs:
            break
        found.append(ours)
    return found


def ops_name(ops: Counter[str]) -> str:
    """A name from ops: a known kind of block, or the most telling ops."""
    products = sum(ops[op] for op in _PRODUCTS)
    convolutions = sum(ops[op] for op in _CONVOLUTIONS)
    adds = ops["AddV2"] + ops["Add"]
    if ops["Softmax"] and products >= 4:
        return "transformer layer" if products >= 6 and adds >= 2 else "attention"
    if ops["DepthwiseConv2dNative"] and convolutions >= 2:
        return "inverted residual block" if ops["Conv2D"] >= 2 else "separable convolution"
    if convolutions >= 2 and ops["ConcatV2"]:
        return "dense block" if convolutions == 2 else "inception block"
    if convolutions >= 2 and adds > ops["Mul"]:
        return "residual block"
    if ops["Tanh"] >= 1 and ops["Sigmoid"] >= 2:
        return "LSTM step" if ops["Tanh"] >= 2 else "GRU step"
    heavy = [op for op in ops if op in _PRODUCTS or op in _CONVOLUTIONS]
    rest = [op for op, _ in ops.most_common() if op not in heavy]
    return ", ".join(_SHORT.get(op, op) for op in (heavy + rest)[:3])


def shape_words(shape: Sequence[int | None] | None) -> str:
    """A shape without the batch: `56×56×256`; "" for scalars and unknown ranks."""
    return "×".join("?" if size is None else str(size) for size in shape[1:]) if shape is not None and len(shape) > 1 else ""
