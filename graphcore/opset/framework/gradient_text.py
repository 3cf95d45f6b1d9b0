"""Helpers for gradient texts: constants, and index arguments of either width."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from graphcore.attrs import Attrs, AttrValue
from graphcore.definitions.types import FunctionDef
from graphcore.dtypes import DType, int32
from graphcore.errors import InvalidArgumentError, NotFoundError
from graphcore.functions import GradientText, reduction_grad
from graphcore.registry import GradientCreator

INDEX_TYPE: Final = "INDEX"
"""The part of a text that `index_typed` replaces by the type of an op's index arguments."""

_SIGNATURE: Final = re.compile(r"\s*\[[^\]]*\]\(([^)]*)\) -> \(([^)]*)\) \{(.*)\}\s*$", re.DOTALL)
_AXES_INPUT: Final = re.compile(r"(?<=[(, ])i(?=[,)])")


def index_typed(attr: str, text: str) -> Callable[[Attrs], str]:
    """A gradient text with `INDEX` replaced by the type in the op's attr `attr` (default int32)."""

    def gradient(attrs: Attrs) -> str:
        return text.replace(INDEX_TYPE, index_type(attrs, attr).text)

    return gradient


def index_type(attrs: Attrs, attr: str) -> DType:
    """The type in attr `attr`, int32 by default."""
    value = attrs.get(attr)
    return value if isinstance(value, DType) else int32


def required_type(attrs: Attrs, attr: str = "T") -> DType:
    """The type in attr `attr`.

    Raises:
        NotFoundError: there is no such attr.
        InvalidArgumentError: it is not a type.
    """
    value = _required(attrs, attr)
    if not isinstance(value, DType):
        raise InvalidArgumentError(f"This gradient needs attr '{attr}', a type; got {value!r}", attr=attr)
    return value


def required_int(attrs: Attrs, attr: str) -> int:
    """The value of int attr `attr`.

    Raises:
        NotFoundError: there is no such attr.
        InvalidArgumentError: it is not an int.
    """
    value = _required(attrs, attr)
    if not isinstance(value, int):
        raise InvalidArgumentError(f"This gradient needs attr '{attr}', an int; got {value!r}", attr=attr)
    return value


def _required(attrs: Attrs, attr: str) -> AttrValue:
    value = attrs.get(attr)
    if value is None:
        raise NotFoundError(f"No attr named '{attr}' in NodeDef: this gradient needs it", attr=attr)
    return value


def list_to_array(attrs: Attrs, elements: list[str], dtype: str | None = None) -> str:
    """The right-hand side of a node for the elements of a list argument `N*T` (or of type `dtype`)."""
    element_type = required_type(attrs).text if dtype is None else dtype
    kind = "$T" if dtype is None else dtype
    return f"_ListToArray[N=$N, T={kind}, Tin={{{', '.join([element_type] * len(elements))}}}]({', '.join(elements)})"


def is_complex(attrs: Attrs, attr: str = "T") -> bool:
    """True if attr `attr` is a complex type."""
    value = attrs.get(attr)
    return isinstance(value, DType) and value.is_complex


def holomorphic(template: GradientText) -> GradientCreator:
    """The gradient of a holomorphic function, for complex types too.

    The body multiplies the gradient by a derivative d, but a complex gradient needs the conjugate of d. As the body is linear in the
    gradient, that is the conjugate of its result for the conjugate gradient.
    """
    conjugated = GradientText(_conjugated(template.text))

    def gradient(attrs: Attrs) -> FunctionDef:
        return (conjugated if is_complex(attrs) else template)(attrs)

    return gradient


def _conjugated(text: str) -> str:
    match = _SIGNATURE.match(text)
    assert match is not None, f"not the text of a gradient: {text}"
    inputs, outputs, body = match.groups()
    arrived = inputs.rpartition(",")[2].partition(":")[0].strip()
    results = [part.partition(":")[0].strip() for part in outputs.split(",")]
    for name in (arrived, *results):
        body = re.sub(rf"\b{name}\b", f"{name}_conj", body)
    back = "".join(f"  {name} = Conj({name}_conj)\n" for name in results)
    return f"[T:{{complex64, complex128}}]({inputs}) -> ({outputs}) {{\n  {arrived}_conj = Conj({arrived})\n{body}\n{back}}}"


def gradient_from_value(op: str) -> GradientText:
    """The gradient of a function f by the op of that name with `Grad`.

    That op takes f(x), and is 0 where 0 arrives.
    """
    return GradientText(f"""[T:{{half, float, double}}](x:T, dy:T) -> (dx:T) {{
  y = {op}[T=$T](x) @ dy
  dx = {op}Grad[T=$T](y, dy)
}}""")


def axes_reduction_grad(body: str) -> GradientCreator:
    """The reduction template for axes of int32 and of int64; those are cast first."""
    narrow = reduction_grad(body)
    text = _AXES_INPUT.sub("i_32:y:0", narrow.text)
    text = text.replace("i:int32", "i:int64").replace("ZerosLike[T=int32](i_32:y:0)", "ZerosLike[T=int64](i)")
    wide = GradientText(text.replace("{\n", "{\n  i_32 = Cast[DstT=int32, SrcT=int64](i)\n", 1))

    def gradient(attrs: Attrs) -> FunctionDef:
        return (wide if index_type(attrs, "Tidx").text == "int64" else narrow)(attrs)

    return gradient


def scalar(dtype: str, value: object) -> str:
    """The right-hand side of a scalar constant's node."""
    return f"Const[dtype={dtype}, value=Tensor<type: {dtype} shape: [] values: {value}>]()"


def vector(dtype: str, *values: object) -> str:
    """The right-hand side of a constant vector's node."""
    return f"Const[dtype={dtype}, value=Tensor<type: {dtype} shape: [{len(values)}] values: {' '.join(map(str, values))}>]()"


ONE: Final = f"const = {scalar('float', 1)}\n        one = Cast[SrcT=float, DstT=$T](const)"
"""The lines that make `one` of type T, to be indented as a body in a block is."""
