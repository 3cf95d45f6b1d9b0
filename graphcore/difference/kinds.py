"""The kinds of nodes, by which those of different frameworks are compared."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Final

from graphcore.attrs import Func
from graphcore.difference.state import GraphState, NodeState
from graphcore.op_names import plain_op
from graphcore.traits import NO_TRAITS, Traits

WEIGHTY: Final = frozenset({"convolution", "transposed convolution", "product", "normalization"})
"""The kinds that anchor an alignment."""
FUSING: Final = frozenset({"convolution", "transposed convolution", "product"})
"""The kinds of layers that others become a part of."""
MOVING: Final = frozenset({"reshape", "transpose", "gather", "concatenation"})
"""The kinds that compute nothing new."""
BIAS: Final = "bias"
"""Additions of weights, which are often a part of a convolution or product."""
_WORDS: Final[dict[str, str]] = {
    word: kind
    for kind, words in {
        "pooling": "mean reducemean global_average_pool",
        "reshape": "view reshape flatten squeeze unsqueeze unflatten expand_dims expanddims _unsafe_view broadcast_in_dim expand broadcast",
        "transpose": "transpose permute t swapaxes",
        "gather": "gather embedding take index select getitem slice narrow split chunk unbind strided_slice index_select split_with_sizes",
        "subtraction": "sub subtract",
        "division": "div divide true_divide truediv floordiv realdiv",
        "addition": "addv2 addn",
        "clip": "relu6 clip clamp hardtanh hardtanh_ relu6_",
        "relu": "relu relu_ max_with_zero",
        "swish": "silu silu_ swish",
        "hardswish": "hardswish hard_swish hardswish_",
        "leaky relu": "leakyrelu leaky_relu leaky_relu_",
    }.items()
    for word in words.split()
}
_CALLS: Final = frozenset({"jax.jit", "jax.pjit", "jax.custom_jvp_call", "jax.custom_vjp_call"})
_NUMBER: Final = re.compile(r"_\d+$")
_ONE_LAYER: Final = {"depthwise convolution": "convolution"}


def is_foreign(state: GraphState) -> bool:
    """True for a graph of another framework, whose ops have the framework's name before a dot."""
    return any("." in node.op and node.registration is not None and node.registration.is_opaque for node in state.nodes.values())


def vocabulary(state: GraphState) -> str:
    """The framework whose ops a graph has, "" for this library's own."""
    return next((domain for node in state.nodes.values() if "." in node.op and (domain := node.op.partition(".")[0]) != "graph"), "")


def traits_of(node: NodeState) -> Traits:
    """The traits of a node's op."""
    return NO_TRAITS if node.registration is None else node.registration.traits


def is_passing(node: NodeState) -> bool:
    """True for a node whose output is its input: a cast, a dropout, a quantization."""
    return traits_of(node).memory == "alias"


def is_passive(node: NodeState) -> bool:
    """True for a node that computes no new values: it passes them on, moves them, or only asks for sizes."""
    return is_passing(node) or traits_of(node).needs_only_shapes or kind_of(node) in MOVING


def kind_of(node: NodeState) -> str:
    """The kind of a node's op, the same for all frameworks.

    For a call of JAX it is that of the function by its name, such as `relu`.
    """
    if node.op in _CALLS:
        called = [value.name for value in node.attr.values() if isinstance(value, Func)]
        if len(called) == 1:
            return _kind(_NUMBER.sub("", called[0]), "")
    return _kind(node.op, traits_of(node).layer)


@lru_cache(maxsize=8192)
def _kind(op: str, layer: str) -> str:
    if layer:
        return _ONE_LAYER.get(layer, layer)
    word = plain_op(op).lower()
    return _WORDS.get(word, word.replace("_", ""))


def sizes_of(node: NodeState) -> tuple[int, ...] | None:
    """The sizes of the first output, None unless all are numbers."""
    if not node.shapes or node.shapes[0].dims is None:
        return None
    sizes = tuple([dim.value for dim in node.shapes[0].dims])
    return None if any(size < 0 for size in sizes) else sizes


def likeness_of_sizes(first: tuple[int, ...] | None, second: tuple[int, ...] | None) -> float:
    """The agreement of the sizes of two outputs.

    About 2 for equal ones in any order, 1 for as many elements, -1 for contradictory ones, 0 if they are unknown.
    """
    if first is None or second is None:
        return 0.0
    if first == second:
        return 2.0
    if sorted(first) == sorted(second):
        return 1.75
    return 1.0 if math.prod(first) == math.prod(second) else -1.0
