"""Joining and splitting strings."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from graphcore.attrs import Array, Attrs
from graphcore.inference import InferenceContext
from graphcore.inference.shape_fns.reductions import reduction_shape
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, KernelContext, op
from graphcore.opset.framework.gradient_text import required_int
from graphcore.opset.framework.kernels import invalid, normal_axis
from graphcore.opset.numerics.string_arrays import bytes_of_strings, content_size, one_string, strings
from graphcore.support.memory_limits import check_allocation

_WORDS: Final = np.array([[b"a", b"bc"], [b"d", b""]], object)
_SENTENCES: Final = np.array([b"hello world", b"", b" a b  c "], object)


def text_attr(k: KernelContext | InferenceContext, name: str) -> bytes:
    """The value of a string attr."""
    value = k.attr(name)
    return value if isinstance(value, bytes) else str(value).encode()


def separator_of(attrs: Attrs) -> bytes:
    """The attr `separator`."""
    value = attrs["separator"]
    return value if isinstance(value, bytes) else str(value).encode()


def _bytes_of_joined(attrs: Attrs, inputs: Sequence[Array]) -> int:
    texts = inputs[0]
    return bytes_of_strings(texts.size + 1, content_size(texts) + texts.size * len(separator_of(attrs)))


@op
class StringJoin:
    """The strings of several arrays joined element by element; scalars are joined to each element.

    separator: written between the strings.
    """

    pure = True
    signature = "StringJoin[N:int >= 0, separator:string = ''](inputs:N*string) -> (output:string)"
    device_types = ("CPU",)
    gradient = NO_GRADIENT
    examples = (
        Example([[_WORDS, b"-", _WORDS]], outputs=[[[b"a-a", b"bc-bc"], [b"d-d", b"-"]]]),
        Example([[b"x", b"y"]], {"separator": ", "}, outputs=[b"x, y"]),
    )

    def shape(c: InferenceContext) -> None:
        ranks = [c.rank(c.input(i)) for i in range(c.num_inputs)]
        if not any(ranks):
            c.set_output(0, c.scalar())
            return
        shape = c.unknown_shape()
        for i, rank in enumerate(ranks):
            if rank > 0:
                shape = c.merge(shape, c.input(i))
        c.set_output(0, shape)

    failures = (
        """
        two = Const[dtype=string, value=Tensor<type: string shape: [2] values: a b>]()
        three = Const[dtype=string, value=Tensor<type: string shape: [3] values: a b c>]()
        hidden = PlaceholderWithDefault[dtype=string, shape=<unknown>](three)
        join = StringJoin[N=2](two, hidden)
        """,
    )

    def most_bytes(attrs: Attrs, inputs: Sequence[Array]) -> int:
        count = max([value.size for value in inputs], default=1)
        content = sum([content_size(value) * (1 if value.ndim else count) for value in inputs])
        return bytes_of_strings(count, content + count * len(inputs) * len(separator_of(attrs)))

    def kernel(k: KernelContext) -> Kernel:
        separator = text_attr(k, "separator")

        def join(*parts: Any) -> Any:
            shapes = {part.shape for part in parts if part.ndim}
            if len(shapes) > 1:
                raise invalid(k, f"Input shapes do not match: {' vs. '.join(str(list(shape)) for shape in sorted(shapes))}")
            shape = next(iter(shapes), ())
            columns = [itertools.repeat(part.item()) if not part.ndim else part.reshape(-1).tolist() for part in parts]
            rows = zip(*columns, strict=False) if shapes else [tuple(part.item() for part in parts)]
            return strings([separator.join(row) for row in rows], shape)

        return join


@op
class ReduceJoin:
    """The strings of an array joined along some dimensions, the first of them first.

    inputs: any shape
    reduction_indices: the dimensions; negative ones count from the end
    output: the shape of inputs without these dimensions
    keep_dims: keep them with size 1.
    separator: written between the strings.
    """

    pure = True
    most_bytes = _bytes_of_joined
    signature = "ReduceJoin[keep_dims:bool = false, separator:string = ''](inputs:string, reduction_indices:int32) -> (output:string)"
    shape = reduction_shape
    device_types = ("CPU",)
    gradient = NO_GRADIENT
    examples = (
        Example([_WORDS, [0]], outputs=[[b"ad", b"bc"]]),
        Example([_WORDS, [0, 1]], {"separator": "."}, outputs=[b"a.d.bc."]),
        Example([_WORDS, [-1, 0]], {"separator": ".", "keep_dims": True}),
        Example([_WORDS, 1]),
    )
    failures = (Example([_WORDS, [0, 0]]),)

    def kernel(k: KernelContext) -> Kernel:
        separator, keep = text_attr(k, "separator"), bool(k.attr("keep_dims"))

        def join(x: Any, axes: Any) -> Any:
            order = [normal_axis(k, axis, x.ndim) for axis in axes.reshape(-1).tolist()]
            if len(set(order)) != len(order):
                raise invalid(k, f"Duplicate reduction dimension in {axes.reshape(-1).tolist()}")
            rest = [axis for axis in range(x.ndim) if axis not in order]
            shape = tuple([1 if axis in order else size for axis, size in enumerate(x.shape) if keep or axis not in order])
            count = int(np.prod([x.shape[axis] for axis in order], dtype=np.int64))
            rows = x.transpose([*rest, *order[::-1]]).reshape(-1, count) if x.size else [[]] * int(np.prod(shape, dtype=np.int64))
            return strings([separator.join(row) for row in rows], shape)

        return join


@op
class UnsortedSegmentJoin:
    """The strings of each segment joined in order.

    inputs: strings
    segment_ids: the segment of each; negative ones are left out
    num_segments: the number of segments, a scalar
    output: [num_segments] + the rest of the shape of inputs
    separator: written between the strings.
    """

    signature = (
        "UnsortedSegmentJoin[separator:string = '', Tindices:{int32, int64}, Tnumsegments:{int32, int64} = int32]"
        "(inputs:string, segment_ids:Tindices, num_segments:Tnumsegments) -> (output:string)"
    )
    device_types = ("CPU",)
    gradient = NO_GRADIENT
    examples = (Example([np.array([b"a", b"b", b"c"], object), [1, 0, 1], 3], {"separator": ":"}, outputs=[[b"b", b"a:c", b""]]),)
    failures = (Example([np.array([b"a", b"b", b"c"], object), [1, 0, 9], 3]),)

    def shape(c: InferenceContext) -> None:
        ids = c.input(1)
        c.with_rank(c.input(2), 0)
        size = c.make_dim_for_scalar_input(2)
        if not c.rank_known(ids):
            c.set_output(0, c.unknown_shape())
            return
        in_shape, _ = c.merge_prefix(c.input(0), ids)
        c.set_output(0, c.concatenate(c.vector(size), c.subshape(in_shape, c.rank(ids))))

    def kernel(k: KernelContext) -> Kernel:
        separator = text_attr(k, "separator")

        def join(x: Any, ids: Any, count: Any) -> Any:
            if x.shape[: ids.ndim] != ids.shape or not ids.ndim:
                raise invalid(k, f"the shape of segment_ids {list(ids.shape)} must begin that of inputs {list(x.shape)}")
            segments, rest = int(count.item()), x.shape[ids.ndim :]
            width = int(np.prod(rest, dtype=np.int64))
            pieces: list[list[bytes]] = [[] for _ in range(segments * width)]
            for row, at in zip(x.reshape(ids.size, width).tolist(), ids.reshape(-1).tolist(), strict=True):
                if at >= segments:
                    raise invalid(k, f"segment id {at} must be less than num_segments = {segments}")
                for column, value in enumerate(row) if at >= 0 else ():
                    pieces[at * width + column].append(value)
            return strings([separator.join(parts) for parts in pieces], (segments, *rest))

        return join


_TWO_SEPARATORS: Final = """
    two = Const[dtype=string, value=Tensor<type: string shape: [2] values: a b>]()
    hidden = PlaceholderWithDefault[dtype=string, shape=<unknown>](two)
    it = {op}(two, hidden)
