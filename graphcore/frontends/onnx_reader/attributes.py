"""Attributes of ONNX nodes."""

from __future__ import annotations

from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from graphcore.frontends.foreign import WeightRef

if TYPE_CHECKING:
    from collections.abc import Iterable

    from graphcore.attrs import Array
    from graphcore.frontends.foreign import Attr
    from graphcore.frontends.onnx_reader.tensors import Tensors

_GRAPH: Final = 5
_GRAPHS: Final = 10


class Attributes:
    """Reads attributes.

    Args:
        onnx: the library.
        tensors: reads tensors.
    """

    def __init__(self, onnx: Any, tensors: Tensors) -> None:
        self._onnx = onnx
        self._tensors = tensors

    def read(self, attributes: Iterable[Any]) -> tuple[dict[str, Attr], dict[str, list[Any]]]:
        """The values of attributes, and those that are graphs."""
        attrs: dict[str, Attr] = {}
        graphs: dict[str, list[Any]] = {}
        for attribute in attributes:
            if attribute.type == _GRAPH:
                graphs[attribute.name] = [attribute.g]
            elif attribute.type == _GRAPHS:
                graphs[attribute.name] = list(attribute.graphs)
            else:
                attrs[attribute.name] = self.value(attribute)
        return attrs, graphs

    def value(self, attribute: Any) -> Attr:
        """The value of one attribute; `$name` for one that a function takes from its call."""
        if attribute.ref_attr_name:
            return f"${attribute.ref_attr_name}"
        kind = attribute.type
        if kind == 1:
            return plain_float(attribute.f)
        if kind == 2:
            return int(attribute.i)
        if kind == 3:
            return _text(attribute.s)
        if kind == 4:
            return self._tensors.weight(attribute.t)
        if kind == 6:
            return [plain_float(value) for value in attribute.floats]
        if kind == 7:
            return list(attribute.ints)
        if kind == 8:
            return [_text(value) for value in attribute.strings]
        if kind == 9:
            return [self._tensors.weight(tensor) for tensor in attribute.tensors]
        if kind == 13:
            return self._tensors.kind_text(attribute.tp, 0)
        return f"({self._onnx.AttributeProto.AttributeType.Name(kind).lower()})" if 0 <= kind <= 14 else f"(type {kind})"

    def constant(self, node: Any) -> WeightRef | None:
        """The tensor of a Constant node, None if it has no such attribute."""
        for attribute in node.attribute:
            if attribute.name == "value" and attribute.type == 4:
                return self._tensors.weight(attribute.t)
            if attribute.name in _SCALARS:
                word, many = _SCALARS[attribute.name]
                value = self.value(attribute)
                shape = (len(value),) if many and isinstance(value, list) else ()
                size = 8 if word == "int64" else 4
                return WeightRef(word, shape, -1 if word == "string" else size * (shape[0] if shape else 1), partial(_array, value, word))
        return None


_SCALARS: Final = {
    "value_float": ("float32", False),
    "value_floats": ("float32", True),
    "value_int": ("int64", False),
    "value_ints": ("int64", True),
    "value_string": ("string", False),
    "value_strings": ("string", True),
}


def _array(value: Attr, word: str) -> Array:
    return np.asarray(value, dtype=object if word == "string" else word)


def plain_float(value: float) -> float:
    """The shortest number that is the same as a float32: 0.1 for 0.10000000149011612."""
    return float(str(np.float32(value))) if isfinite(value) else value


def _text(value: bytes) -> str:
    return value.decode(errors="backslashreplace")
