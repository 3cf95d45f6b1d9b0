"""The multiply-adds of matrix products, convolutions, contractions and recurrent layers, from shapes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from graphcore.costing.sizes import Sizes, product, quotient
from graphcore.inference.expressions import Expression

_SECOND_AND_THIRD: Final = frozenset({"addmm", "baddbmm", "addbmm", "addmv"})
"""The products whose first input is added to the result."""
_DEPTHWISE: Final = frozenset({"depthwiseconv2dnativebackpropinput", "depthwiseconv2dnativebackpropfilter"})
_OUT_FIRST: Final = frozenset({"onnx", "aten", "torch", "tfl", "openvino", "coreml", "quantized"})
"""The frameworks whose filters start with the output channels."""
_LETTERS: Final = re.compile(r"[A-Za-z]|\.\.\.")


@dataclass(frozen=True, slots=True)
class Work:
    """A node whose work is counted.

    Attributes:
        domain: the framework, as `onnx` in `onnx.Conv`; "" for ops of our own.
        word: the op without its domain, in lower case.
        inputs, outputs: the sizes; None for a tensor of which a size is unknown.
        attrs: the attrs as plain values.
    """

    domain: str
    word: str
    inputs: Sequence[Sizes | None]
    outputs: Sequence[Sizes | None]
    attrs: Mapping[str, Any]

    def input(self, place: int) -> Sizes:
        """The sizes of an input.

        Raises:
            UnknownSizesError: there is no such input, or one of its sizes is unknown.
        """
        sizes = self.inputs[place] if place < len(self.inputs) else None
        if sizes is None:
            raise UnknownSizesError(f"a size of input {place} is unknown" if place < len(self.inputs) else f"there is no input {place}")
        return sizes

    def output(self) -> Sizes:
        """The sizes of the first output.

        Raises:
            UnknownSizesError: there is none, or one of its sizes is unknown.
        """
        sizes = self.outputs[0] if self.outputs else None
        if sizes is None:
            raise UnknownSizesError("a size of the output is unknown" if self.outputs else "there is no output")
        return sizes

    def flag(self, *names: str) -> bool:
        """True if one of these attrs is true."""
        return any(bool(self.attrs.get(name)) for name in names)


class UnknownSizesError(Exception):
    """The work of a node cannot be counted, for a reason that the message says."""


def of_product(work: Work) -> Expression:
    """The elements of the result times the length of its sums."""
    contracted = _contracted(work)
    if contracted is not None:
        return product([*work.output(), *[work.input(0)[axis] for axis in contracted]])
    if work.word in {"fully_connected", "fullyconnected"}:  # the first input may have more dimensions than the product
        return product([*work.output(), work.input(1)[-1]])
    left = work.input(1 if work.word in _SECOND_AND_THIRD else 0)
    if not left:
        raise UnknownSizesError("the first factor is a scalar")
    is_transposed = len(left) > 1 and work.flag("transpose_a", "adj_x", "transA", "transpose_x")
    return product([*work.output(), left[-2 if is_transposed else -1]])


def _contracted(work: Work) -> list[int] | None:
    """The axes of the first factor over which a `dot_general` sums; None for other products."""
    attrs = work.attrs
    text = str(attrs.get("dimension_numbers") or attrs.get("dot_dimension_numbers") or "")
    if work.word == "dot_general" or text:
        named = re.search(r"lhs_contracting_dim(?:ension)?s\s*=\s*[\[{]([\d, ]*)", text)
        listed = re.match(r"[(\[]+([\d, ]*)", text)
        match = named or listed
        return None if match is None else [int(digits) for digits in re.findall(r"\d+", match[1])]
    if "lhs_contracting_dims" in attrs:
        return [int(digits) for digits in re.findall(r"\d+", str(attrs["lhs_contracting_dims"]))]
    if work.word == "dot" and len(work.input(0)) == 1:
        return [0]
    return None


def of_einsum(work: Work) -> Expression:
    """The product of the sizes of all letters of the equation."""
    written = work.attrs.get("equation", "")
    equation = (written.decode() if isinstance(written, bytes) else str(written)).replace(" ", "")
    terms = equation.partition("->")[0].split(",")
    if not equation or len(terms) > len(work.inputs):
        raise UnknownSizesError("there is no equation for its inputs")
    sizes: dict[str, Expression] = {}
    for place, term in enumerate(terms):
        shape, letters = work.input(place), _LETTERS.findall(term)
        before = letters.index("...") if "..." in letters else len(letters)
        hidden = len(shape) - (len(letters) - ("..." in letters))
        sizes.update(zip(letters[:before], shape, strict=False))
        sizes.update({f"...{number}": shape[before + number] for number in range(hidden if "..." in letters else 0)})
        sizes.update(zip(letters[before + 1 :], shape[before + hidden :], strict=False))
    return product(list(sizes.values()))


def of_attention(work: Work) -> Expression:
    """Scores and weighted values of queries [..., l, e], keys [..., s, e] and values [..., s, v]."""
    query, key, value = work.input(0), work.input(1), work.input(2)
    if min(map(len, (query, key, value))) < 2:
        raise UnknownSizesError("queries, keys and values have less than two dimensions")
    scores = product([*query[:-1], key[-2]])
    return scores * (query[-1] + value[-1])


def of_convolution(work: Work) -> Expression:
    """The elements of the result times the filter of one output channel."""
    filters = work.input(3 if work.word == "qlinearconv" else 1)
    if work.word == "groupconvolution":  # groups, channels out and in of a group, window
        return product([*work.output(), *filters[2:]])
    out = _out_channels(work, len(filters))
    return product([*work.output(), *filters[:out], *filters[out + 1 :]])


def _out_channels(work: Work, rank: int) -> int:
    """The axis of a filter that is the output channels."""
    text = str(work.attrs.get("dimension_numbers") or work.attrs.get("dim_numbers") or "")
    if work.domain in _OUT_FIRST:
        return 0
    spec = re.search(r"rhs_spec=\(([\d, ]+)\)", text)
    if spec is not None:
        return int(spec[1].split(",")[0])
    layout = re.search(r"x\[?([\w, ]+)\]?->", text) or re.search(r"_([\w?]+)->", text)
    if layout is not None:
        letters = [part.strip() for part in layout[1].split(",")] if "," in layout[1] else list(layout[1])
        if "o" in letters:
            return letters.index("o")
    return rank - 1


def of_depthwise(work: Work) -> Expression:
    """The elements of the result times the window; for a separable layer with the product that follows."""
    filters = work.input(1)
    if work.word in {"separableconv2d", "separableconv1d"}:
        result = work.output()
        is_first = work.attrs.get("data_format") == "channels_first"
        places = [size for axis, size in enumerate(result) if axis != (1 if is_first else len(result) - 1)]
        return product(places) * (product(filters) + product(work.input(2)))
    window = filters[1:-1] if work.domain == "tfl" else filters[:-2]
    return product([*work.output(), *window])


def of_transposed(work: Work) -> Expression:
    """The elements of the input times the filter of one input channel."""
    if work.word == "transpose_conv":  # TFLite: output shape, filter, input
        return product([*work.input(2), *work.input(1)[:-1]])
    filters = work.input(1)
    return product([*work.input(0), *(filters[1:] if work.domain in _OUT_FIRST else filters[:-1])])


def of_filter_gradient(work: Work) -> Expression:
    """The same number as of the convolution itself: incoming elements times a channel's filter."""
    filters, incoming = work.output(), work.input(2)
    return product([*incoming, *(filters[:-2] if work.word in _DEPTHWISE else filters[:-1])])


