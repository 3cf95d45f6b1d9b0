"""ONNX models: files, with external data and functions, and `onnx.ModelProto` objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from graphcore.errors import InvalidArgumentError
from graphcore.frontends.libraries import library
from graphcore.frontends.onnx_reader.graphs import ModelReader
from graphcore.frontends.onnx_reader.slimming import slimmed
from graphcore.frontends.onnx_reader.tensors import Tensors
from graphcore.frontends.reading import mapped_bytes, unmapped
from graphcore.frontends.runners.onnx_run import OnnxRunner

if TYPE_CHECKING:
    from graphcore.frontends.foreign import ForeignGraph
    from graphcore.frontends.frontend import Source

KIND: Final = "ONNX model (.onnx, with external data beside it; onnx.ModelProto)"
_FIELDS: Final = {1: 0, 2: 2, 3: 2, 4: 2, 5: 0, 6: 2, 7: 2, 8: 2, 14: 2, 20: 2, 25: 2, 26: 2}
"""The fields of a model, with their wire types: numbers (0) and parts with a length (2)."""
_MAX_IR: Final = 64


def sniff(source: Source) -> bool:
    """True iff the source is an ONNX model."""
    if source.path is None:
        kind = type(source.value)
        module = kind.__module__.partition(".")[0]
        return (module == "onnx" and kind.__name__ == "ModelProto") or _is_program(source.value)
    return not source.members and _begins_model(source.head)


def read(source: Source) -> ForeignGraph:
    """Read an ONNX model.

    Raises:
        GraphError: it is damaged, exceeds a limit, or `onnx` is missing.
    """
    onnx = library("onnx", "onnx", "an ONNX model")
    if source.path is None:
        model = source.value.model_proto if _is_program(source.value) else source.value  # type: ignore[attr-defined]  # of ONNXProgram
        return _read(onnx, model, Tensors(onnx, None, b"", ""))
    data = mapped_bytes(source)
    slim, token = slimmed(data)
    kept = unmapped(source, data)
    model = onnx.ModelProto()
    try:
        model.ParseFromString(slim)
    except Exception as error:  # noqa: BLE001 - protobuf's implementations raise errors of different classes
        raise InvalidArgumentError(f"'{source.path.name}' is a damaged ONNX model: {_reason(error)}") from None
    return _read(onnx, model, Tensors(onnx, source.path.parent, kept, token))


def _read(onnx: Any, model: Any, tensors: Tensors) -> ForeignGraph:
    graph = ModelReader(onnx, model, tensors).read()
    runner = OnnxRunner(model, tensors, graph.main, graph.functions)
    graph.runner = lambda: runner  # one for all runs, which keeps the weights
    return graph


def _is_program(value: Any) -> bool:
    kind = type(value)
    return kind.__name__ == "ONNXProgram" and kind.__module__.startswith("torch.onnx") and hasattr(kind, "model_proto")


def _reason(error: Exception) -> str:
    text = str(error)
    return text if len(text) < 200 else f"{text[:200]}…"


def _begins_model(head: bytes) -> bool:
    """True iff the bytes begin with fields of a ModelProto, the version of its form first.

    A SavedModel begins alike, but the second field of its first graph is a message and no text.
    """
    if len(head) < 2 or head[0] != 8 or not 1 <= head[1] <= _MAX_IR:
        return False
    place, seen = 2, {1}
    while place < len(head):
        tag, place = _varint(head, place)
        number, wire = tag >> 3, tag & 7
        if place < 0 or _FIELDS.get(number) != wire:
            return False
        if number == 7:
            return True
        value, start = _varint(head, place)
        if start < 0:
            return False
        seen.add(number)
        if wire == 0:
            place = start
            continue
        part = head[start : start + value]
        if number in {2, 3, 4} and not _is_text(part):
            return False
        place = start + value
    return bool(seen & {2, 7, 8})


def _is_text(part: bytes) -> bool:
    return not any(code < 32 for code in part) and len(part) < 1000


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """A number and the place after it, -1 if it is cut off or too long."""
    value = shift = 0
    while place < len(data) and shift < 64:
        byte = data[place]
        value |= (byte & 127) << shift
        place += 1
        if byte < 128:
            return value, place
        shift += 7
    return 0, -1