"""
"""A use that fails: the separator is no scalar."""


def split_shape(c: InferenceContext) -> None:
    """A sparse matrix of words: the inputs are a vector of strings and one separator."""
    c.with_rank(c.input(0), 1)
    c.with_rank(c.input(1), 0)
    c.set_output(0, c.matrix(c.unknown_dim(), 2))
    c.set_output(1, c.vector(c.unknown_dim()))
    c.set_output(2, c.vector(2))


def _sparse_words(parts: Iterable[Sequence[bytes]]) -> tuple[Any, Any, Any]:
    rows, number = [], 0
    for part in parts:
        number += len(part)
        check_allocation((number, 2), np.dtype(np.int64))
        rows.append(part)
    places = [(i, j) for i, row in enumerate(rows) for j in range(len(row))]
    words = [word for row in rows for word in row]
    sizes = np.array([len(rows), max(map(len, rows), default=0)], np.int64)
    return np.array(places, np.int64).reshape(-1, 2), strings(words, (len(words),)), sizes


def _splitting(k: KernelContext, split: Callable[[bytes, bytes], list[bytes]]) -> Kernel:
    def kernel(x: Any, separator: Any) -> Any:
        if x.ndim != 1 or separator.ndim:
            raise invalid(k, f"required a vector and a scalar, got shapes {list(x.shape)} and {list(separator.shape)}")
        return _sparse_words(split(value, one_string(separator)) for value in x.tolist())

    return kernel


@op
class StringSplit:
    """The words of each string as a sparse matrix; each byte of the delimiter separates words.

    input: [n]
    delimiter: a scalar; empty to split into bytes
    indices: [words, 2]
    values: [words]
    shape: [2], the number of strings and the most words
    skip_empty: leave out empty words.
    """

    signature = "StringSplit[skip_empty:bool = true](input:string, delimiter:string) -> (indices:int64, values:string, shape:int64)"
    shape = split_shape
    device_types = ("CPU",)
    gradient = NO_GRADIENT
    examples = (
        Example([_SENTENCES, b" "], outputs=[[[0, 0], [0, 1], [2, 0], [2, 1], [2, 2]], [b"hello", b"world", b"a", b"b", b"c"], [3, 3]]),
        Example([_SENTENCES, b"l "], {"skip_empty": False}),
        Example([_SENTENCES, b""]),
    )
    failures = (_TWO_SEPARATORS.format(op="StringSplit"),)

    def kernel(k: KernelContext) -> Kernel:
        skip = bool(k.attr("skip_empty"))

        def split(value: bytes, delimiters: bytes) -> list[bytes]:
            if not delimiters:
                return [bytes([byte]) for byte in value]
            for delimiter in delimiters[1:]:
                value = value.replace(bytes([delimiter]), delimiters[:1])
            # Without words that are left out, an empty string has no words at all.
            return [word for word in value.split(delimiters[:1]) if word or not skip] if value else []

        return _splitting(k, split)


@op
class StringSplitV2:
    """The words of each string as a sparse matrix.

    input: [n]
    sep: the separator as a whole, a scalar; empty to split at runs of white space
    indices: [words, 2]
    values: [words]
    shape: [2], the number of strings and the most words
    maxsplit: the most separators to split at; negative for all.
    """

    signature = "StringSplitV2[maxsplit:int = -1](input:string, sep:string) -> (indices:int64, values:string, shape:int64)"
    shape = split_shape
    device_types = ("CPU",)
    gradient = NO_GRADIENT
    examples = (
        Example([_SENTENCES, b""], outputs=[[[0, 0], [0, 1], [2, 0], [2, 1], [2, 2]], [b"hello", b"world", b"a", b"b", b"c"], [3, 3]]),
        Example([_SENTENCES, b" "]),
        Example([_SENTENCES, b"lo"], {"maxsplit": 1}),
        Example([_SENTENCES, b""], {"maxsplit": 1}),
    )
    failures = (_TWO_SEPARATORS.format(op="StringSplitV2"),)

    def kernel(k: KernelContext) -> Kernel:
        most = required_int(k.attrs, "maxsplit")

        def split(value: bytes, separator: bytes) -> list[bytes]:
            return value.split(separator, most) if separator else value.split(None, most)

        return _splitting(k, split)
