"""Quantisation in ONNX models: the scale and the zero point of a value, as far as they are constants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from graphcore.errors import GraphError

if TYPE_CHECKING:
    from graphcore.frontends.foreign import WeightRef

_PLACES: Final = {
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear"), 1),
    **dict.fromkeys(("QLinearConv", "QLinearMatMul", "QLinearAdd", "QLinearMul", "QGemm"), 6),
    **dict.fromkeys(("QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax", "QLinearAveragePool", "QLinearGlobalAveragePool"), 3),
    "QLinearConcat": 0,
}
"""The places of the result's scale among the inputs; the zero point follows it."""
_SMALL: Final = 64


def quantization_of(node: Any, weights: Mapping[str, WeightRef]) -> str:
    """`scale 0.02, zero point 128` for the result of a quantising node; "" for others."""
    place = _PLACES.get(node.op_type)
    if place is None:
        return ""
    words = []
    for number, word in ((place, "scale"), (place + 1, "zero point")):
        weight = weights.get(node.input[number]) if number < len(node.input) else None
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
