"""Quantisation in ONNX models: the scale and the zero point of a value, as far as they are constants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from graphcore.errors import GraphError

if TYPE_CHECKING:
    from graphcore.frontends.foreign import WeightRef

_OPS: Final = frozenset({"QuantizeLinear", "DequantizeLinear"})
_SMALL: Final = 64


def quantization_note(node: Any, weights: Mapping[str, WeightRef]) -> str:
    """`scale 0.02, zero point 128` for the result of a quantising node; "" for others."""
    if node.op_type not in _OPS:
        return ""
    words = []
    for place, word in ((1, "scale"), (2, "zero point")):
        weight = weights.get(node.input[place]) if place < len(node.input) else None
        if weight is not None:
            words.append(f"{word} {_value(weight)}")
    return ", ".join(words)


def _value(weight: WeightRef) -> str:
    """The value of a single number; the number of them for several."""
    if weight.load is None or not 0 <= weight.nbytes <= _SMALL or weight.shape not in {(), (1,)}:
        return f"for each of {weight.shape[0]:,} channels" if len(weight.shape) == 1 else "of the file"
    try:
        value = weight.load().reshape(-1)[0]
    except (GraphError, IndexError):
        return "of the file"
    return f"{float(value):.6g}"