def of_input_gradient(work: Work) -> Expression:
    """The same number as of the convolution itself: incoming elements times a channel's filter."""
    filters, incoming = work.input(1), work.input(2)
    return product([*incoming, *(filters[:-2] if work.word in _DEPTHWISE else filters[:-1])])


def of_recurrent(work: Work) -> Expression:
    """The elements of all weights for each step of each example.

    The first input is [steps, batch, width] or [batch, steps, width].
    """
    steps = work.input(0)
    is_onnx = work.domain == "onnx"  # whose weights have a dimension of directions
    weights = [sizes for place, sizes in enumerate(work.inputs) if sizes is not None and (place in (1, 2) if is_onnx else len(sizes) == 2)]
    if len(steps) != 3 or not weights:
        raise UnknownSizesError("no weights are among its inputs")
    total = product(weights[0])
    for sizes in weights[1:]:
        total = total + product(sizes)
    return quotient(product(steps), steps[-1]) * total


MULTIPLY_ADDS: Final[dict[str, Callable[[Work], Expression]]] = {
    "product": of_product,
    "convolution": of_convolution,
    "depthwise convolution": of_depthwise,
    "transposed convolution": of_transposed,
}
"""The counts by kinds of layers."""
BY_WORD: Final[dict[str, Callable[[Work], Expression]]] = {
    "conv2dbackpropinput": of_input_gradient,
    "conv2dbackpropfilter": of_filter_gradient,
    "conv3dbackpropinputv2": of_input_gradient,
    "conv3dbackpropfilterv2": of_filter_gradient,
    "depthwiseconv2dnativebackpropinput": of_input_gradient,
    "depthwiseconv2dnativebackpropfilter": of_filter_gradient,
    "einsum": of_einsum,
    "einsumdense": of_einsum,
    "xlaeinsum": of_einsum,
    "scaled_dot_product_attention": of_attention,
    "lstm": of_recurrent,
    "gru": of_recurrent,
    "rnn": of_recurrent,
    "rnn_tanh": of_recurrent,
    "rnn_relu": of_recurrent,
    "simplernn": of_recurrent,
}
"""The counts of ops whose kind of layer does not tell them."""
