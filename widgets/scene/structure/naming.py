"""Names of groups: from the names of their members, or else from their ops."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from graphcore.frontends.foreign_ops import foreign_traits, plain_op
from graphcore.plumbing import CONTROL_FLOW, NEXT_ITERATION
from graphcore.registry import op_registry
from graphcore.traits import NO_TRAITS, Layer, Traits
from widgets.scene.structure.serving import PARAMETRIC

if TYPE_CHECKING:
    from graphcore.graph import Node

_WORDS: Final = re.compile(r"[_.\-/]+")
_VERSION: Final = re.compile(r"^Fused|Native$|V\d+$")
"""The parts of an op's name that say nothing of what it computes."""
_NORMALISING: Final = frozenset({"addition", "normalization", "pooling", "scaling"})
_BEGINNING: Final = PARAMETRIC | {"pooling", "resizing", "concatenation"}
_TAILS: Final = frozenset({"block", "layer", "stage", "unit"})


def common_name(names: Sequence[str], within: Sequence[str]) -> str:
    """The words that all names begin with, "" if there are none.

    Args:
        within: the words that everything around begins with; they are left out.
    """
    words = common_words(names)
    around = list(within)
    while words and around and words[0] == around[0]:
        words, around = words[1:], around[1:]
    if len(words) > 1 and words[-1] in _TAILS:
        words = words[:-1]
    return "_".join(word for word in words if word) if any(len(word) > 2 for word in words) else ""


def is_telling(name: str) -> bool:
    """True for a name that says more than `block` or `layer`."""
    return any(word and word not in _TAILS for word in _WORDS.split(name))


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
    return found[:-1] if found and found[-1] in _TAILS else found


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


def common_scope(names: Sequence[str]) -> str:
    """The path of the innermost scope that has all these nodes."""
    if not names:
        return ""
    first, last = min(names).split("/")[:-1], max(names).split("/")[:-1]
    end = next((place for place, part in enumerate(first) if place >= len(last) or part != last[place]), len(first))
    return "/".join(first[:end])


def begins_layer(op: str) -> bool:
    """True for an op that a model's layer begins with, which an activation or a sum then ends."""
    return layer_of(op) in _BEGINNING


def layer_of(op: str) -> Layer:
    """The kind of layer that an op computes; "" for others and for functions."""
    return traits_by_name(op).layer


def plain(op: str) -> str:
    """The op as pictures name it: without the domain of another framework."""
    return plain_op(op) if "." in op else op


def is_foreign(node: Node) -> bool:
    """True for a node of another framework."""
    return plain(node.op) != node.op


def traits_by_name(op: str) -> Traits:
    """The traits of an op by its name, of another framework's too."""
    if op in op_registry:
        return op_registry.look_up(op).traits
    return foreign_traits(op) if "." in op else NO_TRAITS


def kind_name(ops: Counter[str], layers: Counter[Layer]) -> str:
    """The name of a known kind of block, "" if it is none.

    Args:
        ops: its ops.
        layers: its own layers, as `telling_layers` gives them.
    """
    if NEXT_ITERATION & ops.keys():
        inside = Counter({op: count for op, count in ops.items() if op not in CONTROL_FLOW})
        return f"while loop: {kind_name(inside, layers) or ops_name(inside, is_normalised=False)}".removesuffix(": ")
    products = layers["product"]
    convolutions = layers["convolution"] + layers["depthwise convolution"]
    if layers["softmax"] and products >= 4:
        return "transformer layer" if products >= 6 and layers["addition"] >= 2 else "attention"
    is_residual = layers["addition"] > layers["scaling"]
    if layers["depthwise convolution"] and convolutions >= 2:
        if layers["depthwise convolution"] == 1:
            return "inverted residual block" if convolutions >= 3 else "separable convolution"
        return (
            "separable convolution cell"
            if layers["concatenation"]
            else "separable residual block"
            if is_residual
            else "separable convolution"
        )
    if convolutions >= 2 and layers["concatenation"] and not layers["transposed convolution"]:
        return "dense block" if convolutions == 2 else "inception block"
    if convolutions >= 2 and is_residual:
        return "residual block"
    if layers["tanh"] >= 1 and layers["sigmoid"] >= 2:
        return "LSTM step" if layers["tanh"] >= 2 else "GRU step"
    return ""


def ops_name(ops: Counter[str], *, is_normalised: bool) -> str:
    """The most telling ops in words.

    Args:
        is_normalised: true if there is a normalisation with known statistics, which is a product and a sum.
    """
    heavy = [op for op in ops if layer_of(op) in PARAMETRIC]
    rest = [op for op, _ in ops.most_common() if op not in heavy]
    norm = "BatchNorm" if is_normalised else "LayerNorm" if is_layer_norm(ops) else ""
    if norm:
        rest = [op for op in rest if layer_of(op) not in _NORMALISING]
        bias = sum(layer_of(op) == "bias" for op in rest[:1])
        rest = [*rest[:bias], norm, *rest[bias:]] if heavy or is_normalised else [norm]
    return ", ".join(_VERSION.sub("", plain(op)) for op in (heavy + rest)[:3])


def is_layer_norm(ops: Counter[str]) -> bool:
    """True iff there is a normalisation whose statistics are computed."""
    return any(layer_of(op) == "normalization" and traits_by_name(op).elementwise for op in ops)


def is_scaled(ops: Counter[str]) -> bool:
    """True iff there are a product and a sum, as of a normalisation with known statistics."""
    layers = _layers(ops)
    return bool(layers["scaling"] and layers["addition"])


def _layers(ops: Counter[str]) -> Counter[Layer]:
    layers: Counter[Layer] = Counter()
    for op, count in ops.items():
        layers[layer_of(op)] += count
    return layers


def shape_words(shape: Sequence[int | None] | None) -> str:
    """A shape without the batch: `56×56×256`; "" for scalars and unknown ranks."""
    return "×".join("?" if size is None else str(size) for size in shape[1:]) if shape is not None and any(shape[1:]) else ""
