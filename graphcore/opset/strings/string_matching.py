"""Regular expressions on strings."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from graphcore.attrs import Array, Attrs
from graphcore.inference import InferenceContext
from graphcore.inference.shape_fns.common_shape_fns import unchanged_shape
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, KernelContext, op
from graphcore.opset.framework.kernels import invalid
from graphcore.opset.numerics.patterns import PatternError, compiled, replaced
from graphcore.opset.numerics.string_arrays import bytes_of_strings, content_size, each_string, one_string
from graphcore.opset.strings.string_joining import text_attr

_X: Final = np.array([[b"abracadabra", "Grüße, (2)!".encode()], [b"", b"a\n"]], object)
_GROUP: Final = re.compile(rb"\\(.?)", re.DOTALL)


def _pattern(k: KernelContext, pattern: bytes) -> Any:
    try:
        return compiled(pattern)
    except PatternError as error:
        raise invalid(k, f"Invalid pattern: {pattern.decode(errors='backslashreplace')}, error: {error}") from None


def _replacing(k: KernelContext, pattern: bytes, rewrite: bytes, *, everywhere: bool) -> Callable[[bytes], bytes]:
    expression = _pattern(k, pattern)
    pieces: list[bytes | int] = []
    for place, piece in enumerate(_GROUP.split(rewrite)):
        is_group = place % 2 and piece.isdigit()
        if place % 2 and piece != b"\\" and not (is_group and int(piece) <= expression.groups):
            raise invalid(k, f"Invalid rewrite pattern: {rewrite.decode(errors='backslashreplace')}")
        pieces.append(int(piece) if is_group else piece)
    return lambda text: replaced(expression, text, pieces, everywhere=everywhere)


def _bytes_of_replaced(x: Array, rewrite: bytes) -> int:
    """The most bytes after replacement.

    Every character and the end match, and each group is all of the text.
    """
    content = content_size(x)
    return bytes_of_strings(x.size, content + (content + x.size) * len(rewrite) + content * rewrite.count(b"\\"))


def _scalar_patterns(c: InferenceContext) -> None:
    for i in range(1, c.num_inputs):
        c.with_rank(c.input(i), 0)
    c.set_output(0, c.input(0))


@op
class RegexReplace:
    r"""The strings with the matches of a pattern replaced.

    pattern: a regular expression in the syntax of RE2, a scalar
    rewrite: the replacement, with `\1` to `\9` for groups and `\0` for the match, a scalar
    replace_global: replace all matches, not only the first.
    """

    pure = True
    signature = "RegexReplace[replace_global:bool = true](input:string, pattern:string, rewrite:string) -> (output:string)"
    shape = _scalar_patterns
    device_types = ("CPU",)
    gradient = NO_GRADIENT
    examples = (
        Example([_X, rb"a(.)r", rb"<\1>"]),
        Example([_X, b"a*", b"-"]),
        Example([_X, rb"[[:punct:]]|\s+$", b""], {"replace_global": False}),
        Example([_X, rb"\p{L}", rb"\\\0"]),
    )
    failures = (Example([_X, b"(", b""]), Example([_X, b"a(?=b)", b""]), Example([_X, b"a", rb"\1"]))

    def most_bytes(_attrs: Attrs, inputs: Sequence[Array]) -> int:
        return _bytes_of_replaced(inputs[0], b"".join(inputs[2].reshape(-1).tolist()))

    def kernel(k: KernelContext) -> Kernel:
        everywhere = bool(k.attr("replace_global"))

        def replace(x: Any, pattern: Any, rewrite: Any) -> Any:
            if pattern.ndim or rewrite.ndim:
                raise invalid(k, f"Pattern and rewrite must be scalars, got shapes {list(pattern.shape)} and {list(rewrite.shape)}")
            return each_string(_replacing(k, one_string(pattern), one_string(rewrite), everywhere=everywhere))(x)

        return replace


@op
class StaticRegexReplace:
    r"""The strings with the matches of a pattern replaced.

    pattern: a regular expression in the syntax of RE2.
    rewrite: the replacement, with `\1` to `\9` for groups and `\0` for the match.
    replace_global: replace all matches, not only the first.
    """

    pure = True
    signature = "StaticRegexReplace[pattern:string, rewrite:string, replace_global:bool = true](input:string) -> (output:string)"
    shape = unchanged_shape
    device_types = ("CPU",)
    gradient = NO_GRADIENT
    examples = (Example([_X], {"pattern": "[.,!]+", "rewrite": ""}), Example([_X], {"pattern": "^(a|G)", "rewrite": r"\1\1"}))
    failures = (Example([_X], {"pattern": "[", "rewrite": ""}),)

    def most_bytes(attrs: Attrs, inputs: Sequence[Array]) -> int:
        rewrite = attrs["rewrite"]
        return _bytes_of_replaced(inputs[0], rewrite if isinstance(rewrite, bytes) else str(rewrite).encode())

    def kernel(k: KernelContext) -> Kernel:
        everywhere = bool(k.attr("replace_global"))
        return each_string(_replacing(k, text_attr(k, "pattern"), text_attr(k, "rewrite"), everywhere=everywhere))


def _matching(k: KernelContext, pattern: bytes, x: Any) -> Any:
    expression = _pattern(k, pattern)
    matches = [expression.fullmatch(value) is not None for value in x.reshape(-1).tolist()]
    return np.array(matches, bool).reshape(x.shape)


@op
class RegexFullMatch:
    """True for the strings that a pattern matches as a whole.

    pattern: a regular expression in the syntax of RE2, a scalar
    """

    pure = True
    signature = "RegexFullMatch(input:string, pattern:string) -> (output:bool)"
    shape = _scalar_patterns
    device_types = ("CPU",)
    gradient = NO_GRADIENT
    examples = (Example([_X, b"(ab|ra|cad)*ra"], outputs=[[[True, False], [False, False]]]), Example([_X, b"a."]))
    failures = (Example([_X, b"*"]),)

    def kernel(k: KernelContext) -> Kernel:
        def match(x: Any, pattern: Any) -> Any:
            if pattern.ndim:
                raise invalid(k, f"Pattern must be scalar, but received {list(pattern.shape)}")
            return _matching(k, one_string(pattern), x)

        return match


@op
class StaticRegexFullMatch:
    """True for the strings that a pattern matches as a whole.

    pattern: a regular expression in the syntax of RE2.
    """

    pure = True
    signature = "StaticRegexFullMatch[pattern:string](input:string) -> (output:bool)"
    shape = unchanged_shape
    device_types = ("CPU",)
    gradient = NO_GRADIENT
    examples = (Example([_X], {"pattern": r"\w*"}, outputs=[[[True, False], [True, False]]]),)
    failures = (Example([_X], {"pattern": "a**"}),)

    def kernel(k: KernelContext) -> Kernel:
        pattern = text_attr(k, "pattern")
        _pattern(k, pattern)
        return lambda x: _matching(k, pattern, x)
