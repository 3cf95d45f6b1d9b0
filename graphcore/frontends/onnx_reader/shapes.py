"""Shapes of the values of ONNX models: those of the file, and those that ONNX infers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from graphcore.frontends.foreign import Port
    from graphcore.frontends.onnx_reader.tensors import Tensors

MAX_NODES: Final = 20_000
"""Shapes of larger graphs are not inferred."""
MAX_BYTES: Final = 1 << 26
"""Nor are those of models whose description, without large tensors, takes more."""


def with_shapes(onnx: Any, model: Any, tensors: Tensors) -> tuple[dict[str, Port], str]:
    """The types of a model's values by name, and a sentence on what is not known."""
    graph = model.graph
    ports = {info.name: tensors.port(info.name, info.type) for info in (*graph.value_info, *graph.output)}
    made = [ports.get(name) for node in graph.node for name in node.output]
    shapeless = sum(port is None or port.shape is None for port in made)
    if 10 * shapeless <= len(made):
        return ports, ""
    if len(graph.node) > MAX_NODES or model.ByteSize() > MAX_BYTES:
        return ports, "The file gives few shapes, and it is too large to infer them."
    try:
        inferred = onnx.shape_inference.infer_shapes(model, check_type=False, strict_mode=False, data_prop=True)
    except Exception:  # noqa: BLE001 - the library raises errors of many classes on models that it does not understand
        return ports, "The file gives few shapes, and ONNX cannot infer them."
    for info in (*inferred.graph.value_info, *inferred.graph.output):
        port = tensors.port(info.name, info.type)
        if info.name not in ports or ports[info.name].shape is None:
            ports[info.name] = port
    return ports, ""
