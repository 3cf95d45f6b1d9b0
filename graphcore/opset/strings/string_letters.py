"""The characters of strings: case, length, parts, base 64."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from graphcore.errors import InvalidArgumentError
from graphcore.inference import InferenceContext
from graphcore.inference.shape_fns.common_shape_fns import broadcast_binary_op_shape_fn, unchanged_shape
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, KernelContext, define_op, op
from graphcore.opset.framework.kernels import invalid
from graphcore.opset.numerics.string_arrays import bytes_of_letters, bytes_of_parts, characters, each_string, strings
from graphcore.opset.strings.string_joining import text_attr

_X: Final = np.array([[b" Hello World ", "Grüße".encode()], [b"", b"\tx\n"]], object)


def _cased(name: str, summary: str, of_bytes: Callable[[bytes], bytes], of_text: Callable[[str], str]) -> None:
    def kernel(k: KernelContext) -> Kernel:
        encoding = text_attr(k, "encoding")
        if encoding not in (b"", b"utf-8"):
            raise invalid(k, f"only utf8 or '' (no encoding) is supported, received {encoding.decode(errors='backslashreplace')}")
        if not encoding:
            return each_string(of_bytes)
        return each_string(lambda value: of_text(value.decode(errors="replace")).encode())

    define_op(
        name,
        f"""{summary}

        encoding: `utf-8` for all letters; empty for those of ASCII alone.
        """,
        pure=True,
        most_bytes=bytes_of_letters,
        signature=f"{name}[encoding:string = ''](input:string) -> (output:string)",
        shape=unchanged_shape,
        kernel=kernel,
        gradient=NO_GRADIENT,
        device_types=("CPU",),
        examples=(Example([_X]), Example([_X], {"encoding": "utf-8"})),
        failures=(Example([_X], {"encoding": "latin"}),),
    )


_cased("StringLower", "The strings in lower case.", bytes.lower, str.lower)
_cased("StringUpper", "The strings in upper case.", bytes.upper, str.upper)


@op
class StringStrip:
    """The strings without white space at both ends."""

    pure = True
    most_bytes = bytes_of_letters
    signature = "StringStrip(input:string) -> (output:string)"
    shape = unchanged_shape
    device_types = ("CPU",)
    can_fail = False
    gradient = NO_GRADIENT
    examples = (Example([_X], outputs=[[[b"Hello World", "Grüße".encode()], [b"", b"x"]]]),)

    def kernel(k: KernelContext) -> Kernel:
        return each_string(lambda value: value.strip(b" \t\n\v\f\r"))


@op
class StringLength:
    """The length of each string.

    unit: count bytes, or the characters of UTF-8.
    """

    pure = True
    signature = "StringLength[unit:{'BYTE', 'UTF8_CHAR'} = 'BYTE'](input:string) -> (output:int32)"
    shape = unchanged_shape
    device_types = ("CPU",)
    can_fail = False
    gradient = NO_GRADIENT
    examples = (Example([_X], outputs=[[[13, 7], [0, 3]]]), Example([_X], {"unit": "UTF8_CHAR"}, outputs=[[[13, 5], [0, 3]]]))

    def kernel(k: KernelContext) -> Kernel:
        by_characters = k.attr("unit") == b"UTF8_CHAR"

        def length(x: Any) -> Any:
            sizes = [len(characters(value)) if by_characters else len(value) for value in x.reshape(-1).tolist()]
            return np.array(sizes, np.int32).reshape(x.shape)

        return length


@op
class Substr:
    """A part of each string, from `pos` on, `len` bytes or characters, or fewer at the end.

    input: any shape
    pos: the first, from the end if negative; broadcast with input
    len: the number, shaped as pos
    output: the broadcast shape
    unit: count bytes, or the characters of UTF-8.
    """

    pure = True
    most_bytes = bytes_of_parts
    signature = "Substr[T:{int32, int64}, unit:{'BYTE', 'UTF8_CHAR'} = 'BYTE'](input:string, pos:T, len:T) -> (output:string)"
    device_types = ("CPU",)
    gradient = NO_GRADIENT
    examples = (
        Example([np.array([b"Hello", b"World"], object), 1, 3], outputs=[[b"ell", b"orl"]]),
        Example([np.array([b"Hello", b"World"], object), [0, -2], [2, 9]], outputs=[[b"He", b"ld"]]),
        Example([np.array("Grüße".encode(), object), [2, 3], [1, 2]], {"unit": "UTF8_CHAR"}, outputs=[["ü".encode(), "ße".encode()]]),
    )
    failures = (Example([np.array([b"Hello", b"World"], object), 6, 3]),)

    def shape(c: InferenceContext) -> None:
        pos, length = c.input(1), c.input(2)
        if c.rank_known(pos) and c.rank_known(length) and c.rank(pos) != c.rank(length):
            raise InvalidArgumentError(f"pos and len must have the same rank, got {c.rank(pos)} and {c.rank(length)}")
        c.merge(pos, length)
        broadcast_binary_op_shape_fn(c)

    def kernel(k: KernelContext) -> Kernel:
        by_characters = k.attr("unit") == b"UTF8_CHAR"

        def part(value: bytes, pos: int, length: int) -> bytes:
            units: Any = characters(value) if by_characters else value
            if not -len(units) <= pos <= len(units):
                raise invalid(k, f"pos {pos} out of range for string {value!r}")
            start = pos + len(units) if pos < 0 else pos
            part_units = units[start : start + length] if length >= 0 else units[start:] if not by_characters else []
            return b"".join(part_units) if by_characters else bytes(part_units)

        def parts(x: Any, pos: Any, length: Any) -> Any:
            if pos.shape != length.shape:
                raise invalid(k, f"pos and len must have the same shape, got {list(pos.shape)} and {list(length.shape)}")
            try:
                shape = np.broadcast_shapes(x.shape, pos.shape)
            except ValueError:
                raise invalid(k, f"the shapes {list(x.shape)} and {list(pos.shape)} do not broadcast") from None
            broadcasted = [np.broadcast_to(argument, shape).reshape(-1).tolist() for argument in (x, pos, length)]
            return strings([part(*arguments) for arguments in zip(*broadcasted, strict=True)], shape)

        return parts


@op
class EncodeBase64:
    """The strings in the URL-safe form of base 64.

    pad: add `=` to a multiple of 4 characters.
    """

    signature = "EncodeBase64[pad:bool = false](input:string) -> (output:string)"
    shape = unchanged_shape
    device_types = ("CPU",)
    can_fail = False
    gradient = NO_GRADIENT
    examples = (Example([_X]), Example([_X], {"pad": True}))

    def kernel(k: KernelContext) -> Kernel:
        pad = bool(k.attr("pad"))
        return each_string(lambda value: base64.urlsafe_b64encode(value) if pad else base64.urlsafe_b64encode(value).rstrip(b"="))


@op
class DecodeBase64:
    """The strings that EncodeBase64 has encoded, with or without padding."""

    signature = "DecodeBase64(input:string) -> (output:string)"
    shape = unchanged_shape
    device_types = ("CPU",)
    gradient = NO_GRADIENT
    examples = (Example([np.array([b"SGVsbG8", b"_-8=", b""], object)], outputs=[[b"Hello", b"\xff\xef", b""]]),)
    failures = (Example([np.array([b"SGV+sbG8", b"_-8=", b""], object)]),)

    def kernel(k: KernelContext) -> Kernel:
        def decode(value: bytes) -> bytes:
            text = value.rstrip(b"=") if not len(value) % 4 else value
            if set(text) & set(b"+/=") or len(text) % 4 == 1:
                raise invalid(k, f"Invalid character or length of base 64 in {value!r}")
            try:
                return base64.b64decode(text + b"=" * (-len(text) % 4), b"-_", validate=True)
            except binascii.Error as error:
                raise invalid(k, f"Invalid base 64 {value!r}: {error}") from None

        return each_string(decode)
