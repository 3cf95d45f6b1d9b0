"""Origins of the sizes of opaque nodes, which the source gives or known ops pass on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from graphcore.graph.provenance.origins import Fact, How

if TYPE_CHECKING:
    from graphcore.graph.model.node import Node, Tensor
    from graphcore.inference import DimensionHandle

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
    if traits.elementwise or traits.memory == "alias" or traits.layer in _SAME_SHAPE:
        for tensor in node.inputs:
            fact = _aligned(tensor, own, place - len(dims))
            if fact is not None:
                return fact
    if traits.layer == "product" and len(node.inputs) >= 2 and len(dims) >= 2:
        tensor = node.inputs[1 if place == len(dims) - 1 else 0]
        fact = _aligned(tensor, own, place - len(dims))
        if fact is not None:
            return fact
    return next((fact for tensor in node.inputs if own.value < 0 and (fact := _same(tensor, own)) is not None), None)


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
