"""Regular expressions on strings."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from graphcore.inference import InferenceContext
from graphcore.inference.shape_fns.common_shape_fns import unchanged_shape
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, KernelContext, op
from graphcore.opset.framework.kernels import invalid
from graphcore.opset.numerics.patterns import PatternError, compiled
from graphcore.opset.numerics.string_arrays import each_string, one_string
from graphcore.opset.strings.string_joining import text_attr

_X: Final = np.array([[b"abracadabra", "Grüße, (2)!".encode()], [b"", b"a\n"]], object)
_GROUP: Final = re.compile(r"\\(.?)", re.DOTALL)


def _pattern(k: KernelContext, pattern: bytes) -> re.Pattern[str]:
    try:
        return compiled(pattern)
    except PatternError as error:
        raise invalid(k, f"Invalid pattern: {pattern.decode(errors='backslashreplace')}, error: {error}") from None


def _text(value: bytes) -> str:
    return value.decode(errors="surrogateescape")


def _replacing(k: KernelContext, pattern: bytes, rewrite: bytes, *, everywhere: bool) -> Callable[[bytes], bytes]:
    found = _pattern(k, pattern)
    pieces = _GROUP.split(_text(rewrite))
    for piece in pieces[1::2]:
        if not (piece == "\\" or (piece.isdigit() and int(piece) <= found.groups)):
            raise invalid(k, f"Invalid rewrite pattern: {rewrite.decode(errors='backslashreplace')}")

    def rewritten(match: re.Match[str]) -> str:
        parts = [piece if i % 2 == 0 or piece == "\\" else match[int(piece)] or "" for i, piece in enumerate(pieces)]
        return "".join(parts)

    def replace(value: bytes) -> bytes:
        text, out, end = _text(value), [], 0
        last = -1
        for match in found.finditer(text):
            if match.start() == match.end() == last:
                continue  # an empty match directly after another one
            out += [text[end : match.start()], rewritten(match)]
            end = last = match.end()
            if not everywhere:
                break
        return "".join([*out, text[end:]]).encode(errors="surrogateescape")

    return replace


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

    signature = "StaticRegexReplace[pattern:string, rewrite:string, replace_global:bool = true](input:string) -> (output:string)"
    shape = unchanged_shape
    device_types = ("CPU",)
    gradient = NO_GRADIENT
    examples = (Example([_X], {"pattern": "[.,!]+", "rewrite": ""}), Example([_X], {"pattern": "^(a|G)", "rewrite": r"\1\1"}))
    failures = (Example([_X], {"pattern": "[", "rewrite": ""}),)

    def kernel(k: KernelContext) -> Kernel:
        everywhere = bool(k.attr("replace_global"))
        return each_string(_replacing(k, text_attr(k, "pattern"), text_attr(k, "rewrite"), everywhere=everywhere))


def _matching(k: KernelContext, pattern: bytes, x: Any) -> Any:
    found = _pattern(k, pattern)
    matches = [found.fullmatch(_text(value)) is not None for value in x.reshape(-1).tolist()]
    return np.array(matches, bool).reshape(x.shape)


@op
class RegexFullMatch:
    """True for the strings that a pattern matches as a whole.

    pattern: a regular expression in the syntax of RE2, a scalar
    """

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
