"""Numbers read from strings, and written in strings."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from graphcore.attrs import Array, Attrs
from graphcore.errors import InvalidArgumentError
from graphcore.inference import InferenceContext
from graphcore.inference.shape_fns.common_shape_fns import scalar_shape, unchanged_shape
from graphcore.inference.summaries import summarize_printed
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, KernelContext, op
from graphcore.opset.framework.gradient_text import required_int
from graphcore.opset.framework.kernels import invalid
from graphcore.opset.numerics.string_arrays import bytes_of_strings, content_size, strings
from graphcore.opset.strings.string_joining import text_attr

_LONGEST_NUMBER: Final = 400
"""The characters of the longest number in decimal form, without the digits that precision and width add."""
_INTEGER: Final = re.compile(rb"[ \t\n\v\f\r]*([+-]?[0-9]+)[ \t\n\v\f\r]*\Z")
_FLOAT: Final = re.compile(
    rb"[ \t\n\v\f\r]*([+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf|infinity|nan))[ \t\n\v\f\r]*\Z", re.IGNORECASE
)


def number_in(text: bytes, dtype: np.dtype[Any]) -> int | float | None:
    """The number that a string shows in decimal form; None if it is none of `dtype`. Large floats are infinite."""
    whole = dtype.kind in "iu"
    match = (_INTEGER if whole else _FLOAT).match(text)
    if match is None:
        return None
    read = int(match[1]) if whole else float(match[1])
    return read if not whole or np.iinfo(dtype).min <= read <= np.iinfo(dtype).max else None


@op
class StringToNumber:
    """The number that each string shows in decimal form.

    out_type: the type of the numbers.
    """

    pure = True
    signature = "StringToNumber[out_type:{float, double, int32, int64, uint32, uint64} = float](string_tensor:string) -> (output:out_type)"
    shape = unchanged_shape
    device_types = ("CPU",)
    gradient = NO_GRADIENT
    examples = (
        Example([np.array([b"1.5", b" -2e3 ", b".5", b"inf"], object)], outputs=[[1.5, -2000.0, 0.5, np.inf]]),
        Example([np.array([b"7", b"-12"], object)], {"out_type": "int64"}, outputs=[[7, -12]]),
    )
    failures = (Example([np.array([b"7x"], object)]),)

    def kernel(k: KernelContext) -> Kernel:
        dtype = k.dtype("out_type")

        def number(value: bytes) -> Any:
            read = number_in(value, dtype)
            if read is None:
                raise invalid(k, f"StringToNumberOp could not correctly convert string: {value.decode(errors='backslashreplace')}")
            return read

        def numbers(x: Any) -> Any:
            with np.errstate(over="ignore"):
                return np.array([number(value) for value in x.reshape(-1).tolist()]).astype(dtype).reshape(x.shape)

        return numbers


@op
class AsString:
    """Each element in decimal form.

    precision: the digits after the point of floating-point numbers; -1 for 6.
    scientific: write floating-point numbers as 1.5e+01.
    shortest: write floating-point numbers in the shorter form.
    width: the least number of characters; -1 for any. Truth values have none.
    fill: the character that fills a short form: empty for a blank, `0`, or `-` to fill on the right; `+` or a blank for the place of a sign.
    """

    pure = True
    signature = (
        "AsString[T:{float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, complex64, complex128, "
        "bool, variant, string}, precision:int = -1, scientific:bool = false, shortest:bool = false, width:int = -1, fill:string = '']"
        "(input:T) -> (output:string)"
    )
    shape = unchanged_shape
    device_types = ("CPU",)
    gradient = NO_GRADIENT
    examples = (
        Example([[1.5, -2.0]], outputs=[[b"1.500000", b"-2.000000"]]),
        Example([[1, -20]], {"width": 5, "fill": "0"}, outputs=[[b"00001", b"-0020"]]),
        Example([[True, False]], outputs=[[b"true", b"false"]]),
        Example([[True, False]], {"width": 7, "fill": "0"}, outputs=[[b"true", b"false"]]),
        Example([np.array([5, 200], np.uint8)], {"width": 5, "fill": "+"}, outputs=[[b"    5", b"  200"]]),
        Example([[np.inf, 2.5]], {"width": 9, "fill": "0"}, outputs=[[b"      inf", b"02.500000"]]),
        Example([[1234.5678]], {"precision": 2, "scientific": True}, outputs=[[b"1.23e+03"]]),
        Example([[1234.5, 1e-9]], {"shortest": True, "width": 8, "fill": "-"}),
        Example([np.array([1 - 2j], np.complex64)], {"precision": 1}, outputs=[[b"(1.0,-2.0)"]]),
        Example([np.array([b"as it is"], object)], {"T": "string"}, outputs=[[b"as it is"]]),
        Example([np.array([b"abc", b"abcdef"], object)], {"T": "string", "width": 4, "precision": 2, "fill": "-"}, outputs=[[b"ab  "] * 2]),
    )
    failures = (Example([[1, -20]], {"precision": 2}),)

    def most_bytes(attrs: Attrs, inputs: Sequence[Array]) -> int:
        longest = max(required_int(attrs, "width"), 0) + max(required_int(attrs, "precision"), 0) + _LONGEST_NUMBER
        return bytes_of_strings(inputs[0].size, 2 * longest * inputs[0].size + content_size(inputs[0]))

    def kernel(k: KernelContext) -> Kernel:
        dtype, fill, width, precision = (
            k.dtype("T"),
            text_attr(k, "fill"),
            required_int(k.attrs, "width"),
            required_int(k.attrs, "precision"),
        )
        scientific, shortest = bool(k.attr("scientific")), bool(k.attr("shortest"))
        if scientific and shortest:
            raise invalid(k, "Cannot select both scientific and shortest notation")
        if len(fill) > 1 or fill not in (b"", b" ", b"+", b"-", b"0", b"#"):
            raise invalid(k, f"Fill argument not supported: {fill.decode(errors='backslashreplace')!r}")
        numeric = dtype.kind in "fcV"
        if dtype.kind in "biu" and (scientific or shortest or precision >= 0):
            what = "scientific and shortest format" if scientific or shortest else "precision"
            raise invalid(k, f"{what} not supported for datatype {dtype}")
        if dtype.kind == "u" and fill in (b" ", b"+"):
            fill = b""
        size = "" if width < 0 else str(width)
        digits = "" if precision < 0 else f".{precision}"
        form = f"%{fill.decode()}{size}" + (digits + ("e" if scientific else "g" if shortest else "f") if numeric else "d")
        not_finite = form.replace("%0", "%", 1)
        of_text = f"%{'-' if fill == b'-' else ''}{size}{digits}s".encode()

        def number(value: Any) -> str:
            text: str = (form if math.isfinite(value) else not_finite) % value
            return text

        def written(value: Any) -> bytes:
            if isinstance(value, bytes):
                return value if width < 0 else of_text % value
            if isinstance(value, bool):
                return b"true" if value else b"false"
            if isinstance(value, complex):
                return f"({number(value.real)},{number(value.imag)})".encode()
            return number(value).encode()

        return lambda x: strings([written(value) for value in x.reshape(-1).tolist()], x.shape)


def _parts(k: KernelContext | InferenceContext) -> list[bytes]:
    """The template between its placeholders; an empty placeholder stands between all characters."""
    template, placeholder = text_attr(k, "template"), text_attr(k, "placeholder")
    return template.split(placeholder) if placeholder else [template[i : i + 1] for i in range(max(len(template), 1))]


@op
class StringFormat:
    """A text with tensors in the places of placeholders, as one string.

    inputs: the tensors
    template: the text.
    placeholder: the part of the text that stands for a tensor.
    summarize: the number of elements at both ends of each dimension to write; -1 for all.
    """

    signature = (
        "StringFormat[T:list(type) >= 0, template:string = '%s', placeholder:string = '%s', summarize:int = 3](inputs:T) -> (output:string)"
    )
    device_types = ("CPU",)
    can_fail = False
    gradient = NO_GRADIENT
    examples = (
        Example([[[1.5, -2.0, 3.25]]], {"template": "x: %s!"}, outputs=[b"x: [1.5 -2 3.25]!"]),
        Example([[[[1, 2, 3, 4, 5, 6, 7, 8], [9, 9, 9, 9, 9, 9, 9, 9]], True]], {"template": "{} and {}", "placeholder": "{}"}),
    )

    def shape(c: InferenceContext) -> None:
        places = len(_parts(c)) - 1
        if places != c.num_inputs:
            raise InvalidArgumentError(f"num placeholders in template and num inputs must match: {places} vs. {c.num_inputs}")
        scalar_shape(c)

    def kernel(k: KernelContext) -> Kernel:
        parts, count = _parts(k), required_int(k.attrs, "summarize")

        def format_all(*values: Any) -> Any:
            shown = [summarize_printed(value, count).encode(errors="surrogateescape") for value in values]
            return strings([parts[0] + b"".join(a + b for a, b in zip(shown, parts[1:], strict=True))], ())

        return format_all
