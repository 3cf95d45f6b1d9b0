"""Recognition of calls whose bodies are the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphcore.graph.shapes.constant_values import inferred_value
from widgets.scene.calls import Call, callees

if TYPE_CHECKING:
    from graphcore.graph import Tensor
    from graphcore.inference import HandleData


def body_key(call: Call) -> object:
    """A key; calls with equal keys have equal bodies, but for the names in front.

    It has the functions, the device and line of the call, the functions around it, and types, shapes and known values of its inputs, with
    the places where these have the same dimension, and the types and shapes of what handles stand for.
    """
    node = call.node
    seen: dict[int, int] = {}
    tensors = [_tensor_key(tensor, seen) for tensor in (*node.inputs, *node.outputs)]
    called = tuple((callee.label, callee.key) for callee in callees(node))
    return (node.op, called, node.device, node.source, call.opener.around, tuple(tensors))


def _tensor_key(tensor: Tensor, seen: dict[int, int]) -> object:
    handles = tensor.node.output_handles
    dims = handles[tensor.index].dims if tensor.index < len(handles) else None
    places = None if dims is None else tuple([seen.setdefault(id(dim), len(seen)) for dim in dims])
    value = None if tensor.dtype.is_ref else inferred_value(tensor)
    content = (
        None if value is None else (value.dtype.str, value.shape, value.tobytes() if value.dtype != object else tuple(value.reshape(-1)))
    )
    held = [(entry.dtype, entry.shape.dims and [dim.value for dim in entry.shape.dims]) for entry in _held(tensor)]
    return tensor.dtype.text, tensor.graph.shape_text(tensor), places, content, repr(held)


def _held(tensor: Tensor) -> HandleData:
    """The types and shapes that a handle stands for."""
    return (tensor.node.handle_data or {}).get(tensor.index) or []
