"""Origins of the sizes of opaque nodes, which the source gives or known ops pass on."""

from __future__ import annotations

from typing import Final, TypeGuard

from graphcore.graph.model.node import Node, Tensor
from graphcore.graph.provenance.origins import Fact, How
from graphcore.inference import DimensionHandle

_CHANNELS: Final = {"onnx": 1, "aten": 1, "tfl": 3}
"""The dimension of a convolution's result that is the first of its filters, by the framework."""
_CONVOLUTIONS: Final = frozenset({"convolution", "depthwise convolution"})
_LINEAR: Final = frozenset({"linear", "gemm", "dense", "fully_connected"})
"""Products whose weight has the size of the result first."""
_TRANSPOSES: Final = frozenset({"transpose", "permute"})
_SAME_SHAPE: Final = frozenset({"addition", "scaling", "softmax", "normalization", "bias", "sigmoid", "tanh"})
"""The layers whose results have the sizes of what they take, which is broadcast."""


def opaque_step(node: Node, output: int, place: int) -> tuple[How, str, list[Fact]] | None:
    """The origin of a dimension of an opaque node's output: how, in words, and the facts behind it. None if its size is unknown."""
    step = None if node.registration.size_step is None else node.registration.size_step(node, output, place)
    if step is not None:
        how, text, sources = step
        facts = [Fact(node.inputs[slot].name, "dimension", axis) for slot, axis in sources if slot < len(node.inputs)]
        return how, text or f"is {facts[0]}", facts  # type: ignore[return-value]  # `how` is one of the words of both
    fact = _source_of_size(node, output, place)
    if fact is not None:
        return "passed", f"is {fact}", [fact]
    dim = (node.output_handles[output].dims or ())[place]
    is_known = dim.value >= 0 or dim.origin is not None
    return ("given", f"is given by the source at `{node.name}` (op {node.op})", []) if is_known else None


def _source_of_size(node: Node, output: int, place: int) -> Fact | None:
    """The dimension of an input that a dimension of an output surely is, None if there is none.

    It is followed through elementwise ops and products, and wherever an input has a size of the same name.
    """
    dims = node.output_handles[output].dims or ()
    own = dims[place]
    traits = node.registration.traits
    domain, _, word = node.op.lower().removesuffix(".default").rpartition(".")
    if traits.elementwise or traits.memory == "alias" or traits.layer in _SAME_SHAPE:
        for tensor in node.inputs:
            fact = _aligned(tensor, own, place - len(dims))
            if fact is not None:
                return fact
    if traits.layer == "product" and len(node.inputs) >= 2 and len(dims) >= 2:
        tensor = node.inputs[1 if place == len(dims) - 1 else 0]
        fact = _aligned(tensor, own, place - len(dims))
        if fact is None and word in _LINEAR and tensor is node.inputs[1] and len(_dims(tensor)) == 2:
            fact = _aligned(tensor, own, -2)  # the weight is transposed, as that of a linear layer
        if fact is not None:
            return fact
    if traits.layer in _CONVOLUTIONS and len(node.inputs) >= 2 and place == _CHANNELS.get(domain, len(dims)):
        filters = _dims(node.inputs[1])
        if filters and filters[0].value == own.value >= 0:
            return Fact(node.inputs[1].name, "dimension", 0)
    order = node.attr.get("perm", node.attr.get("dims")) if word in _TRANSPOSES else None
    if _is_order(order, len(dims)) and node.inputs and len(_dims(node.inputs[0])) == len(dims):
        return _aligned(node.inputs[0], own, order[place] % len(dims) - len(dims))
    return next((fact for tensor in node.inputs if own.value < 0 and (fact := _same(tensor, own)) is not None), None)


def _is_order(value: object, count: int) -> TypeGuard[tuple[int, ...]]:
    """True for an order of so many dimensions; those counted from the end are negative."""
    if not isinstance(value, tuple) or not all(isinstance(item, int) for item in value):
        return False
    return count > 0 and sorted([item % count for item in value]) == list(range(count))


def _aligned(tensor: Tensor, own: DimensionHandle, from_end: int) -> Fact | None:
    """The dimension of a tensor that lies so far from its end, if it is as large."""
    dims = _dims(tensor)
    if len(dims) < -from_end:
        return None
    dim = dims[from_end]
    is_same = dim is own or (dim.value == own.value >= 0)
    return Fact(tensor.name, "dimension", len(dims) + from_end) if is_same else None


def _same(tensor: Tensor, own: DimensionHandle) -> Fact | None:
    """The first dimension of a tensor that is the same unknown size."""
    return next((Fact(tensor.name, "dimension", index) for index, dim in enumerate(_dims(tensor)) if dim is own), None)


def _dims(tensor: Tensor) -> tuple[DimensionHandle, ...]:
    handles = tensor.node.output_handles
    return (handles[tensor.index].dims or ()) if tensor.index < len(handles) else ()
